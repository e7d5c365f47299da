//! Contention: a holder learns that a request waits for its lock, and can release it.

use std::thread;

use navlocks::LossCause;

use super::{Arm, start};
use crate::backend::Backend;
use crate::patience::{Gate, soon};
use crate::task::Task;
use crate::watch::{caught_up, hold, queue, shows};

#[test]
fn contended_holder_is_notified_at_once() {
    let arm = start();
    let [holder, other] = arm.clients();
    let lock = hold(holder.request("a"), "holder");
    let waiter = queue(&other, other.request("a"), "waiter");
    assert_eq!(soon(lock.contended()), Ok(()));
    assert!(soon(lock.is_contended()).unwrap());
    // The answer stays the same as long as a request waits.
    assert_eq!(soon(lock.contended()), Ok(()));
    drop(lock);
    drop(waiter.join().unwrap());
}

#[test]
fn blocked_holder_is_woken_by_the_first_waiter() {
    let arm = start();
    let [holder, other] = arm.clients();
    for _ in 0..Arm::ROUNDS / 10 {
        let lock = hold(holder.request("a"), "holder");
        let asleep = Gate::default();
        thread::scope(|scope| {
            scope.spawn(|| {
                assert_eq!(soon(asleep.open_asleep(lock.contended())), Ok(()));
                drop(lock);
            });
            soon(asleep.opened());
            drop(soon(other.request("a")).unwrap());
        });
        shows(&other, [], []);
    }
}

#[test]
fn uncontended_holder_is_not_notified() {
    let arm = start();
    let [holder, other] = arm.clients();
    let lock = hold(holder.request("a").shared(), "holder");
    let mut contended = Task::start(lock.contended());
    // None of these requests waits for it.
    let shared = hold(other.request("a").shared(), "shared");
    assert!(soon(other.request("a").if_available()).unwrap().is_none());
    let elsewhere = hold(other.request("b"), "elsewhere");
    let waiter = queue(&holder, holder.request("b"), "waits elsewhere");
    caught_up(&holder);
    assert!(!contended.poll());
    assert!(!soon(lock.is_contended()).unwrap());
    drop((shared, elsewhere, waiter));
}

#[test]
fn lost_lock_ends_the_watch_for_contention() {
    let arm = start();
    let [holder, thief] = arm.clients();
    let lock = hold(holder.request("a"), "holder");
    let contended = Task::start(lock.contended());
    let stolen = hold(thief.request("a").steal(), "thief");
    let loss = LossCause::Stolen { by: stolen.request_id().into() };
    assert_eq!(contended.join(), Err(loss.clone()));
    assert_eq!(soon(lock.contended()), Err(loss));
    assert!(!soon(lock.is_contended()).unwrap());
}

#[test]
fn aborted_waiter_does_not_count() {
    let arm = start();
    let [holder, other] = arm.clients();
    let lock = hold(holder.request("a"), "holder");
    let waiter = queue(&other, other.request("a"), "waiter");
    assert_eq!(soon(lock.contended()), Ok(()));
    drop(waiter);
    shows(&other, ["holder"], []);
    caught_up(&holder);
    let mut contended = Task::start(lock.contended());
    assert!(!contended.poll());
    assert!(!soon(lock.is_contended()).unwrap());
    // It does not hide the next waiter.
    let _waiter = queue(&other, other.request("a"), "next");
    assert_eq!(contended.join(), Ok(()));
}

#[test]
fn aborted_waiter_hides_no_later_waiter() {
    let arm = start();
    let [holder, other] = arm.clients();
    let lock = hold(holder.request("a"), "holder");
    let contended = Task::start(lock.contended());
    drop(queue(&other, other.request("a"), "came and left"));
    shows(&other, ["holder"], []);
    thread::scope(|scope| {
        let hears = scope.spawn(|| contended.join());
        let waiter = queue(&other, other.request("a"), "stays");
        assert_eq!(hears.join().unwrap(), Ok(()));
        drop(waiter);
    });
}

#[test]
fn every_blocking_holder_is_notified() {
    let arm = start();
    let [first, second, third, other] = arm.clients();
    let one = hold(first.request("a").shared(), "S a");
    let two = hold(second.request(["a", "b"]).shared(), "S ab");
    let three = hold(third.request("c"), "X c");
    let apart = hold(third.request("d"), "X d");
    let waits = [&one, &two, &three].map(|lock| Task::start(lock.contended()));
    let mut unwatched = Task::start(apart.contended());
    let _waiter = queue(&other, other.request(["a", "c"]), "X ac");
    for wait in waits {
        assert_eq!(wait.join(), Ok(()));
    }
    assert!(!unwatched.poll());
}

#[test]
fn new_holder_with_waiters_is_notified_at_once() {
    let arm = start();
    let [holder, next, last] = arm.clients();
    let lock = hold(holder.request("a"), "holder");
    let next = queue(&next, next.request("a"), "next");
    let _last = queue(&last, last.request("a"), "last");
    drop(lock);
    let lock = next.join().unwrap();
    assert_eq!(soon(lock.contended()), Ok(()));
}

#[test]
fn all_watchers_of_one_lock_are_notified() {
    let arm = start();
    let [holder, other] = arm.clients();
    let lock = hold(holder.request("a"), "holder");
    let given_up = Task::start(lock.contended());
    let watchers = [Task::start(lock.contended()), Task::start(lock.contended())];
    let mut lost = Task::start(lock.lost());
    drop(given_up);
    let _waiter = queue(&other, other.request("a"), "waiter");
    for watcher in watchers {
        assert_eq!(watcher.join(), Ok(()));
    }
    // The lock is wanted, and not lost.
    assert!(!lost.poll());
    drop(lost);
    assert_eq!(lock.release(), Ok(()));
}
