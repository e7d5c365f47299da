//! The views of a viewer.

use navlocks_dashboard::shown::{Shown, Span};
use navlocks_wire::FaultCode;

use crate::client::{Client, tcp_stream, unix_stream};
use crate::viewer::{Viewer, serve};

#[test]
fn viewer_takes_no_lock_and_clients_get_no_view() {
    let service = serve(|_| {});
    for message in [r#"{"request":{"id":1,"names":["a"]}}"#, r#"{"hello":{}}"#, "?"] {
        let mut viewer = Viewer::new(tcp_stream(service.tcp()), "/dashboard");
        viewer.send(message);
        assert_eq!(viewer.error().code, FaultCode::BadMessage, "{message}");
    }
    let mut client = Client::unix(service.unix());
    client.say(r#"{"id":1,"view":"deadlocks"}"#);
    assert_eq!(client.error().0, FaultCode::BadMessage);
}

#[test]
fn viewer_is_no_session_and_its_page_ends_with_the_service() {
    let service = serve(|_| {});
    let mut viewer = Viewer::new(unix_stream(service.unix()), "/dashboard");
    let Shown::Clients(clients) = viewer.shown(r#"{"clients":{}}"#) else { panic!("no clients") };
    assert_eq!((clients.count, clients.rows.len()), (0, 0));
    let Shown::Service(about) = viewer.shown(r#""service""#) else { panic!("no service") };
    assert!(about.service.starts_with("navlocks "), "{about:?}");
    // It is told in time, so the service does not wait for it.
    drop(service.end());
}

#[test]
fn overview_of_many_names_is_a_page_with_waiters_first() {
    let service = serve(|_| {});
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
    let mut dashboard = Viewer::new(unix_stream(service.unix()), "/dashboard");
    let Shown::Overview(overview) = dashboard.shown(r#"{"overview":{}}"#) else {
        panic!("not an overview")
    };
    assert_eq!((overview.names, overview.held, overview.pending), (20_001, 20_000, 1));
    assert_eq!(overview.rows.len(), 50);
    let first: Vec<String> = overview.rows.iter().take(2).map(|row| row.name.to_string()).collect();
    assert_eq!(first, ["name 777", "name 20001"]);
    let filter = r#"{"overview":{"name":"NAME 1999","tag":"job","order":"name","skip":10}}"#;
    let Shown::Overview(overview) = dashboard.shown(filter) else { panic!("not an overview") };
    // 1999 and 19990 to 19999.
    assert_eq!((overview.matching, overview.rows.len()), (11, 1));
    assert_eq!(overview.rows[0].name.to_string(), "name 19999");
}

#[test]
fn history_has_spans_events_and_counts_of_a_partition_that_is_gone() {
    let service = serve(|_| {});
    let mut dashboard = Viewer::new(unix_stream(service.unix()), "/dashboard");
    let mut client = Client::tcp_hello(service.tcp(), r#"{"partition":"jobs"}"#);
    client.welcome();
    client.hold(1, "a");
    client.say_all([r#"{"end":1}"#, r#""bye""#]);
    let events = r#"{"events":{"after":0,"filter":{"name":"a"}}}"#;
    // The session may end a moment later.
    let words = loop {
        let Shown::Events(events) = dashboard.shown(events) else { panic!("no events") };
        let words: Vec<String> = events.events.into_iter().map(|event| event.what).collect();
        if words.len() == 3 {
            break words;
        }
    };
    assert_eq!(words, ["requested", "granted", "released"]);
    let time = r#"{"time":{"space":{"partition":"jobs"},"ago-ms":0,"window-ms":60000}}"#;
    let Shown::Time(time) = dashboard.shown(time) else { panic!("no time") };
    assert_eq!(time.lanes.len(), 1);
    assert!(time.lanes[0].spans[0].ended_ms.is_some());
    assert_eq!(time.granted.iter().sum::<u32>(), 1);
}

const TIME: &str = r#"{"time":{"space":{},"ago-ms":0,"window-ms":60000}}"#;

#[test]
fn time_of_a_busy_client_has_its_newest_requests_and_counts_the_rest() {
    let service = serve(|_| {});
    let mut dashboard = Viewer::new(unix_stream(service.unix()), "/dashboard");
    let mut client = Client::unix(service.unix());
    for id in 1..=200 {
        client.hold(id, "busy");
        client.say(format!(r#"{{"end":{id}}}"#));
    }
    for id in 201..=204 {
        client.hold(id, &format!("kept {id}"));
    }
    let Shown::Time(time) = dashboard.shown(TIME) else { panic!("no time") };
    let [lane] = &time.lanes[..] else { panic!("one client has one lane: {:?}", time.lanes) };
    let number = |span: &Span| span.entry.request.request;
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
    let service = serve(|_| {});
    let mut dashboard = Viewer::new(unix_stream(service.unix()), "/dashboard");
    let mut client = Client::unix(service.unix());
    client.hold(1, "a");
    client.say(r#"{"request":{"id":2,"names":["a"]}}"#);
    client.settle();
    // A wait below a millisecond is none yet.
    let heat = (0..1000).find_map(|_| {
        let Shown::Time(time) = dashboard.shown(TIME) else { panic!("no time") };
        assert_eq!((time.moment.held, time.moment.waiting), (1, 1));
        time.heat.into_iter().next()
    });
    let heat = heat.expect("the waiter of now is counted");
    assert_eq!(heat.name.to_string(), "a");
    assert!(heat.ms.last().is_some_and(|ms| *ms > 0), "in the last cell: {heat:?}");
}

#[test]
fn actions_need_the_right_to_act() {
    let service = serve(|_| {});
    let mut holder = Client::unix(service.unix());
    holder.hold(1, "a");
    let sessions = r#"{"clients":{}}"#;
    let mut operator = Viewer::new(unix_stream(service.unix()), "/dashboard/act");
    let Shown::Clients(clients) = operator.shown(sessions) else { panic!("no clients") };
    let row = clients.rows.iter().find(|row| row.held == 1).expect("the holder is listed");
    let end = format!(r#"{{"act":{{"action":{{"end-session":{}}}}}}}"#, row.session);
    for path in ["/dashboard", "/dashboard/act"] {
        let mut tenant = Viewer::new(tcp_stream(service.tcp()), path);
        let fault = tenant.refused(&end);
        assert_eq!(fault.code, FaultCode::Unauthorized);
    }
    let Shown::Acted(acted) = operator.shown(&end) else { panic!("it may not act") };
    assert_eq!((acted.done, acted.count), (true, 1));
    assert_eq!(holder.error().0, FaultCode::LeaseLapsed);
}
