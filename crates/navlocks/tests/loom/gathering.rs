//! A space that is divided and gathered while requests are pending. `a` and `b` are in different
//! shards.

use std::future::IntoFuture;

use loom::future::block_on;
use loom::thread;
use navlocks::{Locks, LossCause};
use navlocks_core::LockManager;

use crate::{assert_nothing_left, begin_to_wait, held, hold, model, waiter};

#[test]
fn names_of_these_tests_are_in_different_shards() {
    let shard = |name: &str| LockManager::shard_of::<2>(&name.into());
    assert_ne!(shard("a"), shard("b"));
}

#[test]
fn scope_races_with_locks_of_its_names() {
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

/// A waiter of a shard is granted in the whole, and woken.
#[test]
fn scope_races_with_pending_request() {
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

/// The whole is empty, so the names go back to their shards; another thread requests them
/// meanwhile.
#[test]
fn division_races_with_request() {
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
fn division_races_with_scope() {
    model(|| {
        let locks = Locks::new();
        let both = hold(locks.request(["a", "b"]));
        let other = waiter(locks.request(["b", "c"]));
        drop(both);
        other.join().unwrap().unwrap().release().unwrap();
        assert_nothing_left(&locks, "b");
    });
}

/// All requests of a client in several shards end in one step.
#[test]
fn end_of_client_in_two_shards_races_with_query() {
    model(|| {
        let locks = Locks::new();
        let ending = locks.new_client();
        let (one, two) = (hold(ending.request("a")), hold(ending.request("b")));
        let waiting = begin_to_wait(locks.request("b"));
        let other = thread::spawn({
            let ending = ending.clone();
            move || ending.end_client()
        });
        let seen = held(&locks);
        let before = [one.request_id(), two.request_id()];
        assert!(seen == before || seen.len() == 1 && !before.contains(&seen[0]), "{seen:?}");
        other.join().unwrap();
        let next = block_on(waiting.into_future()).unwrap();
        assert_eq!(one.release(), Err(LossCause::ClientEnded));
        assert_eq!(two.release(), Err(LossCause::ClientEnded));
        drop(next);
        assert_nothing_left(&locks, "a");
    });
}

/// A loss that its client has not received yet is kept, in the shard or in the whole.
#[test]
fn scope_races_with_theft() {
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
        assert!(matches!(robbed.loss(), Some(LossCause::Stolen { .. })));
        assert!(matches!(robbed.release(), Err(LossCause::Stolen { .. })));
        assert_nothing_left(&locks, "a");
    });
}
