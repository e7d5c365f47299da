//! Work under a lock. The callback of the standard is the closure of `with`, its promise the
//! future.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use navlocks::lineage::{AcquireOptions, acquire};
use navlocks::{Lock, Locks, Mode, RequestError, Scope};

use super::start;
use crate::backend::Backend;
use crate::patience::{Gate, eventually, soon};
use crate::task::Task;
use crate::watch::{caught_up, hold, queue, received, shows, subscribe, words};

/// Runs a function that throws and returns the thrown value, without output.
fn thrown<T>(work: impl FnOnce() -> T) -> Box<dyn Any + Send> {
    catch_unwind(AssertUnwindSafe(work)).err().unwrap()
}

/// Throws as a panic does, without its message on the terminal.
fn throw(value: impl Any + Send) -> ! {
    resume_unwind(Box::new(value))
}

#[test]
fn f40_request_does_nothing_before_the_first_poll() {
    let arm = start();
    let locks = arm.client();
    let ran = Cell::new(false);
    let work = locks.request("a").with(async |_| ran.set(true));
    assert!(!ran.get());
    shows(&locks, [], []);
    soon(work).unwrap();
    assert!(ran.get());
}

#[test]
fn f41_work_gets_the_lock_read_only() {
    let arm = start();
    let locks = arm.client();
    let seen = soon(locks.request("a").with(async |lock: &Lock| {
        let (scope, mode): (&Scope, Mode) = (lock.scope(), lock.mode());
        (scope.clone(), mode, lock.request_id())
    }));
    let (scope, mode, first) = seen.unwrap();
    assert_eq!((scope, mode), (Scope::from("a"), Mode::Exclusive));
    // Each request is a lock of its own.
    let second = soon(locks.request("a").with(async |lock| lock.request_id()));
    assert_ne!(second.unwrap(), first);
}

#[test]
fn f42_lock_has_its_names_and_mode() {
    let arm = start();
    let locks = arm.client();
    let exclusive = hold(locks.request("a"), "X");
    let shared = hold(locks.request(["c", "b", "c"]).shared(), "S");
    let chosen = hold(locks.request("d").mode(Mode::Shared), "chosen");
    assert_eq!((exclusive.scope(), exclusive.mode()), (&Scope::from("a"), Mode::Exclusive));
    assert_eq!((shared.scope(), shared.mode()), (&Scope::from(["b", "c"]), Mode::Shared));
    assert_eq!(chosen.mode(), Mode::Shared);
    assert_eq!(shared.scope().names().len(), 2);
}

#[test]
fn f43_value_becomes_the_result() {
    let arm = start();
    let locks = arm.client();
    assert_eq!(soon(locks.request("a").with(async |_| 123)), Ok(123));
}

#[test]
fn f44_error_of_the_work_is_returned_unchanged() {
    let arm = start();
    let locks = arm.client();
    let error = Arc::new("the disk is full");
    let result = soon(locks.request("a").with(async |_| Err::<(), _>(error.clone())));
    assert!(Arc::ptr_eq(&result.unwrap().unwrap_err(), &error));
}

#[test]
fn f44_panic_of_the_work_continues_unchanged() {
    let arm = start();
    let locks = arm.client();
    let before_an_await = || soon(locks.request("a").with(async |_| throw(1)));
    assert_eq!(thrown(before_an_await).downcast_ref(), Some(&1));
    let gate = Gate::default();
    gate.open();
    let after_an_await = || {
        soon(locks.request("a").with(async |_| {
            gate.opened().await;
            throw("late")
        }))
    };
    assert_eq!(thrown(after_an_await).downcast_ref(), Some(&"late"));
}

#[test]
fn f45_panic_releases_the_lock() {
    let arm = start();
    let locks = arm.client();
    thrown(|| soon(locks.request("a").with(async |_| throw(()))));
    shows(&locks, [], []);
    assert!(soon(locks.request("a").if_available()).unwrap().is_some());
}

#[test]
#[expect(clippy::async_yields_async, reason = "what becomes of such a value is the question")]
fn f46_returned_future_is_a_value_and_is_not_run() {
    let arm = start();
    let locks = arm.client();
    let ran = Cell::new(false);
    let later = async { ran.set(true) };
    let later = soon(locks.request("a").with(async |_| later)).unwrap();
    // The work has ended, and the lock is released.
    shows(&locks, [], []);
    assert!(!ran.get());
    soon(later);
    assert!(ran.get());
}

#[test]
fn f46_awaited_future_is_part_of_the_work() {
    let arm = start();
    let locks = arm.client();
    let gate = Gate::default();
    gate.open();
    let work = locks.request("a").with(async |_| {
        gate.opened().await;
        7
    });
    assert_eq!(soon(work), Ok(7));
}

/// Runs work that ends as `end` does once a gate opens, beside a waiter for its lock.
fn held_until<T: Send>(end: impl FnOnce() -> T + Send) {
    let arm = start();
    let [locks, other] = arm.clients();
    let gate = Gate::default();
    thread::scope(|scope| {
        let first = scope.spawn(|| {
            let work = async |_: &Lock| {
                gate.opened().await;
                end()
            };
            catch_unwind(AssertUnwindSafe(|| soon(locks.request("a").tag("1st").with(work))))
        });
        shows(&other, ["1st"], []);
        let second = queue(&other, other.request("a"), "2nd");
        let mut events = subscribe(&other);
        gate.open();
        let second = second.join().unwrap();
        let _ended = first.join().unwrap();
        assert_eq!(words(&received(&other, &mut events)), ["1st released", "2nd granted"]);
        drop(second);
    });
}

#[test]
fn f47_lock_is_held_until_the_work_succeeds() {
    held_until(|| 1);
}

#[test]
fn f47_lock_is_held_until_the_work_fails() {
    held_until(|| Err::<(), _>("failed"));
}

#[test]
fn f47_lock_is_held_until_the_work_panics() {
    held_until(|| throw("failed"));
}

#[test]
fn f48_request_ends_after_its_work() {
    let arm = start();
    let locks = arm.client();
    let log = RefCell::new(Vec::new());
    soon(async {
        let work = async |_: &Lock| log.borrow_mut().push("holding");
        locks.request("a").with(work).await.unwrap();
        log.borrow_mut().push("returned");
    });
    assert_eq!(log.into_inner(), ["holding", "returned"]);
}

#[test]
fn f49_lock_is_free_when_the_request_has_ended() {
    let arm = start();
    let locks = arm.client();
    for _ in 0..100 {
        soon(locks.request("a").with(async |_| ())).unwrap();
        assert!(soon(locks.request("a").if_available()).unwrap().is_some());
    }
}

#[test]
fn f50_release_comes_after_the_requests_made_before_it() {
    let arm = start();
    let locks = arm.client();
    let inside = soon(locks.request("a").with(async |_| {
        let again = Task::start(locks.request("a"));
        let other = Task::start(locks.request("b"));
        (again, other)
    }));
    let (again, other) = inside.unwrap();
    let (again, other) = (again.join().unwrap(), other.join().unwrap());
    // Tokens grow with every grant.
    assert!(other.fencing_token() < again.fencing_token());
}

#[test]
fn f51_work_that_never_ends_holds_for_ever() {
    let arm = start();
    let [locks, other] = arm.clients();
    let begun = AtomicBool::new(false);
    let work = async |_: &Lock| {
        begun.store(true, Ordering::Relaxed);
        std::future::pending::<()>().await;
    };
    let mut task = Task::start(locks.request("a").tag("endless").with(work));
    eventually(|| {
        assert!(!task.poll());
        if begun.load(Ordering::Relaxed) { Ok(()) } else { Err("the work has not begun") }
    });
    assert!(soon(other.request("a").if_available()).unwrap().is_none());
    // As any future it ends when it is dropped.
    drop(task);
    shows(&locks, [], []);
}

#[test]
fn f51_forgotten_guard_stays_held() {
    let arm = start();
    let [locks, other] = arm.clients();
    std::mem::forget(hold(locks.request("a"), "forgotten"));
    shows(&other, ["forgotten"], []);
    assert!(soon(other.request("a").if_available()).unwrap().is_none());
    // The lock stays held until its client ends.
    locks.end_client();
    shows(&other, [], []);
}

#[test]
fn f52_result_is_the_very_value() {
    struct Unique(Box<u8>);
    let arm = start();
    let locks = arm.client();
    let value = Unique(Box::new(5));
    let address = std::ptr::from_ref(&*value.0);
    let returned = soon(locks.request("a").with(async |_| value)).unwrap();
    assert_eq!(std::ptr::from_ref(&*returned.0), address);
}

#[test]
fn f52_result_without_the_lock_is_the_very_value() {
    let arm = start();
    let [locks, other] = arm.clients();
    let _held = hold(locks.request("a"), "held");
    let missed = other.request("a").if_available().with(async |lock| lock.is_none());
    assert_eq!(soon(missed), Ok(true));
    let got = other.request("b").if_available().with(async |lock| lock.unwrap().scope().clone());
    assert_eq!(soon(got), Ok(Scope::from("b")));
}

#[test]
fn f67_locks_are_not_re_entrant() {
    let arm = start();
    let locks = arm.client();
    let nested = soon(locks.request("a").with(async |lock| {
        let own = lock.locks().request("a");
        let again = own.clone().if_available().await.unwrap();
        let shared = own.shared().if_available().await.unwrap();
        (again.is_none(), shared.is_none())
    }));
    assert_eq!(nested, Ok((true, true)));
}

#[test]
fn f75_if_available_does_nothing_before_the_first_poll() {
    let arm = start();
    let locks = arm.client();
    let ran = Cell::new(0);
    let work = locks.request("a").if_available().with(async |_| ran.set(ran.get() + 1));
    assert_eq!(ran.get(), 0);
    shows(&locks, [], []);
    // The moment of the poll counts.
    let held = hold(locks.request("a"), "held");
    soon(work).unwrap();
    assert_eq!(ran.get(), 1);
    drop(held);
    caught_up(&locks);
    assert_eq!(ran.get(), 1);
}

#[test]
fn p01_acquire_returns_the_result_of_its_work_with_and_without_options() {
    let arm = start();
    let locks = arm.client();
    let mode = async |lock: Option<&Lock>| lock.unwrap().mode();
    let plain = AcquireOptions::default();
    assert_eq!(soon(acquire(&locks, "a", plain, mode)), Ok(Mode::Exclusive));
    let shared = AcquireOptions { mode: Mode::Shared, ..plain };
    assert_eq!(soon(acquire(&locks, "a", shared, mode)), Ok(Mode::Shared));
    shows(&locks, [], []);
}

#[test]
fn p01_acquire_works_on_another_thread() {
    let arm = start();
    let [window, worker] = arm.clients();
    let work = |locks: Locks| {
        move || soon(acquire(&locks, "a", AcquireOptions::default(), async |_| locks.client_id()))
    };
    let (inside, outside) = (worker.client_id(), window.client_id());
    let worker = thread::spawn(work(worker));
    assert_eq!(work(window)(), Ok(outside));
    assert_eq!(worker.join().unwrap(), Ok(inside));
}

#[test]
fn g1_panic_before_the_first_await_grants_the_next_request() {
    let arm = start();
    let [locks, other] = arm.clients();
    let work = async |_: &Lock| {
        let next = queue(&other, other.request("a"), "next");
        throw(next)
    };
    let next = thrown(|| soon(locks.request("a").with(work)));
    let next: Box<Task<'static, Result<Lock, RequestError>>> = next.downcast().unwrap();
    let lock = next.join().unwrap();
    shows(&other, ["next"], []);
    drop(lock);
}

#[test]
fn g1_guard_on_a_thread_that_panics_is_released() {
    let arm = start();
    let [locks, other] = arm.clients();
    let holder = thread::spawn(move || {
        let _lock = hold(locks.request("a"), "holder");
        throw("crashed")
    });
    assert!(holder.join().is_err());
    drop(soon(other.request("a")).unwrap());
}
