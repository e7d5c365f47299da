//! Leases and resuming: what survives a broken connection, and for how long.

use std::time::{Duration, Instant};

use navlocks_server::Config;
use navlocks_wire::{FaultCode, LossCause, Over, RequestKey, ToClient};
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;

use crate::access::with_origin;
use crate::client::{Client, resumption, tcp_stream};
use crate::running::Running;

const LEASE: Duration = Duration::from_millis(300);

fn short_leases(config: &mut Config) {
    config.limits.lease_min = Duration::from_millis(50);
    config.limits.lease_default = LEASE;
}

/// A request for the same name, which waits.
fn wait_for(service: &Running, name: &str) -> Client {
    let mut waiting = Client::unix(service.unix());
    waiting.say(format!(r#"{{"request":{{"id":1,"names":["{name}"]}}}}"#));
    waiting.settle();
    waiting
}

#[test]
fn a_silent_session_ends_with_its_lease_and_not_before() {
    let service = Running::with(short_leases);
    let (mut silent, welcome) = Client::tcp(service.tcp());
    assert_eq!(welcome.lease_ms, Some(LEASE.as_millis() as u64));
    let said = Instant::now();
    silent.hold(1, "a");
    let mut waiting = wait_for(&service, "a");
    waiting.granted(1);
    assert!(said.elapsed() >= LEASE);
    assert_eq!(silent.error(), (FaultCode::LeaseLapsed, 1008));
}

#[test]
fn a_lease_is_what_the_client_asks_for_within_bounds() {
    let service = Running::with(short_leases);
    for (asked, given) in [(1, 50), (60, 60), (9_999_999, 60_000)] {
        let hello = format!(r#"{{"lease-ms":{asked}}}"#);
        let welcome = Client::tcp_hello(service.tcp(), &hello).welcome();
        assert_eq!(welcome.lease_ms, Some(given));
    }
}

#[test]
fn pings_keep_a_session() {
    let service = Running::with(short_leases);
    let (mut client, _) = Client::tcp(service.tcp());
    client.hold(1, "a");
    let mut waiting = wait_for(&service, "a");
    let begin = Instant::now();
    while begin.elapsed() < LEASE * 3 {
        client.settle();
        std::thread::yield_now();
    }
    waiting.settle();
    client.say(r#"{"end":1}"#);
    waiting.granted(1);
}

#[test]
fn f125_a_broken_tcp_connection_is_given_its_lease() {
    let service = Running::with(short_leases);
    let (mut broken, _) = Client::tcp(service.tcp());
    let said = Instant::now();
    broken.hold(1, "a");
    let mut waiting = wait_for(&service, "a");
    drop(broken);
    waiting.granted(1);
    assert!(said.elapsed() >= LEASE);
}

#[test]
fn f125_the_end_of_a_unix_connection_is_the_end_of_its_locks() {
    let service = Running::start();
    let mut holder = Client::unix(service.unix());
    holder.hold(1, "a");
    let mut waiting = wait_for(&service, "a");
    drop(holder);
    waiting.granted(1);
}

#[test]
fn bye_ends_a_session_at_once() {
    // Leases so long that the test would not see their end.
    let service = Running::start();
    let (mut holder, _) = Client::tcp(service.tcp());
    holder.hold(1, "a");
    let mut waiting = wait_for(&service, "a");
    holder.say(r#""bye""#);
    waiting.granted(1);
}

#[test]
fn close_frame_without_bye_leaves_the_session_to_its_next_connection() {
    let service = Running::start();
    let (mut holder, welcome) = Client::tcp(service.tcp());
    let token = holder.hold(1, "a");
    let mut waiting = wait_for(&service, "a");
    holder.0.close(None).expect("a close frame");
    // The service answers it, and has taken it then.
    while holder.0.read().is_ok() {}
    waiting.settle();
    let mut holder = Client::resume(service.tcp(), &welcome);
    assert!(holder.welcome().resumed);
    holder.name_all(&[&format!(r#""id":1,"names":["a"],"token":{token}"#)]);
    holder.settle();
    waiting.settle();
    holder.say(r#"{"end":1}"#);
    waiting.granted(1);
}

#[test]
fn close_code_of_a_gone_page_ends_the_session_of_a_page_alone() {
    let origin = "https://a.example";
    let service = Running::with(|config| config.allow_origins = vec![origin.to_owned()]);
    // Browsers close with 1001 when a page or worker is gone; no script can send that code.
    for (from, code, ends) in [
        (origin, CloseCode::Away, true),
        (origin, CloseCode::Normal, false),
        ("", CloseCode::Away, false),
    ] {
        let holder = || match from {
            "" => Client::silent(tcp_stream(service.tcp())),
            _ => with_origin(service.tcp(), from),
        };
        let mut first = holder();
        let welcome = first.hello();
        let token = first.hold(1, "a");
        let mut waiting = holder();
        waiting.hello();
        waiting.say(r#"{"request":{"id":1,"names":["a"]}}"#);
        waiting.settle();
        first.0.close(Some(CloseFrame { code, reason: "".into() })).expect("a close frame");
        while first.0.read().is_ok() {}
        if !ends {
            waiting.settle();
            let mut next = holder();
            next.say(resumption(&welcome));
            assert!(next.welcome().resumed, "{from} {code:?}");
            next.name_all(&[&format!(r#""id":1,"names":["a"],"token":{token}"#)]);
            next.settle();
            next.leave();
        }
        assert!(waiting.granted(1) > token);
        waiting.leave();
    }
}

#[test]
fn leases_of_an_embedder_without_bounds_are_leases() {
    let unbounded = |config: &mut Config| {
        config.limits.lease_max = Duration::MAX;
        config.limits.lease_default = Duration::MAX;
        config.limits.closing_max = Duration::MAX;
        config.limits.handshake_max = Duration::MAX;
        config.limits.stranger_time_min = Duration::MAX;
        config.limits.tokens_reserved_ahead = 1 << 40;
    };
    let service = Running::with(unbounded);
    let (mut holder, welcome) = Client::tcp(service.tcp());
    let token = holder.hold(1, "a");
    drop(holder);
    let service = Running::again(service.kill(), unbounded);
    let mut holder = Client::silent(tcp_stream(service.tcp()));
    holder.claims(&welcome, &[&format!(r#""id":1,"names":["a"],"token":{token}"#)]);
    holder.settle();
    // Its state is lost, so the next service waits for the longest lease.
    let folder = service.kill();
    std::fs::write(folder.path().join("state/service.json"), "lost").expect("a state file");
    let service = Running::again(folder, unbounded);
    let mut waiting = wait_for(&service, "b");
    waiting.settle();
    drop(waiting);
    service.end();
}

#[test]
fn a_resumed_session_goes_on_where_it_was() {
    let service = Running::start();
    let (mut client, welcome) = Client::tcp(service.tcp());
    let token = client.hold(1, "a");
    client.hold(2, "b");
    let mut holder = Client::unix(service.unix());
    holder.hold(1, "c");
    client.say(r#"{"request":{"id":3,"names":["c"]}}"#);
    client.settle();
    drop(client);
    let mut client = Client::resume(service.tcp(), &welcome);
    let again = client.welcome();
    assert!(again.resumed);
    assert_eq!((again.session, &again.secret), (welcome.session, &welcome.secret));
    // Held: granted again with the same token. Pending: keeps its place. Never arrived: is made
    // now.
    client.name_all(&[
        r#""id":1,"names":["a"]"#,
        r#""id":3,"names":["c"]"#,
        r#""id":4,"names":["d"]"#,
    ]);
    assert_eq!(client.granted(1), token);
    client.granted(4);
    // Not wanted any more: released.
    let mut other = Client::unix(service.unix());
    other.hold(1, "b");
    holder.say(r#"{"end":1}"#);
    client.granted(3);
}

#[test]
fn a_grant_that_got_lost_is_told_again() {
    let service = Running::start();
    let mut holder = Client::unix(service.unix());
    holder.hold(1, "a");
    let (mut client, welcome) = Client::tcp(service.tcp());
    client.say(r#"{"request":{"id":1,"names":["a"]}}"#);
    client.settle();
    drop(client);
    holder.say(r#"{"end":1}"#);
    holder.settle();
    let mut client = Client::resume(service.tcp(), &welcome);
    client.welcome();
    client.name_all(&[r#""id":1,"names":["a"]"#]);
    // It may have been granted just after the resume as well, and is then told twice.
    let token = client.granted(1);
    client.say(r#"{"ping":1}"#);
    match client.hear() {
        ToClient::Granted(again) => assert_eq!((again.id, again.token), (1, token)),
        other => assert_eq!(other, ToClient::Pong(1)),
    }
}

#[test]
fn a_loss_that_got_lost_is_told_after_the_welcome() {
    let service = Running::start();
    let (mut client, welcome) = Client::tcp(service.tcp());
    client.hold(1, "a");
    client.hold(2, "b");
    drop(client);
    let (mut thief, thiefs) = Client::tcp(service.tcp());
    thief.say(r#"{"request":{"id":1,"names":["a","b"],"wait":"steal","tag":"nightly"}}"#);
    thief.granted(1);
    thief.leave();
    let mut client = Client::resume(service.tcp(), &welcome);
    assert!(client.welcome().resumed);
    let cause = LossCause::Stolen(RequestKey::new(thiefs.session, 1));
    // The thief is described although it has left.
    let lost = ToClient::Over(Over::lost_to(1, cause, Some("nightly".into())));
    client.name_all(&[r#""id":1,"names":["a"],"token":1"#]);
    assert_eq!(client.hear(), lost);
    client.say(r#"{"end":1}"#);
    client.settle();
}

#[test]
fn only_who_knows_the_secret_can_resume() {
    let service = Running::start();
    let (mut client, mut welcome) = Client::tcp(service.tcp());
    welcome.secret.replace_range(0..1, if welcome.secret.starts_with('A') { "B" } else { "A" });
    let mut stranger = Client::resume(service.tcp(), &welcome);
    assert_eq!(stranger.error(), (FaultCode::UnknownSession, 1008));
    welcome.session += 1000;
    let mut lost = Client::resume(service.tcp(), &welcome);
    assert_eq!(lost.error(), (FaultCode::UnknownSession, 1008));
    client.settle();
}

#[test]
fn a_lapsed_session_cannot_be_resumed() {
    let service = Running::with(short_leases);
    let (mut client, welcome) = Client::tcp(service.tcp());
    client.hold(1, "a");
    let mut waiting = wait_for(&service, "a");
    drop(client);
    waiting.granted(1);
    let mut late = Client::resume(service.tcp(), &welcome);
    assert_eq!(late.error(), (FaultCode::UnknownSession, 1008));
}

#[test]
fn the_last_of_several_resumes_has_the_session() {
    let service = Running::start();
    let (mut first, welcome) = Client::tcp(service.tcp());
    let token = first.hold(1, "a");
    let mut connections = vec![first];
    for _ in 0..20 {
        let mut next = Client::resume(service.tcp(), &welcome);
        next.welcome();
        let earlier = connections.last_mut().expect("there is one");
        assert_eq!(earlier.error(), (FaultCode::Replaced, 1008));
        connections.push(next);
    }
    let mut last = connections.pop().expect("there is one");
    // That the others are gone changes nothing.
    drop(connections);
    last.name_all(&[r#""id":1,"names":["a"]"#]);
    assert_eq!(last.granted(1), token);
}

#[test]
fn a_replaced_connection_has_no_say_any_more() {
    let service = Running::start();
    let (mut first, welcome) = Client::tcp(service.tcp());
    first.hold(1, "a");
    let mut next = Client::resume(service.tcp(), &welcome);
    next.welcome();
    // Both a message and its end come too late.
    let _may_be_closed = first.0.send(r#"{"end":1}"#.into());
    drop(first);
    next.settle();
    let mut other = Client::unix(service.unix());
    other.say(r#"{"request":{"id":1,"names":["a"],"wait":"if-available"}}"#);
    assert_eq!(other.hear(), ToClient::Over(Over::unavailable(1)));
}

#[test]
fn listening_goes_on_after_a_resume() {
    let service = Running::start();
    let (mut listener, welcome) = Client::tcp(service.tcp());
    listener.listen();
    drop(listener);
    let mut listener = Client::resume(service.tcp(), &welcome);
    listener.welcome();
    listener.name_all(&[]);
    listener.settle();
    let mut other = Client::unix(service.unix());
    other.hold(1, "a");
    assert!(matches!(listener.hear(), ToClient::Event(_)));
}

#[test]
fn hello_that_its_client_has_closed_takes_the_session_from_no_other_connection() {
    let service = Running::start();
    let (mut holder, welcome) = Client::tcp(service.tcp());
    holder.hold(1, "a");
    let mut late = Client::silent(tcp_stream(service.tcp()));
    let hello = resumption(&welcome);
    late.0.write(hello.into()).expect("a buffer");
    // Both arrive at one moment.
    late.0.close(None).expect("a close frame");
    while late.0.read().is_ok() {}
    holder.settle();
}

#[test]
fn resumed_session_may_name_more_than_one_message_has_room_for() {
    let service = Running::with(|config| config.limits.message_bytes_max = 4 << 10);
    let (mut client, welcome) = Client::tcp(service.tcp());
    let partition = "p".repeat(250);
    let opens =
        (1..100).map(|id| format!(r#"{{"open":{{"client":{id},"partition":"{partition}"}}}}"#));
    let opens: Vec<String> = opens.collect();
    let request = |id: u64| format!(r#""id":{id},"client":{},"names":["{id}"]"#, id % 100);
    client.say_all(opens.clone());
    client.say_all((1..1000).map(|id| format!(r#"{{"request":{{{}}}}}"#, request(id))));
    let tokens: Vec<u64> = (1..1000).map(|id| client.granted(id)).collect();
    drop(client);
    let mut client = Client::resume(service.tcp(), &welcome);
    assert!(client.welcome().resumed);
    client.say(r#"{"open":{"client":0}}"#);
    client.say_all(opens);
    // The last one is released, because it is not named.
    let held = (1..999).zip(&tokens);
    let held =
        held.map(|(id, token)| format!(r#"{{"request":{{{},"token":{token}}}}}"#, request(id)));
    client.say_all(held.chain([r#""claimed""#.to_owned()]));
    client.settle();
    client.say(r#"{"request":{"id":1001,"client":99,"names":["999"]}}"#);
    assert!(client.granted(1001) > tokens[998]);
    client.say(r#"{"request":{"id":1002,"client":98,"names":["998"],"wait":"if-available"}}"#);
    assert_eq!(client.hear(), ToClient::Over(Over::unavailable(1002)));
}
