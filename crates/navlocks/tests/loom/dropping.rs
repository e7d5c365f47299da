//! Requests that are dropped, or do not wait.

use std::future::IntoFuture;
use std::time::Duration;

use loom::future::block_on;
use loom::thread;
use navlocks::{Locks, RequestErrorKind};

use crate::{assert_nothing_left, begin_to_wait, hold, model, waiter};

#[test]
fn drop_races_with_grant() {
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
fn drop_races_with_grant_and_next_waiter_wakes() {
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

/// S-X-S: in either order, the last request shares the lock.
#[test]
fn drop_of_pending_writer_grants_reader_behind_it() {
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
fn if_available_request_races_with_release() {
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
