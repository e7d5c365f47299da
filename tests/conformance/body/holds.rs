//! Maximum holds: a lock is lost when its time is over.

use std::time::Duration;

use navlocks::{Lock, LossCause, Request, RequestError, RequestErrorKind};

use super::start;
use crate::backend::Backend;
use crate::patience::soon;
use crate::task::Task;
use crate::watch::{caught_up, hold, queue, received, shows, subscribe, words};

const SHORT: Duration = Duration::from_millis(30);
const LONG: Duration = Duration::from_secs(100_000);

/// Requests a lock with a time that ends soon, and a longer one if it ends before the grant is
/// seen: a slow machine may need more.
#[track_caller]
fn hold_briefly(request: impl Fn() -> Request, tag: &str) -> Lock {
    let mut time = SHORT;
    loop {
        match soon(request().max_hold(time).tag(tag)) {
            Err(error) if error == RequestErrorKind::HeldTooLong => time *= 2,
            granted => return granted.unwrap(),
        }
    }
}

/// Waits until a lock has been held for its whole time. On a slow machine the time may be over
/// before the grant is seen.
#[track_caller]
fn outlast(granted: Result<Lock, RequestError>) {
    match granted {
        Ok(lock) => assert_eq!(soon(lock.lost()), LossCause::HeldTooLong),
        Err(error) => assert_eq!(error, RequestErrorKind::HeldTooLong),
    }
}

#[test]
fn h01_lock_is_lost_after_its_time_and_the_next_request_is_granted_then() {
    let arm = start();
    let [locks, other] = arm.clients();
    let mut events = subscribe(&other);
    let lock = hold_briefly(|| locks.request("a"), "lock");
    let mut next = Task::start(other.request("a").tag("next"));
    next.poll();
    assert_eq!(soon(lock.lost()), LossCause::HeldTooLong);
    let next = next.join().unwrap();
    assert!(next.fencing_token() > lock.fencing_token());
    assert_eq!(lock.release(), Err(LossCause::HeldTooLong));
    drop(next);
    let seen = words(&received(&other, &mut events));
    let end = ["lock lost", "next granted", "next released"];
    assert!(seen.ends_with(&end.map(String::from)), "{seen:?}");
}

#[test]
fn h02_time_begins_with_the_grant_and_ends_with_the_release() {
    let arm = start();
    let [locks, other] = arm.clients();
    let first = hold(locks.request("a").max_hold(LONG), "first");
    let waiter = queue(&other, other.request("a").max_hold(SHORT), "waiter");
    // A slow machine may be too late for the release.
    let _released = soon(other.request("b").max_hold(SHORT)).map(Lock::release);
    // It waits for longer than it may hold.
    outlast(soon(locks.request("timer").max_hold(3 * SHORT)));
    shows(&locks, ["first"], ["waiter"]);
    first.release().unwrap();
    outlast(waiter.join());
    // The time of a released lock takes nothing from the next holder.
    let next = hold(locks.request("b"), "next");
    outlast(soon(locks.request("timer").max_hold(2 * SHORT)));
    caught_up(&locks);
    assert_eq!(next.loss(), None);
}

#[test]
fn h03_time_that_is_no_maximum_hold_is_an_error() {
    let arm = start();
    let [locks] = arm.clients();
    for bad in
        [Duration::ZERO, Duration::from_nanos(1), Duration::MAX, Duration::from_millis(1 << 53)]
    {
        let error = soon(locks.request("a").max_hold(bad)).unwrap_err();
        assert_eq!(error, RequestErrorKind::BadMaxHold(bad));
        assert!(error.to_string().contains("is no maximum hold: give one from 1 ms to 2^53 ms"));
    }
    let longest = Duration::from_millis((1 << 53) - 1);
    soon(locks.request("a").max_hold(longest)).unwrap().release().unwrap();
    assert!(soon(locks.request("a").if_available().max_hold(LONG)).unwrap().is_some());
}

#[test]
fn h06_scope_is_lost_on_all_its_names_at_once() {
    let arm = start();
    let [locks, other] = arm.clients();
    let lock = hold_briefly(|| locks.request(["a", "b"]), "lock");
    let mut next = Task::start(other.request(["b", "c"]).tag("next"));
    next.poll();
    assert_eq!(soon(lock.lost()), LossCause::HeldTooLong);
    drop(next.join().unwrap());
    assert!(soon(other.request("a").if_available()).unwrap().is_some());
}

#[test]
fn h08_query_shows_how_much_of_the_time_is_left() {
    let arm = start();
    let [locks, other] = arm.clients();
    let lock = hold(locks.request("a").max_hold(LONG), "lock");
    let _waiter = queue(&other, other.request("a").max_hold(LONG), "waiter");
    let now = shows(&other, ["lock"], ["waiter"]);
    let left = now.held[0].left.unwrap();
    assert!(left <= LONG && left + now.held[0].age >= LONG - Duration::from_secs(1), "{left:?}");
    assert_eq!(now.pending[0].left, None);
    lock.release().unwrap();
    let now = shows(&other, ["waiter"], []);
    assert!(now.held[0].left.is_some());
}
