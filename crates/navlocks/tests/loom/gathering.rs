//! A space that is divided and gathered while others are on their way. `a` and `b` are in different
//! parts.

use std::future::IntoFuture;

use loom::future::block_on;
use loom::thread;
use navlocks::{Locks, Loss};
use navlocks_core::LockManager;

use crate::{assert_nothing_left, begin_to_wait, held, hold, model, waiter};

#[test]
fn names_of_these_tests_are_in_different_shards() {
    let shard = |name: &str| LockManager::shard_of::<2>(&name.into());
    assert_ne!(shard("a"), shard("b"));
}

#[test]
fn a_scope_meets_locks_of_its_names() {
    model(|| {
        let locks = Locks::new();
        let first = hold(locks.request("a"));
        let other = thread::spawn({
            let locks = locks.clone();
            move || drop(hold(locks.request(["a", "b"])))
        });
        drop(first);
        drop(hold(locks.request("b")));
        other.join().unwrap();
        assert_nothing_left(&locks, "a");
    });
}

/// Who waited in its part is granted in the whole, and woken.
#[test]
fn a_scope_meets_a_request_that_waits() {
    model(|| {
        let locks = Locks::new();
        let first = hold(locks.request("a"));
        let next = waiter(locks.request("a"));
        let other = thread::spawn({
            let locks = locks.clone();
            move || drop(hold(locks.request(["b", "c"])))
        });
        drop(first);
        next.join().unwrap().unwrap().release().unwrap();
        other.join().unwrap();
        assert_nothing_left(&locks, "a");
    });
}

/// Nothing is left in the whole, so the names go back to their parts; others ask for them
/// meanwhile.
#[test]
fn a_division_meets_a_request() {
    model(|| {
        let locks = Locks::new();
        let both = hold(locks.request(["a", "b"]));
        let next = waiter(locks.request("a"));
        drop(both);
        drop(hold(locks.request("b")));
        next.join().unwrap().unwrap().release().unwrap();
        assert_nothing_left(&locks, "a");
    });
}

#[test]
fn a_division_meets_a_scope() {
    model(|| {
        let locks = Locks::new();
        let both = hold(locks.request(["a", "b"]));
        let other = waiter(locks.request(["b", "c"]));
        drop(both);
        other.join().unwrap().unwrap().release().unwrap();
        assert_nothing_left(&locks, "b");
    });
}

/// All that a client has in several parts ends in one step.
#[test]
fn an_end_in_two_parts_meets_a_query() {
    model(|| {
        let locks = Locks::new();
        let ending = locks.new_client();
        let (one, two) = (hold(ending.request("a")), hold(ending.request("b")));
        let waiting = begin_to_wait(locks.request("b"));
        let other = thread::spawn({
            let ending = ending.clone();
            move || ending.end()
        });
        let seen = held(&locks);
        let before = [one.request_id(), two.request_id()];
        assert!(seen == before || seen.len() == 1 && !before.contains(&seen[0]), "{seen:?}");
        other.join().unwrap();
        let next = block_on(waiting.into_future()).unwrap();
        assert_eq!(one.release(), Err(Loss::ClientEnded));
        assert_eq!(two.release(), Err(Loss::ClientEnded));
        drop(next);
        assert_nothing_left(&locks, "a");
    });
}

/// A loss that nobody heard of yet is remembered, wherever it happened.
#[test]
fn a_scope_meets_a_theft() {
    model(|| {
        let locks = Locks::new();
        let robbed = hold(locks.request("a"));
        let other = thread::spawn({
            let locks = locks.clone();
            move || drop(hold(locks.request(["b", "c"])))
        });
        drop(hold(locks.request("a").steal()));
        other.join().unwrap();
        drop(hold(locks.request("b")));
        assert!(matches!(robbed.loss(), Some(Loss::Stolen { .. })));
        assert!(matches!(robbed.release(), Err(Loss::Stolen { .. })));
        assert_nothing_left(&locks, "a");
    });
}
