//! Holders that watch their lock.

use std::task::Poll;

use loom::future::block_on;
use loom::thread;
use navlocks::{Locks, LossCause};

use crate::{assert_nothing_left, hold, model, poll};

#[test]
fn contention_watch_races_with_request() {
    model(|| {
        let locks = Locks::new();
        let lock = hold(locks.request("a"));
        let holder = thread::spawn(move || {
            block_on(lock.contended()).unwrap();
            lock.release().unwrap();
        });
        drop(hold(locks.request("a")));
        holder.join().unwrap();
        assert_nothing_left(&locks, "a");
    });
}

#[test]
fn contention_watch_races_with_thief() {
    model(|| {
        let locks = Locks::new();
        let lock = hold(locks.request("a"));
        let holder = thread::spawn(move || block_on(lock.contended()));
        let thief = hold(locks.request("a").steal());
        assert_eq!(
            holder.join().unwrap(),
            Err(LossCause::Stolen { by: thief.request_id().into() })
        );
        drop(thief);
        assert_nothing_left(&locks, "a");
    });
}

#[test]
fn loss_watch_races_with_thief() {
    model(|| {
        let locks = Locks::new();
        let lock = hold(locks.request("a"));
        let holder = thread::spawn(move || block_on(lock.lost()));
        let thief = hold(locks.request("a").steal());
        assert_eq!(holder.join().unwrap(), LossCause::Stolen { by: thief.request_id().into() });
        drop(thief);
        assert_nothing_left(&locks, "a");
    });
}

#[test]
fn loss_watch_races_with_end_of_client() {
    model(|| {
        let locks = Locks::new();
        let ending = locks.new_client();
        let lock = hold(ending.request("a"));
        let holder = thread::spawn(move || block_on(lock.lost()));
        ending.end_client();
        assert_eq!(holder.join().unwrap(), LossCause::ClientEnded);
        assert_nothing_left(&locks, "a");
    });
}

/// A watch that ends leaves another watch of the same lock alone.
#[test]
fn watch_that_ends_leaves_other_watch() {
    model(|| {
        let locks = Locks::new();
        let lock = hold(locks.request("a"));
        let holder = thread::spawn(move || {
            let mut lost = lock.lost();
            if let Poll::Ready(loss) = poll(&mut lost) {
                return loss;
            }
            let _ = poll(&mut lock.contended());
            block_on(lost)
        });
        let thief = hold(locks.request("a").steal());
        assert_eq!(holder.join().unwrap(), LossCause::Stolen { by: thief.request_id().into() });
        drop(thief);
        assert_nothing_left(&locks, "a");
    });
}
