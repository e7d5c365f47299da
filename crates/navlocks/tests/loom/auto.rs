//! Locks that release themselves, driven from several threads.

use std::convert::Infallible;
use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use loom::future::block_on;
use loom::thread;
use navlocks::lineage::{AutoLock, ReleaseError};
use navlocks::{Locks, LossCause};

use crate::{assert_nothing_left, hold, model, poll, waiter};

/// Any task that is awake drives the work, and all tasks learn of the release.
#[test]
fn release_awaited_by_two_threads_wakes_both() {
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

/// The task that drives the work goes away; another task that awaits the release continues.
#[test]
fn work_of_thread_that_leaves_is_driven_by_another() {
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

/// Work is added in time and runs, or is added too late and is refused.
#[test]
fn added_work_races_with_release() {
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
fn work_under_lock_races_with_thief() {
    model(|| {
        let locks = Locks::new();
        let lock = AutoLock::from(hold(locks.request("a")));
        let endless = lock.wait_until(pending::<Result<(), Infallible>>());
        let other = thread::spawn(|| block_on(endless));
        let thief = hold(locks.request("a").steal());
        let stolen = LossCause::Stolen { by: thief.request_id().into() };
        let lost = |released| matches!(released, Err(ReleaseError::Lost(loss)) if loss == stolen);
        assert!(lost(block_on(lock.released())));
        assert!(lost(other.join().unwrap()));
        drop(thief);
        assert_nothing_left(&locks, "a");
    });
}

#[test]
fn drop_of_last_handle_races_with_request() {
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
