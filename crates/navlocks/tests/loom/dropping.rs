//! A request is dropped, or does not wait.

use std::future::IntoFuture;
use std::time::Duration;

use loom::future::block_on;
use loom::thread;
use navlocks::{Locks, RequestErrorKind};

use crate::{assert_nothing_left, begin_to_wait, hold, model, waiter};

#[test]
fn a_drop_meets_a_grant() {
    model(|| {
        let locks = Locks::new();
        let first = hold(locks.request("a"));
        let dropped = begin_to_wait(locks.request("a"));
        let other = thread::spawn(move || drop(dropped));
        drop(first);
        other.join().unwrap();
        assert_nothing_left(&locks, "a");
    });
}

#[test]
fn a_drop_meets_a_grant_and_the_next_one_wakes() {
    model(|| {
        let locks = Locks::new();
        let first = hold(locks.request("a"));
        let dropped = begin_to_wait(locks.request("a"));
        let next = waiter(locks.request("a"));
        let other = thread::spawn(move || drop(dropped));
        drop(first);
        other.join().unwrap();
        next.join().unwrap().unwrap().release().unwrap();
        assert_nothing_left(&locks, "a");
    });
}

/// S-X-S: whichever goes first, the last one shares the lock.
#[test]
fn dropping_the_waiting_writer_lets_the_reader_behind_it_in() {
    model(|| {
        let locks = Locks::new();
        let first = hold(locks.request("a").shared());
        let writer = begin_to_wait(locks.request("a"));
        let reader = waiter(locks.request("a").shared());
        let other = thread::spawn(move || drop(writer));
        drop(first);
        reader.join().unwrap().unwrap().release().unwrap();
        other.join().unwrap();
        assert_nothing_left(&locks, "a");
    });
}

#[test]
fn a_request_that_does_not_wait_meets_a_release() {
    model(|| {
        let locks = Locks::new();
        let first = hold(locks.request("a"));
        let other = thread::spawn({
            let locks = locks.clone();
            move || {
                let tried = block_on(locks.request("a").if_available().into_future()).unwrap();
                drop(tried);
                let tried = block_on(locks.request("a").timeout(Duration::ZERO).into_future());
                match tried {
                    Ok(lock) => lock.release().unwrap(),
                    Err(error) => {
                        assert_eq!(error, RequestErrorKind::TimedOut { after: Duration::ZERO });
                    }
                }
            }
        });
        drop(first);
        other.join().unwrap();
        assert_nothing_left(&locks, "a");
    });
}
