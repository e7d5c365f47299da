//! The answers of the service to plain HTTP.

use std::io::{Read as _, Write as _};

use navlocks_server::Access;

use crate::access::with_token;
use crate::client::{Client, tcp_stream, unix_stream};
use crate::running::Running;

/// Sends a request as it is and returns the answer as it is.
fn ask(service: &Running, request: &str) -> String {
    let mut stream = tcp_stream(service.tcp());
    stream.write_all(request.as_bytes()).expect("the service listens");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer, and its end");
    answer
}

fn get(service: &Running, path: &str) -> String {
    ask(service, &format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n"))
}

/// A handshake with one header changed, or left out.
fn handshake(service: &Running, change: (&str, Option<&str>)) -> String {
    let headers = [
        ("Host", "localhost"),
        ("Connection", "Upgrade"),
        ("Upgrade", "websocket"),
        ("Sec-WebSocket-Version", "13"),
        ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="),
        ("Sec-WebSocket-Protocol", "navlocks.2"),
    ];
    let mut request = String::from("GET / HTTP/1.1\r\n");
    for (name, value) in headers {
        match change {
            (changed, None) if changed == name => {}
            (changed, Some(value)) if changed == name => {
                request += &format!("{name}: {value}\r\n");
            }
            _ => request += &format!("{name}: {value}\r\n"),
        }
    }
    ask(service, &(request + "\r\n"))
}

#[test]
fn health_is_told() {
    let service = Running::start();
    let answer = get(&service, "/healthz");
    assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("ok\n"), "{answer}");
    let mut unix = unix_stream(service.unix());
    unix.write_all(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    let mut answer = String::new();
    unix.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
}

#[test]
fn metrics_count_what_happens() {
    let service = Running::start();
    let (mut first, _) = Client::tcp(service.tcp());
    first.hold(1, "a");
    let mut second = Client::unix(service.unix());
    second.say_all([
        r#"{"request":{"id":1,"names":["a"]}}"#,
        r#"{"request":{"id":2,"names":["a"],"wait":"steal"}}"#,
    ]);
    second.granted(2);
    second.say(r#"{"end":2}"#);
    second.granted(1);
    first.hear();
    let mut garbage = Client::unix(service.unix());
    garbage.say("garbage");
    garbage.error();
    // The last thing a client is sent comes before its connection is counted out.
    drop(garbage);
    let text = get(&service, "/metrics");
    for line in [
        "navlocks_locks_held 1\n",
        "navlocks_requests_pending 0\n",
        "navlocks_sessions{state=\"connected\"} 2\n",
        "navlocks_sessions{state=\"detached\"} 0\n",
        "navlocks_sessions{state=\"unclaimed\"} 0\n",
        "navlocks_partitions 1\n",
        "navlocks_slots 0\n",
        "navlocks_slots_recovering 0\n",
        "navlocks_requests_total{outcome=\"granted\"} 3\n",
        "navlocks_recovering 0\n",
        "navlocks_oldest_waiter_age_seconds 0.0\n",
        "navlocks_tenant_requests{tenant=\"\",transport=\"tcp\"} 1\n",
        "navlocks_tenant_connections{tenant=\"\",transport=\"unix\"} 1\n",
        "navlocks_steals_total 1\n",
        "navlocks_losses_total{cause=\"stolen\"} 1\n",
        "navlocks_losses_total{cause=\"client-ended\"} 0\n",
        "navlocks_frames_rejected_total 1\n",
        "navlocks_request_wait_seconds_count 3\n",
        "navlocks_lock_hold_seconds_count 2\n",
        "navlocks_leases_lapsed_total 0\n",
        "# EOF\n",
    ] {
        assert!(text.contains(line), "{line} is missing in {text}");
    }
    assert!(text.contains("navlocks_connections "), "{text}");
    assert!(text.contains("navlocks_build_info{version="), "{text}");
    assert!(!text.contains("certificate_expiry_timestamp_seconds "), "there is no certificate");
    for name in [
        "process_cpu_seconds_total",
        "process_resident_memory_bytes",
        "process_open_fds",
        "process_max_fds",
        "process_start_time_seconds",
    ] {
        assert!(number(&text, name) > 0.0, "{name} in {text}");
    }
}

/// Returns the number of a metric.
fn number(text: &str, name: &str) -> f64 {
    let mut lines = text.lines().filter_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    let number = lines.next().unwrap_or_else(|| panic!("{name} is missing in {text}"));
    number.parse().expect("a number")
}

#[test]
fn metrics_count_outcomes_and_the_age_of_the_oldest_waiter() {
    let service = Running::start();
    let mut holder = Client::unix(service.unix());
    holder.hold(1, "a");
    let mut other = Client::unix(service.unix());
    other.say_all([
        r#"{"request":{"id":1,"names":["a"]}}"#,
        r#"{"request":{"id":2,"names":["a"],"wait":"if-available"}}"#,
        r#"{"request":{"id":3,"names":["a"]}}"#,
    ]);
    other.hear();
    let age = || number(&get(&service, "/metrics"), "navlocks_oldest_waiter_age_seconds");
    let first = age();
    assert!(first > 0.0 && age() > first);
    // The second waiter is the oldest now, and younger than the first.
    other.say(r#"{"end":1}"#);
    holder.say(r#"{"ask":{"id":1,"question":{"locks":"partition"}}}"#);
    holder.hear();
    let text = get(&service, "/metrics");
    assert!(text.contains("navlocks_requests_total{outcome=\"aborted\"} 1\n"), "{text}");
    assert!(text.contains("navlocks_requests_total{outcome=\"timed-out\"} 0\n"), "{text}");
    assert!(text.contains("navlocks_requests_total{outcome=\"unavailable\"} 1\n"), "{text}");
    drop(holder);
    other.granted(3);
    assert_eq!(age(), 0.0);
    // A timeout of a request that was granted meanwhile releases the lock, and counts as its grant.
    other.say_all([
        r#"{"request":{"id":4,"names":["a"]}}"#,
        r#"{"timed-out":4}"#,
        r#"{"timed-out":3}"#,
    ]);
    other.settle();
    let text = get(&service, "/metrics");
    assert!(text.contains("navlocks_requests_total{outcome=\"timed-out\"} 1\n"), "{text}");
    assert!(text.contains("navlocks_requests_total{outcome=\"aborted\"} 1\n"), "{text}");
    let ended = "navlocks_losses_total{cause=\"client-ended\"} 1\n";
    let text = get(&service, "/metrics");
    assert!(text.contains(ended), "{text}");
}

#[test]
fn tenant_label_is_bounded() {
    let tenants = (0..25).map(|number| format!("t{number}:secret-secret-{number:05}\n"));
    let tokens: String = tenants.collect();
    let service = Running::with(|config| config.access = Access::from_text(&tokens).unwrap());
    let clients: Vec<Client> = (0..25)
        .map(|number| {
            let token = format!("secret-secret-{number:05}");
            let mut client = with_token(service.tcp(), &token);
            client.hold(1, "a");
            client
        })
        .collect();
    let mut stream = unix_stream(service.unix());
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    assert_eq!(text.matches("navlocks_tenant_requests{").count(), 21, "{text}");
    let others = "navlocks_tenant_requests{tenant=\"other\",transport=\"\"} 5\n";
    assert!(text.contains(others), "{text}");
    drop(clients);
}

#[test]
fn probes_answer_get_and_head() {
    let service = Running::start();
    for (path, said) in [("/livez", "ok\n"), ("/readyz", "ready\n"), ("/healthz", "ok\n")] {
        let answer = get(&service, path);
        assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with(said), "{answer}");
        let head = format!("HEAD {path} HTTP/1.1\r\nHost: localhost\r\n\r\n");
        let answer = ask(&service, &head);
        assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("\r\n\r\n"), "{answer}");
    }
}

#[test]
fn service_that_grants_nothing_is_alive_and_not_ready() {
    let service = Running::with(|config| config.fresh = false);
    assert!(get(&service, "/livez").starts_with("HTTP/1.1 200"));
    let answer = get(&service, "/readyz");
    assert!(answer.starts_with("HTTP/1.1 503"), "{answer}");
    assert!(answer.contains("no lock is granted in the first 67s"), "{answer}");
    assert_eq!(number(&get(&service, "/metrics"), "navlocks_recovering"), 1.0);
}

#[test]
fn token_of_a_tenant_shows_no_counts_of_others() {
    let tokens = "one:secret-of-the-first\ntwo:secret-of-the-second";
    let access = Access::from_text(tokens).unwrap();
    let access = access.with_scrapers(Access::from_text("secret-of-scrapers").unwrap());
    let service = Running::with(|config| config.access = access);
    let mut one = with_token(service.tcp(), "secret-of-the-first");
    one.hold(1, "a");
    let read = |token: &str| {
        let line = format!("Authorization: Bearer {token}");
        ask(&service, &format!("GET /metrics HTTP/1.1\r\nHost: localhost\r\n{line}\r\n\r\n"))
    };
    let own = read("secret-of-the-first");
    let mine = "navlocks_tenant_requests{tenant=\"one\",transport=\"tcp\"} 1\n";
    assert!(own.contains(mine), "{own}");
    assert!(!own.contains("two") && !own.contains("navlocks_locks_held"), "{own}");
    let other = read("secret-of-the-second");
    assert!(!other.contains("one") && !other.contains("navlocks_locks_held"), "{other}");
    let all = read("secret-of-scrapers");
    assert!(all.contains(mine) && all.contains("navlocks_locks_held 1\n"), "{all}");
    assert!(get(&service, "/metrics").starts_with("HTTP/1.1 401"));
    // The token opens nothing else.
    let answer = ask(
        &service,
        "GET /metrics HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer nothing-that-is-known\r\n\r\n",
    );
    assert!(answer.starts_with("HTTP/1.1 401"), "{answer}");
}

#[test]
fn token_of_scrapers_closes_metrics_of_an_open_service_and_opens_no_locks() {
    let access = Access::default().with_scrapers(Access::from_text("secret-of-scrapers").unwrap());
    let service = Running::with(|config| config.access = access);
    assert!(get(&service, "/metrics").starts_with("HTTP/1.1 401"));
    let (mut open, _) = Client::tcp(service.tcp());
    open.hold(1, "a");
}

#[test]
fn other_paths_and_methods_are_refused_in_a_sentence() {
    let service = Running::start();
    assert!(get(&service, "/other").starts_with("HTTP/1.1 404"));
    let post = "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n";
    assert!(ask(&service, post).starts_with("HTTP/1.1 405"));
    assert!(get(&service, "/").starts_with("HTTP/1.1 426"));
}

#[test]
fn a_handshake_of_another_kind_is_refused_in_a_sentence() {
    let service = Running::start();
    for (change, status, sentence) in [
        (("Sec-WebSocket-Protocol", None), "426", "subprotocol navlocks.2"),
        (("Sec-WebSocket-Protocol", Some("mqtt")), "426", "subprotocol navlocks.2"),
        (
            ("Sec-WebSocket-Protocol", Some("navlocks.9, mqtt, navlocks.8")),
            "426",
            "this service speaks navlocks.2, and the client navlocks.9, navlocks.8:",
        ),
        (("Sec-WebSocket-Version", Some("8")), "426", "version 13"),
        (("Sec-WebSocket-Key", None), "400", "Sec-WebSocket-Key"),
        (("Upgrade", Some("h2c")), "426", "WebSocket"),
        (("Connection", None), "426", "WebSocket"),
    ] {
        let answer = handshake(&service, change);
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{change:?}: {answer}");
        assert!(answer.contains(sentence), "{change:?}: {answer}");
    }
}

#[test]
fn what_is_no_http_is_refused_and_others_are_served() {
    let service = Running::start();
    let (mut other, _) = Client::tcp(service.tcp());
    for garbage in ["\0\0\0\0\r\n\r\n", "GET\r\n\r\n", "\x16\x03\x01\x02\x00\x01\r\n\r\n"] {
        let answer = ask(&service, garbage);
        assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 400"), "{answer}");
    }
    let long = format!("GET / HTTP/1.1\r\nX: {}\r\n\r\n", "x".repeat(100_000));
    let mut stream = tcp_stream(service.tcp());
    // The service may close before all of it is written.
    let _may_fail = stream.write_all(long.as_bytes());
    let mut answer = Vec::new();
    let _may_be_reset = stream.read_to_end(&mut answer);
    let answer = String::from_utf8_lossy(&answer);
    assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 431"), "{answer}");
    other.hold(1, "a");
}
