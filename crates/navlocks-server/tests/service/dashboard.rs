//! The dashboard as the service shows it: files, views, and what a dashboard must not do.

use std::io::{Read as _, Write as _};

use navlocks_wire::{FaultCode, Reply, Shown, ToClient};

use crate::client::{Client, tcp_stream, unix_stream};
use crate::running::Running;

fn with_dashboard() -> Running {
    Running::with(|config| config.dashboard = true)
}

fn get(service: &Running, path: &str, host: &str) -> String {
    send(service, &format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n"))
}

fn send(service: &Running, request: &str) -> String {
    let mut stream = tcp_stream(service.tcp());
    stream.write_all(request.as_bytes()).expect("the service listens");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer, and its end");
    answer
}

fn ask(client: &mut Client, view: &str) -> Reply {
    client.say(format!(r#"{{"ask":{{"id":1,"question":{{"view":{view}}}}}}}"#));
    match client.hear() {
        ToClient::Answer(answer) => answer.reply,
        other => panic!("not an answer: {other:?}"),
    }
}

fn shown(client: &mut Client, view: &str) -> Shown {
    match ask(client, view) {
        Reply::View(shown) => shown,
        other => panic!("not a view: {other:?}"),
    }
}

#[test]
fn dashboard_is_off_unless_asked_for() {
    let service = Running::start();
    for path in ["/dashboard", "/dashboard/app.js"] {
        assert!(get(&service, path, "localhost").starts_with("HTTP/1.1 404"), "{path}");
    }
    assert!(get(&service, "/", "localhost").starts_with("HTTP/1.1 426"));
}

#[test]
fn page_is_served_to_own_names_alone_and_under_a_strict_policy() {
    let service = Running::with(|config| {
        config.dashboard = true;
        config.hosts = vec!["locks.example".into()];
    });
    for host in ["localhost", "127.0.0.1:7400", "locks.example:7400"] {
        let answer = get(&service, "/", host);
        assert!(answer.starts_with("HTTP/1.1 200"), "{host}");
        assert!(answer.contains("content-security-policy: default-src 'none'; "), "{answer}");
    }
    for path in ["/", "/dashboard/style.css", "/metrics"] {
        assert!(get(&service, path, "evil.example").starts_with("HTTP/1.1 421"), "{path}");
    }
    assert!(get(&service, "/?token=0123456789abcdef", "localhost").starts_with("HTTP/1.1 400"));
}

#[test]
fn head_is_answered_as_get_without_a_body_and_opens_no_websocket() {
    let service = with_dashboard();
    let head = |service: &Running, path: &str, more: &str| {
        send(service, &format!("HEAD {path} HTTP/1.1\r\nHost: localhost\r\n{more}\r\n"))
    };
    for path in ["/", "/dashboard/app.js", "/dashboard/none.js", "/healthz", "/metrics"] {
        let whole = get(&service, path, "localhost");
        let (status, rest) = whole.split_once("\r\n").expect("a first line");
        let answer = head(&service, path, "");
        assert!(answer.starts_with(status) && answer.ends_with("\r\n\r\n"), "{path}: {answer}");
        let length = |text: &str| text.lines().any(|line| line.starts_with("content-length: "));
        assert!(length(&answer) && length(rest), "{path}: {answer}");
    }
    let upgrade = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
                   Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
                   Sec-WebSocket-Protocol: navlocks.1\r\n";
    assert!(head(&service, "/", upgrade).starts_with("HTTP/1.1 405"));
    assert!(head(&Running::start(), "/", "").starts_with("HTTP/1.1 426"));
}

#[test]
fn dashboard_takes_no_lock_and_other_clients_get_no_view() {
    let service = with_dashboard();
    let mut dashboard = Client::dashboard(tcp_stream(service.tcp()), "/dashboard");
    dashboard.say(r#"{"request":{"id":1,"names":["a"]}}"#);
    assert_eq!(dashboard.error().0, FaultCode::BadState);
    let mut other = Client::unix(service.unix());
    let Reply::Refused(fault) = ask(&mut other, r#""deadlocks""#) else { panic!("not refused") };
    assert_eq!(fault.code, FaultCode::Unauthorized);
}

#[test]
fn overview_of_many_names_is_a_page_with_waiters_first() {
    let service = with_dashboard();
    let mut holder = Client::unix(service.unix());
    let requests = (1..=20_000)
        .map(|id| format!(r#"{{"request":{{"id":{id},"names":["name {id}"],"tag":"job"}}}}"#));
    holder.say_all(requests);
    for id in 1..=20_000 {
        holder.granted(id);
    }
    let mut waiter = Client::unix(service.unix());
    waiter.say(r#"{"request":{"id":1,"names":["name 777","name 20001"]}}"#);
    waiter.settle();
    let mut dashboard = Client::dashboard(unix_stream(service.unix()), "/dashboard");
    let Shown::Overview(overview) = shown(&mut dashboard, r#"{"overview":{}}"#) else {
        panic!("not an overview")
    };
    assert_eq!((overview.names, overview.held, overview.pending), (20_001, 20_000, 1));
    assert_eq!(overview.rows.len(), 50);
    let first: Vec<String> = overview.rows.iter().take(2).map(|row| row.name.to_string()).collect();
    assert_eq!(first, ["name 777", "name 20001"]);
    let filter = r#"{"overview":{"name":"NAME 1999","tag":"job","order":"name","skip":10}}"#;
    let Shown::Overview(overview) = shown(&mut dashboard, filter) else {
        panic!("not an overview")
    };
    // 1999 and 19990 to 19999.
    assert_eq!((overview.matching, overview.rows.len()), (11, 1));
    assert_eq!(overview.rows[0].name.to_string(), "name 19999");
}

#[test]
fn history_has_spans_events_and_counts_of_a_partition_that_is_gone() {
    let service = with_dashboard();
    let mut dashboard = Client::dashboard(unix_stream(service.unix()), "/dashboard");
    let mut client = Client::tcp_hello(service.tcp(), r#"{"version":1,"partition":"jobs"}"#);
    client.welcome();
    client.hold(1, "a");
    client.say_all([r#"{"release":1}"#, r#""bye""#]);
    let events = r#"{"events":{"after":0,"filter":{"name":"a"}}}"#;
    // The session may end a moment later.
    let words = loop {
        let Shown::Events(events) = shown(&mut dashboard, events) else { panic!("no events") };
        let words: Vec<String> = events.events.into_iter().map(|event| event.what).collect();
        if words.len() == 3 {
            break words;
        }
    };
    assert_eq!(words, ["requested", "granted", "released"]);
    let time = r#"{"time":{"space":{"partition":"jobs"},"ago-ms":0,"window-ms":60000}}"#;
    let Shown::Time(time) = shown(&mut dashboard, time) else { panic!("no time") };
    assert_eq!(time.lanes.len(), 1);
    assert!(time.lanes[0].spans[0].ended_ms.is_some());
    assert_eq!(time.granted.iter().sum::<u32>(), 1);
}

const TIME: &str = r#"{"time":{"space":{},"ago-ms":0,"window-ms":60000}}"#;

#[test]
fn time_of_a_busy_client_has_its_newest_requests_and_counts_the_rest() {
    let service = with_dashboard();
    let mut dashboard = Client::dashboard(unix_stream(service.unix()), "/dashboard");
    let mut client = Client::unix(service.unix());
    for id in 1..=200 {
        client.hold(id, "busy");
        client.say(format!(r#"{{"release":{id}}}"#));
    }
    for id in 201..=204 {
        client.hold(id, &format!("kept {id}"));
    }
    let Shown::Time(time) = shown(&mut dashboard, TIME) else { panic!("no time") };
    let [lane] = &time.lanes[..] else { panic!("one client has one lane: {:?}", time.lanes) };
    let number = |span: &navlocks_wire::Span| span.entry.request.request;
    let mut numbers: Vec<u64> = lane.spans.iter().map(number).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, (204 - 119..=204).collect::<Vec<u64>>());
    assert_eq!(lane.more, 204 - 120);
    assert_eq!((time.moment.held, time.moment.waiting), (4, 0));
    assert_eq!(time.moment.spans.iter().map(number).collect::<Vec<_>>(), [201, 202, 203, 204]);
    assert_eq!(time.lanes_ms, time.recorded_ms, "no request was dropped");
}

#[test]
fn names_with_most_waiting_count_the_waiters_of_now() {
    let service = with_dashboard();
    let mut dashboard = Client::dashboard(unix_stream(service.unix()), "/dashboard");
    let mut client = Client::unix(service.unix());
    client.hold(1, "a");
    client.say(r#"{"request":{"id":2,"names":["a"]}}"#);
    client.settle();
    // A wait below a millisecond is none yet.
    let heat = (0..1000).find_map(|_| {
        let Shown::Time(time) = shown(&mut dashboard, TIME) else { panic!("no time") };
        assert_eq!((time.moment.held, time.moment.waiting), (1, 1));
        time.heat.into_iter().next()
    });
    let heat = heat.expect("the waiter of now is counted");
    assert_eq!(heat.name.to_string(), "a");
    assert!(heat.ms.last().is_some_and(|ms| *ms > 0), "in the last cell: {heat:?}");
}

#[test]
fn actions_need_the_right_to_act() {
    let service = with_dashboard();
    let mut holder = Client::unix(service.unix());
    holder.hold(1, "a");
    let sessions = r#"{"clients":{}}"#;
    let mut operator = Client::dashboard(unix_stream(service.unix()), "/dashboard/act");
    let Shown::Clients(clients) = shown(&mut operator, sessions) else { panic!("no clients") };
    let row = clients.rows.iter().find(|row| row.held == 1).expect("the holder is listed");
    let end = format!(r#"{{"act":{{"action":{{"end-session":{}}}}}}}"#, row.session);
    for path in ["/dashboard", "/dashboard/act"] {
        let mut tenant = Client::dashboard(tcp_stream(service.tcp()), path);
        let Reply::Refused(fault) = ask(&mut tenant, &end) else { panic!("it may act") };
        assert_eq!(fault.code, FaultCode::Unauthorized);
    }
    let Shown::Acted(acted) = shown(&mut operator, &end) else { panic!("it may not act") };
    assert_eq!((acted.done, acted.count), (true, 1));
    assert_eq!(holder.error().0, FaultCode::LeaseLapsed);
}
