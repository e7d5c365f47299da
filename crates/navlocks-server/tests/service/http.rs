//! The answers of the service to plain HTTP.

use std::io::{Read as _, Write as _};

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
        ("Sec-WebSocket-Protocol", "navlocks.1"),
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
    second.say(r#"{"release":2}"#);
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
        "navlocks_sessions 2\n",
        "navlocks_partitions 1\n",
        "navlocks_slots 0\n",
        "navlocks_slots_recovering 0\n",
        "navlocks_grants_total 3\n",
        "navlocks_steals_total 1\n",
        "navlocks_losses_total 1\n",
        "navlocks_frames_rejected_total 1\n",
        "navlocks_request_wait_seconds_count 3\n",
        "navlocks_lock_hold_seconds_count 2\n",
        "navlocks_leases_lapsed_total 0\n",
        "# EOF\n",
    ] {
        assert!(text.contains(line), "{line} is missing in {text}");
    }
    assert!(text.contains("navlocks_connections "), "{text}");
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
        (("Sec-WebSocket-Protocol", None), "426", "subprotocol navlocks.1"),
        (("Sec-WebSocket-Protocol", Some("navlocks.2, mqtt")), "426", "subprotocol navlocks.1"),
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
