//! Access: which clients may come in, and which locks they share.

mod certificates;

use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use navlocks_server::{Access, Config, SharedOrigins};
use navlocks_wire::{FaultCode, Over, Reply, ToClient, Why};
use tokio_tungstenite::tungstenite;

use crate::client::{Client, Stream, handshake, tcp_stream};
use crate::running::{Folder, Running};

const TOKENS: &str =
    "# two tenants\nbakery:0123456789abcdef-b\nforge:0123456789abcdef-f\n\n0123456789abcdef-0\n";

fn with_tokens(config: &mut Config) {
    config.access = Access::from_text(TOKENS).expect("tokens");
}

/// A connection with these headers, which has not said hello.
fn connect(address: SocketAddr, headers: &[(&'static str, &str)]) -> Client {
    let mut request = handshake();
    for (name, value) in headers {
        request.headers_mut().insert(*name, value.parse().expect("a header"));
    }
    let stream: Box<dyn Stream> = Box::new(tcp_stream(address));
    match tungstenite::client::client(request, stream) {
        Ok((socket, _)) => Client(socket),
        Err(error) => panic!("the handshake failed: {error}"),
    }
}

pub(crate) fn with_token(address: SocketAddr, token: &str) -> Client {
    let mut client = connect(address, &[("Authorization", &format!("Bearer {token}"))]);
    client.hello();
    client
}

pub(crate) fn with_origin(address: SocketAddr, origin: &str) -> Client {
    connect(address, &[("Origin", origin)])
}

/// Whether a name is free for a client.
fn is_free(client: &mut Client, id: u64, name: &str) -> bool {
    client.say(format!(r#"{{"request":{{"id":{id},"names":["{name}"],"wait":"if-available"}}}}"#));
    match client.hear() {
        ToClient::Granted(_) => true,
        ToClient::Over(Over { why: Why::Unavailable, .. }) => false,
        other => panic!("neither granted nor unavailable: {other:?}"),
    }
}

#[test]
fn without_a_known_token_nobody_comes_in() {
    let service = Running::with(with_tokens);
    for headers in [
        &[][..],
        &[("Authorization", "Bearer 0123456789abcdef-x")],
        &[("Authorization", "Bearer 0123456789abcdef-")],
        &[("Authorization", "Bearer bakery:0123456789abcdef-b")],
        &[("Authorization", "Basic 0123456789abcdef-b")],
        &[("Sec-WebSocket-Protocol", "navlocks.2, navlocks.token.!!!")],
    ] {
        let mut client = connect(service.tcp(), headers);
        assert_eq!(client.error(), (FaultCode::Unauthorized, 1008), "{headers:?}");
    }
    // The Unix socket is its user's, who needs none.
    Client::unix(service.unix()).hold(1, "a");
}

#[test]
fn d19_each_tenant_has_its_own_locks() {
    let service = Running::with(with_tokens);
    let mut bakery = with_token(service.tcp(), "0123456789abcdef-b");
    let mut forge = with_token(service.tcp(), "0123456789abcdef-f");
    let mut nameless = with_token(service.tcp(), "0123456789abcdef-0");
    for client in [&mut bakery, &mut forge, &mut nameless] {
        assert!(is_free(client, 1, "oven"));
    }
    let protocol = format!("navlocks.token.{}", URL_SAFE_NO_PAD.encode("0123456789abcdef-b"));
    let protocols = format!("navlocks.2, {protocol}");
    let mut page = connect(service.tcp(), &[("Sec-WebSocket-Protocol", &protocols)]);
    page.hello();
    assert!(!is_free(&mut page, 1, "oven"));
    // The nameless tenant is the one of the Unix socket.
    assert!(!is_free(&mut Client::unix(service.unix()), 1, "oven"));
}

#[test]
fn d19_questions_do_not_reach_into_other_partitions() {
    let service = Running::with(with_tokens);
    let mut bakery = with_token(service.tcp(), "0123456789abcdef-b");
    bakery.hold(1, "oven");
    bakery.say_all([
        r#"{"request":{"id":2,"names":["oven"]}}"#,
        r#"{"ask":{"id":1,"question":{"locks":"partition"}}}"#,
    ]);
    let ToClient::Answer(answer) = bakery.hear() else { panic!("no answer") };
    let Reply::Locks { held, pending } = answer.reply else { panic!("no snapshot") };
    let (held, pending) = (held[0].about.request, pending[0].about.request);
    let mut forge = with_token(service.tcp(), "0123456789abcdef-f");
    forge.listen();
    forge.say_all([
        r#"{"ask":{"id":1,"question":{"locks":"partition"}}}"#.to_owned(),
        format!(r#"{{"ask":{{"id":1,"question":{{"blockers":"{pending}"}}}}}}"#),
        format!(r#"{{"ask":{{"id":1,"question":{{"contended":"{held}"}}}}}}"#),
        r#"{"ask":{"id":1,"question":{"force-release":"oven"}}}"#.to_owned(),
    ]);
    for nothing in [
        Reply::Locks { held: vec![], pending: vec![] },
        Reply::Blockers { hard: vec![], soft: vec![] },
        Reply::Contended(false),
        Reply::Released(0),
    ] {
        let ToClient::Answer(answer) = forge.hear() else { panic!("no answer") };
        assert_eq!(answer.reply, nothing);
    }
    bakery.say(r#"{"end":1}"#);
    bakery.granted(2);
    forge.settle();
}

#[test]
fn f08_partitions_of_one_tenant_are_independent() {
    let service = Running::start();
    let mut client = Client::unix(service.unix());
    client.hold(1, "a");
    let mut other = Client::tcp_hello(service.tcp(), r#"{"partition":"other"}"#);
    other.welcome();
    other.hold(1, "a");
}

#[test]
fn f09_an_opaque_origin_is_refused() {
    let service = Running::with(|config| config.allow_origins = vec!["null".to_owned()]);
    let mut page = with_origin(service.tcp(), "null");
    let ToClient::Error(fault) = page.hear() else { panic!("not refused") };
    assert_eq!(fault.code, FaultCode::ForbiddenOrigin);
    assert_eq!(fault.code.dom_exception_name(), "SecurityError");
}

#[test]
fn only_pages_of_listed_origins_come_in() {
    let service =
        Running::with(|config| config.allow_origins = vec!["https://Shop.example/".to_owned()]);
    with_origin(service.tcp(), "https://shop.example").hello();
    for origin in [
        "https://evil.example",
        "http://shop.example",
        "https://shop.example:8443",
        "https://shop.example.evil.example",
        "http://localhost",
    ] {
        let mut page = with_origin(service.tcp(), origin);
        assert_eq!(page.error(), (FaultCode::ForbiddenOrigin, 1008), "{origin}");
    }
}

#[test]
fn f133_locks_do_not_reach_across_origins() {
    let origins = ["https://a.example", "https://b.example"];
    let service =
        Running::with(|config| config.allow_origins = origins.map(str::to_owned).to_vec());
    let mut pages = origins.map(|origin| with_origin(service.tcp(), origin));
    for page in &mut pages {
        page.hello();
        assert!(is_free(page, 1, "a"));
    }
    // A program is of no origin.
    assert!(is_free(&mut Client::tcp(service.tcp()).0, 1, "a"));
    let mut same = with_origin(service.tcp(), origins[0]);
    same.hello();
    assert!(!is_free(&mut same, 1, "a"));
}

/// Connects to the Unix socket as a program that shares the locks of an origin.
fn unix_with_origin(path: &Path, origin: &str) -> Client {
    let mut request = handshake();
    request.headers_mut().insert("Origin", origin.parse().expect("a header"));
    let stream: Box<dyn Stream> = Box::new(UnixStream::connect(path).expect("a socket"));
    match tungstenite::client::client(request, stream) {
        Ok((socket, _)) => Client(socket),
        Err(error) => panic!("the handshake failed: {error}"),
    }
}

#[test]
fn origins_that_the_operator_shares_have_one_lock_space() {
    let service = Running::with(|config| {
        config.allow_origins = vec!["https://other.example".to_owned()];
        let list = "https://Shop.example, http://localhost:3000/";
        config.shared_origins = vec![SharedOrigins::parse(list).expect("two origins")];
    });
    let mut first = with_origin(service.tcp(), "https://shop.example");
    assert_eq!(first.hello().origin, "https://shop.example");
    assert!(is_free(&mut first, 1, "a"));
    let mut second = with_origin(service.tcp(), "http://localhost:3000");
    assert_eq!(second.hello().origin, "https://shop.example");
    assert!(!is_free(&mut second, 1, "a"));
    // Programs join by an origin of the list, also over the Unix socket.
    let mut program = unix_with_origin(service.unix(), "http://localhost:3000");
    assert_eq!(program.hello().origin, "https://shop.example");
    assert!(!is_free(&mut program, 1, "a"));
    let mut other = with_origin(service.tcp(), "https://other.example");
    assert_eq!(other.hello().origin, "https://other.example");
    assert!(is_free(&mut other, 1, "a"));
    assert!(is_free(&mut Client::tcp(service.tcp()).0, 1, "a"));
    let mut stranger = unix_with_origin(service.unix(), "https://evil.example");
    assert_eq!(stranger.error(), (FaultCode::ForbiddenOrigin, 1008));
}

#[test]
fn origins_shared_with_programs_have_the_lock_space_of_programs() {
    let service = Running::with(|config| {
        let list = "https://shop.example,programs";
        config.shared_origins = vec![SharedOrigins::parse(list).expect("an origin")];
    });
    let mut page = with_origin(service.tcp(), "https://shop.example");
    assert_eq!(page.hello().origin, "");
    assert!(is_free(&mut page, 1, "a"));
    assert!(!is_free(&mut Client::tcp(service.tcp()).0, 1, "a"));
    assert!(!is_free(&mut Client::unix(service.unix()), 1, "a"));
}

#[test]
fn lists_of_shared_origins_that_mean_nothing_are_errors() {
    for (list, says) in [
        ("https://shop.example", "name two at least"),
        ("programs", "name two at least"),
        ("https://shop.example,shop.example", "is no web origin"),
        ("https://shop.example,https://m.shop.example/cart", "is no web origin"),
        ("https://shop.example,null", "is no web origin"),
        ("", "is no web origin"),
    ] {
        let error = SharedOrigins::parse(list).expect_err(list).to_string();
        assert!(error.contains(says), "{list}: {error}");
    }
    let twice = |config: &mut Config| {
        let lists = ["https://a.example,https://b.example", "https://b.example,programs"];
        config.shared_origins = lists.map(|list| SharedOrigins::parse(list).expect(list)).to_vec();
    };
    let Err(error) = Running::try_start(Folder::new(), twice) else { panic!("it starts") };
    assert!(error.to_string().contains("https://b.example is listed twice"), "{error}");
}

#[test]
fn other_machines_take_tokens_and_tls() {
    let Err(error) = Running::try_start(Folder::new(), |config| {
        with_tokens(config);
        config.tcp = vec![SocketAddr::from(([0, 0, 0, 0], 0))];
    }) else {
        panic!("it listens to everybody without TLS")
    };
    assert!(error.to_string().contains("--tls-cert"), "{error}");
}

#[test]
fn short_tokens_are_refused_and_not_shown() {
    for text in ["", "# none\n", "bakery:\n", "bakery:0123456789abcde", "short"] {
        let error = Access::from_text(text).expect_err(text).to_string();
        assert!(!error.contains("0123") && !error.contains("short\""), "{error}");
    }
    let access = Access::from_text(TOKENS).unwrap();
    assert!(!format!("{access:?}").contains("0123"));
}

#[test]
fn metrics_take_a_token_where_locks_do() {
    let service = Running::with(with_tokens);
    let get = |headers: &str| {
        let mut stream = tcp_stream(service.tcp());
        let request = format!("GET /metrics HTTP/1.1\r\nHost: localhost\r\n{headers}\r\n");
        std::io::Write::write_all(&mut stream, request.as_bytes()).expect("it listens");
        let mut answer = String::new();
        std::io::Read::read_to_string(&mut stream, &mut answer).expect("an answer");
        answer
    };
    assert!(get("").starts_with("HTTP/1.1 401"));
    assert!(get("Authorization: Bearer 0123456789abcdef-f\r\n").starts_with("HTTP/1.1 200"));
}

#[test]
fn tokens_are_read_again_and_a_removed_one_ends_its_sessions() {
    let folder = Folder::new();
    let file = folder.path().join("tokens");
    std::fs::write(&file, TOKENS).expect("a file");
    let only_ours = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    std::fs::set_permissions(&file, only_ours).expect("our own file");
    let path = file.clone();
    let service = Running::with(|config| {
        config.access = Access::from_file(&path).expect("tokens");
        config.limits.reload_interval = Duration::from_millis(10);
    });
    let mut bakery = with_token(service.tcp(), "0123456789abcdef-b");
    let mut forge = with_token(service.tcp(), "0123456789abcdef-f");
    bakery.hold(1, "a");
    forge.hold(1, "a");
    // Not a token file: everything stays as it is.
    std::fs::write(&file, "short\n").expect("a file");
    std::fs::write(&file, "bakery:0123456789abcdef-b\nmill:0123456789abcdef-m\n").expect("a file");
    assert_eq!(forge.error().0, FaultCode::Unauthorized);
    with_token(service.tcp(), "0123456789abcdef-m").hold(1, "a");
    // Its session has gone on.
    assert!(!is_free(&mut with_token(service.tcp(), "0123456789abcdef-b"), 1, "a"));
    bakery.say(r#"{"end":1}"#);
    bakery.settle();
    let mut refused = connect(service.tcp(), &[("Authorization", "Bearer 0123456789abcdef-f")]);
    assert_eq!(refused.error().0, FaultCode::Unauthorized);
}
