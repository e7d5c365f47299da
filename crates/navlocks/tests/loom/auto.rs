//! Locks that release themselves, driven from several threads.

use std::convert::Infallible;
use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use loom::future::block_on;
use loom::thread;
use navlocks::lineage::{AutoLock, ReleaseError};
use navlocks::{Locks, Loss};

use crate::{assert_nothing_left, hold, model, poll, waiter};

/// Whoever is awake drives the work, and everybody hears of the release.
#[test]
fn two_threads_await_the_release() {
    model(|| {
        let locks = Locks::new();
        let lock = AutoLock::from(hold(locks.request("a")));
        let needed = hold(locks.request("b"));
        let request = locks.request("b");
        let released = lock.wait_until(async { request.await.map(drop) });
        let other = thread::spawn(|| block_on(released));
        drop(needed);
        block_on(lock.released()).unwrap();
        other.join().unwrap().unwrap();
        assert_nothing_left(&locks, "a");
    });
}

/// Who drives the work goes away in the middle; whoever else awaits the release goes on.
#[test]
fn a_thread_leaves_the_work_to_another() {
    model(|| {
        let locks = Locks::new();
        let lock = AutoLock::from(hold(locks.request("a")));
        let needed = hold(locks.request("b"));
        let request = locks.request("b");
        let mut released = lock.wait_until(async { request.await.map(drop) });
        let other = thread::spawn(move || drop(poll(&mut released)));
        drop(needed);
        block_on(lock.released()).unwrap();
        other.join().unwrap();
        assert_nothing_left(&locks, "a");
    });
}

/// A work comes in time, and then it is done; or it comes too late.
#[test]
fn a_work_meets_the_release() {
    model(|| {
        let locks = Locks::new();
        let lock = AutoLock::from(hold(locks.request("a")));
        let releasing = lock.released();
        let other = thread::spawn(|| block_on(releasing));
        let done = Arc::new(AtomicBool::new(false));
        let work = {
            let done = done.clone();
            async move {
                done.store(true, Ordering::Relaxed);
                Ok::<(), Infallible>(())
            }
        };
        let added = block_on(lock.wait_until(work));
        other.join().unwrap().unwrap();
        match added {
            Ok(()) => assert!(done.load(Ordering::Relaxed)),
            Err(ReleaseError::TooLate) => assert!(!done.load(Ordering::Relaxed)),
            Err(error) => panic!("{error}"),
        }
        assert_nothing_left(&locks, "a");
    });
}

#[test]
fn works_on_a_lock_meet_a_thief() {
    model(|| {
        let locks = Locks::new();
        let lock = AutoLock::from(hold(locks.request("a")));
        let endless = lock.wait_until(pending::<Result<(), Infallible>>());
        let other = thread::spawn(|| block_on(endless));
        let thief = hold(locks.request("a").steal());
        let stolen = Loss::Stolen { by: thief.request_id() };
        let lost = |released| matches!(released, Err(ReleaseError::Lost(loss)) if loss == stolen);
        assert!(lost(block_on(lock.released())));
        assert!(lost(other.join().unwrap()));
        drop(thief);
        assert_nothing_left(&locks, "a");
    });
}

#[test]
fn the_last_handle_meets_a_request() {
    model(|| {
        let locks = Locks::new();
        let lock = AutoLock::from(hold(locks.request("a")));
        let endless = lock.wait_until(pending::<Result<(), Infallible>>());
        let other = thread::spawn(move || drop(lock));
        let next = waiter(locks.request("a"));
        drop(endless);
        other.join().unwrap();
        next.join().unwrap().unwrap().release().unwrap();
        assert_nothing_left(&locks, "a");
    });
}
