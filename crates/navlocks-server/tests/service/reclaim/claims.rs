//! Claims: which ones count, and which are refused.

use std::time::{Duration, Instant};

use navlocks_wire::{FaultCode, LossCause, Welcome};

use super::{lost, orphaned, request, restart, short_leases};
use crate::client::{Client, resumption, tcp_stream, unix_stream};
use crate::running::Running;

#[test]
fn claims_that_cannot_be_right_are_refused() {
    let (service, welcome, token, _) = orphaned();
    let strange = Welcome { secret: "AAAAAAAAAAAAAAAAAAAAAA".into(), ..welcome.clone() };
    let unknown = Welcome { session: 99, ..welcome.clone() };
    let later = Welcome { epoch: welcome.epoch + 9, ..welcome.clone() };
    for earlier in [&strange, &unknown, &later] {
        let mut client = Client::silent(unix_stream(service.unix()));
        client.say(resumption(earlier));
        assert_eq!(client.error().0, FaultCode::UnknownSession);
    }
    // Another party cannot have it, though it knows the secret.
    let mut remote = Client::resume(service.tcp(), &welcome);
    assert_eq!(remote.error().0, FaultCode::UnknownSession);
    // A token that was never given, and names that were never held.
    let (wrong, other) = (token + 1, format!(r#""id":2,"names":["b"],"token":{token}"#));
    let wrong = format!(r#""id":1,"names":["a"],"token":{wrong}"#);
    let mut client = Client::claim(service.unix(), &welcome, &[&wrong, &other]);
    assert_eq!(client.hear(), lost(1, LossCause::NotReclaimed));
    assert_eq!(client.hear(), lost(2, LossCause::NotReclaimed));
    client.hold(3, "a");
}

#[test]
fn claim_that_breaks_off_counts_for_nothing_and_can_be_made_again() {
    let (service, welcome, token, _) = orphaned();
    let mut half = Client::silent(unix_stream(service.unix()));
    half.say(resumption(&welcome));
    half.welcome();
    half.settle();
    drop(half);
    // A service that is killed meanwhile forgets nothing either.
    let service = restart(service);
    let mut other = Client::unix(service.unix());
    other.say(request(1, "a"));
    other.settle();
    let held = format!(r#""id":1,"names":["a"],"token":{token}"#);
    let mut holder = Client::claim(service.unix(), &welcome, &[&held]);
    holder.say(r#"{"end":1}"#);
    other.granted(1);
}

#[test]
fn stranger_does_not_end_the_claim_of_a_session_that_it_names() {
    let (service, welcome, token, _) = orphaned();
    let mut holder = Client::silent(unix_stream(service.unix()));
    holder.say(resumption(&welcome));
    holder.welcome();
    // It knows the number, and not the secret; then the secret, and is of another party.
    let strange = Welcome { secret: "AAAAAAAAAAAAAAAAAAAAAA".into(), ..welcome.clone() };
    let mut stranger = Client::silent(unix_stream(service.unix()));
    stranger.say(resumption(&strange));
    assert_eq!(stranger.error().0, FaultCode::UnknownSession);
    let mut other_party = Client::resume(service.tcp(), &welcome);
    assert_eq!(other_party.error().0, FaultCode::UnknownSession);
    holder.name_all(&[&format!(r#""id":1,"names":["a"],"token":{token}"#)]);
    holder.settle();
    let mut other = Client::unix(service.unix());
    other.say(request(1, "a"));
    other.settle();
    holder.say(r#"{"end":1}"#);
    other.granted(1);
}

#[test]
fn held_lock_of_a_client_that_cannot_be_opened_again_is_lost() {
    let service = Running::start();
    let (mut holder, welcome) = Client::unix_welcome(service.unix());
    holder.say(r#"{"open":{"client":1}}"#);
    holder.say(r#"{"request":{"id":1,"client":1,"names":["a"]}}"#);
    let token = holder.granted(1);
    let service =
        Running::again(service.kill(), |config| config.limits.clients_per_session_max = 1);
    let mut holder = Client::silent(unix_stream(service.unix()));
    holder.say(resumption(&welcome));
    holder.welcome();
    holder.say_all([
        r#"{"open":{"client":0}}"#.to_owned(),
        r#"{"open":{"client":1}}"#.to_owned(),
        format!(r#"{{"request":{{"id":1,"client":1,"names":["a"],"token":{token}}}}}"#),
        r#""claimed""#.to_owned(),
    ]);
    assert_eq!(holder.hear(), lost(1, LossCause::NotReclaimed));
    Client::unix(service.unix()).hold(1, "a");
}

#[test]
fn newer_connection_takes_a_claim_over_and_the_older_one_is_told() {
    let (service, welcome, token, _) = orphaned();
    let mut older = Client::silent(unix_stream(service.unix()));
    older.say(resumption(&welcome));
    older.welcome();
    let held = format!(r#""id":1,"names":["a"],"token":{token}"#);
    let mut newer = Client::claim(service.unix(), &welcome, &[&held]);
    assert_eq!(older.error().0, FaultCode::Replaced);
    newer.settle();
}

#[test]
fn release_and_bye_that_cross_a_claim_count() {
    let (service, welcome, token, _) = orphaned();
    let mut other = Client::unix(service.unix());
    other.say(request(1, "a"));
    let mut holder = Client::silent(unix_stream(service.unix()));
    holder.say(resumption(&welcome));
    holder.welcome();
    holder.say_all([
        r#"{"open":{"client":0}}"#.into(),
        format!(r#"{{"request":{{"id":1,"names":["a"],"token":{token}}}}}"#),
        r#"{"end":1}"#.into(),
        r#""claimed""#.into(),
    ]);
    other.granted(1);
    holder.settle();

    let (service, welcome, ..) = orphaned();
    let mut other = Client::unix(service.unix());
    other.say(request(1, "a"));
    let mut holder = Client::silent(unix_stream(service.unix()));
    holder.say(resumption(&welcome));
    holder.say(r#""bye""#);
    other.granted(1);
}

#[test]
fn lease_of_a_claim_that_breaks_off_counts_from_its_last_message() {
    let service = Running::with(short_leases);
    let (mut holder, welcome) = Client::tcp(service.tcp());
    let token = holder.hold(1, "a");
    let lease = Duration::from_millis(welcome.lease_ms.expect("a lease"));
    let begin = Instant::now();
    let service = Running::again(service.kill(), short_leases);
    let mut other = Client::unix(service.unix());
    other.say(request(1, "a"));
    // A client that was welcomed counts its lease from its hello, whatever becomes of its claim.
    while begin.elapsed() < lease * 3 / 4 {
        std::thread::yield_now();
    }
    let mut half = Client::resume(service.tcp(), &welcome);
    assert!(half.welcome().resumed);
    let heard = Instant::now();
    half.settle();
    drop(half);
    assert!(other.granted(1) > token);
    assert!(heard.elapsed() >= lease);
}

#[test]
fn session_over_tcp_claims_within_its_lease() {
    let service = Running::start();
    let (mut holder, welcome) = Client::tcp(service.tcp());
    let token = holder.hold(1, "a");
    let service = restart(service);
    let mut other = Client::unix(service.unix());
    other.say(request(1, "a"));
    let mut holder = Client::silent(tcp_stream(service.tcp()));
    holder.claims(&welcome, &[&format!(r#""id":1,"names":["a"],"token":{token}"#)]);
    holder.settle();
    holder.say(r#"{"end":1}"#);
    assert!(other.granted(1) > token);
}
