//! Holders: held locks after a restart.

use navlocks_wire::{LossCause, Over, Reply, ToClient};

use super::{lost, orphaned, recovery, request, restart};
use crate::client::Client;
use crate::running::Running;

#[test]
fn held_lock_is_kept_over_a_kill_and_its_token_with_it() {
    let (service, welcome, token, _) = orphaned();
    let mut other = Client::unix(service.unix());
    other.say_all([request(1, "a"), request(2, "b")]);
    // A name that no earlier session has is free at once.
    other.granted(2);
    let held = format!(r#""id":1,"names":["a"],"token":{token}"#);
    let mut holder = Client::claim(service.unix(), &welcome, &[&held]);
    holder.settle();
    assert_eq!(recovery(&mut other), []);
    holder.say(r#"{"end":1}"#);
    assert!(other.granted(1) > token);
}

#[test]
fn ages_of_locks_and_waiters_are_kept_over_a_kill() {
    const MINUTE_MS: u64 = 60_000;
    const YEAR_MS: u64 = 366 * 24 * 60 * MINUTE_MS;
    let service = Running::start();
    let (mut holder, holders) = Client::unix_welcome(service.unix());
    let token = holder.hold(1, "a");
    let (mut waiter, waiters) = Client::unix_welcome(service.unix());
    waiter.say(request(1, "a"));
    waiter.settle();
    let service = restart(service);
    let held = format!(r#""id":1,"names":["a"],"token":{token},"ms":{MINUTE_MS}"#);
    let mut holder = Client::claim(service.unix(), &holders, &[&held]);
    let waiting = format!(r#""id":1,"names":["a"],"ms":{}"#, u64::MAX >> 11);
    let mut waiter = Client::claim(service.unix(), &waiters, &[&waiting]);
    waiter.settle();
    holder.say(r#"{"ask":{"id":1,"question":{"locks":"partition"}}}"#);
    let ToClient::Answer(answer) = holder.hear() else { panic!("not an answer") };
    let Reply::Locks { held, pending } = answer.reply else { panic!("no snapshot") };
    assert!((MINUTE_MS..2 * MINUTE_MS).contains(&held[0].ms), "{held:?}");
    // An age that cannot be is bounded.
    assert!((MINUTE_MS..YEAR_MS).contains(&pending[0].ms), "{pending:?}");
}

#[test]
fn grant_that_got_lost_with_the_service_is_told_again() {
    let service = Running::start();
    let (mut holder, welcome) = Client::unix_welcome(service.unix());
    let token = holder.hold(1, "a");
    let service = restart(service);
    // The client has not read the grant.
    let mut holder = Client::claim(service.unix(), &welcome, &[r#""id":1,"names":["a"]"#]);
    assert_eq!(holder.granted(1), token);
}

#[test]
fn request_that_is_not_claimed_is_released() {
    let (service, welcome, ..) = orphaned();
    let mut other = Client::unix(service.unix());
    other.say(request(1, "a"));
    let _idle = Client::claim(service.unix(), &welcome, &[]);
    other.granted(1);
}

#[test]
fn half_of_a_scope_is_not_claimed() {
    let service = Running::start();
    let (mut holder, welcome) = Client::unix_welcome(service.unix());
    holder.say(r#"{"request":{"id":1,"names":["a","b","c"]}}"#);
    let token = holder.granted(1);
    let service = restart(service);
    let half = format!(r#""id":1,"names":["a","b"],"token":{token}"#);
    let mut holder = Client::claim(service.unix(), &welcome, &[&half]);
    assert_eq!(holder.hear(), lost(1, LossCause::NotReclaimed));
    holder.say(r#"{"request":{"id":2,"names":["a","b","c"],"wait":"if-available"}}"#);
    holder.granted(2);
}

#[test]
fn if_available_waits_until_it_is_known_whether_the_lock_is_free() {
    let (service, welcome, token, _) = orphaned();
    let mut other = Client::unix(service.unix());
    let asks =
        |id: u64| format!(r#"{{"request":{{"id":{id},"names":["a"],"wait":"if-available"}}}}"#);
    other.say(asks(1));
    other.settle();
    let held = format!(r#""id":1,"names":["a"],"token":{token}"#);
    let mut holder = Client::claim(service.unix(), &welcome, &[&held]);
    assert_eq!(other.hear(), ToClient::Over(Over::unavailable(1)));
    holder.say(r#"{"end":1}"#);
    holder.settle();
    other.say(asks(2));
    other.granted(2);
}

#[test]
fn readers_do_not_wait_for_a_reader_that_does_not_come_back() {
    let service = Running::start();
    let mut reader = Client::unix(service.unix());
    reader.say(r#"{"request":{"id":1,"names":["a"],"mode":"shared"}}"#);
    reader.granted(1);
    let service = restart(service);
    let mut other = Client::unix(service.unix());
    other.say(r#"{"request":{"id":1,"names":["a"],"mode":"shared"}}"#);
    other.granted(1);
    other
        .say_all([request(2, "a"), r#"{"request":{"id":3,"names":["a"],"mode":"shared"}}"#.into()]);
    // Neither a writer, nor a reader behind it.
    other.settle();
    drop(reader);
}
