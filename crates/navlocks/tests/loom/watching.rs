//! A holder waits for what happens to its lock.

use std::task::Poll;

use loom::future::block_on;
use loom::thread;
use navlocks::{Locks, Loss};

use crate::{assert_nothing_left, hold, model, poll};

#[test]
fn a_holder_who_waits_for_contention_meets_a_request() {
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
fn a_holder_who_waits_for_contention_meets_a_thief() {
    model(|| {
        let locks = Locks::new();
        let lock = hold(locks.request("a"));
        let holder = thread::spawn(move || block_on(lock.contended()));
        let thief = hold(locks.request("a").steal());
        assert_eq!(holder.join().unwrap(), Err(Loss::Stolen { by: thief.request_id() }));
        drop(thief);
        assert_nothing_left(&locks, "a");
    });
}

#[test]
fn a_holder_who_waits_for_loss_meets_a_thief() {
    model(|| {
        let locks = Locks::new();
        let lock = hold(locks.request("a"));
        let holder = thread::spawn(move || block_on(lock.lost()));
        let thief = hold(locks.request("a").steal());
        assert_eq!(holder.join().unwrap(), Loss::Stolen { by: thief.request_id() });
        drop(thief);
        assert_nothing_left(&locks, "a");
    });
}

#[test]
fn a_holder_who_waits_for_loss_meets_the_end_of_its_client() {
    model(|| {
        let locks = Locks::new();
        let ending = locks.new_client();
        let lock = hold(ending.request("a"));
        let holder = thread::spawn(move || block_on(lock.lost()));
        ending.end();
        assert_eq!(holder.join().unwrap(), Loss::ClientEnded);
        assert_nothing_left(&locks, "a");
    });
}

/// A watch that ends leaves the other one of the same lock alone.
#[test]
fn a_watch_ends_and_the_other_goes_on() {
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
        assert_eq!(holder.join().unwrap(), Loss::Stolen { by: thief.request_id() });
        drop(thief);
        assert_nothing_left(&locks, "a");
    });
}
