//! The page as the service shows it: its files and their headers.

use std::io::{Read as _, Write as _};

use navlocks_server::Config;

use crate::client::tcp_stream;
use crate::running::Running;
use crate::viewer::serve;

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

#[test]
fn dashboard_is_off_unless_asked_for() {
    let without_page = |config: &mut Config| config.dashboard = false;
    for service in [Running::start(), serve(without_page)] {
        for path in ["/dashboard", "/dashboard/app.js"] {
            assert!(get(&service, path, "localhost").starts_with("HTTP/1.1 404"), "{path}");
        }
        assert!(get(&service, "/", "localhost").starts_with("HTTP/1.1 426"));
    }
}

#[test]
fn page_is_served_to_own_names_alone_and_under_a_strict_policy() {
    let service = serve(|config| config.hosts = vec!["locks.example".into()]);
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
    let service = serve(|_| {});
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
                   Sec-WebSocket-Protocol: navlocks.2\r\n";
    assert!(head(&service, "/", upgrade).starts_with("HTTP/1.1 405"));
    assert!(head(&Running::start(), "/", "").starts_with("HTTP/1.1 426"));
}
