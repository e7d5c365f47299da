//! Aborts: dropping a request aborts it, and a timeout does so by the clock.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;
use std::time::Duration;

use navlocks::lineage::request_flag;
use navlocks::{Lock, Mode, Request, RequestError, RequestErrorKind};

use super::{Arm, start};
use crate::backend::Backend;
use crate::patience::{Gate, eventually, soon};
use crate::task::Task;
use crate::watch::{caught_up, hold, queue, shows};

/// Short enough to pass during a test.
const SHORT: Duration = Duration::from_millis(5);
/// Long enough never to pass in a test.
const LONG: Duration = Duration::from_secs(24 * 3600);

#[test]
fn f84_request_dropped_at_once_does_nothing() {
    let arm = start();
    let [locks, other] = arm.clients();
    let ran = Cell::new(false);
    drop(locks.request("a").with(async |_| ran.set(true)));
    drop(locks.request("a").into_future());
    caught_up(&locks);
    assert!(soon(other.request("a").if_available()).unwrap().is_some());
    assert!(!ran.get());
}

#[test]
fn f84_request_dropped_after_one_poll_leaks_no_lock() {
    let arm = start();
    let [locks, other] = arm.clients();
    for _ in 0..100 {
        // By now it may have the lock, or the answer may be in flight.
        drop(Task::start(locks.request("a")));
        drop(soon(other.request("a")).unwrap());
    }
}

#[test]
fn f85_request_dropped_after_the_grant_changes_nothing() {
    let arm = start();
    let [locks, other] = arm.clients();
    let mut request = locks.request("a").tag("held").into_future();
    let lock = soon(&mut request).unwrap();
    drop(request);
    shows(&locks, ["held"], []);
    assert!(soon(other.request("a").if_available()).unwrap().is_none());
    lock.release().unwrap();
}

#[test]
fn f85_timeout_that_passes_after_the_grant_does_nothing() {
    let arm = start();
    let [locks, other] = arm.clients();
    // Far longer than a grant takes on a busy machine.
    let after = SHORT * 200;
    let lock = soon(locks.request("a").timeout(after)).unwrap();
    // Another timer of the same length ends after that one would have.
    let other = soon(other.request("a").timeout(after)).unwrap_err();
    assert_eq!(other, RequestErrorKind::TimedOut { after });
    caught_up(&locks);
    assert_eq!(lock.loss(), None);
    lock.release().unwrap();
}

#[test]
fn f86_lock_granted_but_not_polled_is_released_on_drop() {
    let arm = start();
    let [holder, dropped, next] = arm.clients();
    let held = hold(holder.request("a"), "holder");
    let ran = AtomicBool::new(false);
    let work = async |_: &Lock| ran.store(true, Ordering::Relaxed);
    let request = Task::start(dropped.request("a").tag("dropped").with(work));
    shows(&dropped, ["holder"], ["dropped"]);
    let next_up = queue(&next, next.request("a"), "next");
    drop(held);
    // The engine has decided; the future has not been polled since.
    shows(&holder, ["dropped"], ["next"]);
    drop(request);
    drop(next_up.join().unwrap());
    shows(&next, [], []);
    assert!(!ran.load(Ordering::Relaxed));
}

#[test]
fn f86_shared_grants_continue_when_some_are_dropped_unpolled() {
    let arm = start();
    let [holder, readers, writer] = arm.clients();
    let held = hold(holder.request("a"), "holder");
    let unheard = queue(&readers, readers.request("a").shared(), "S1");
    let received = queue(&readers, readers.request("a").shared(), "S2");
    let last = queue(&writer, writer.request("a"), "X");
    drop(held);
    shows(&holder, ["S1", "S2"], ["X"]);
    drop(unheard);
    shows(&readers, ["S2"], ["X"]);
    drop(received.join().unwrap());
    drop(last.join().unwrap());
}

#[test]
fn f86_race_of_grant_and_drop_always_releases_the_lock() {
    let arm = start();
    let [holder, dropped, next] = arm.clients();
    for _ in 0..Arm::ROUNDS / 10 {
        let held = hold(holder.request("a"), "holder");
        let request = queue(&dropped, dropped.request("a"), "dropped");
        let next_up = queue(&next, next.request("a"), "next");
        thread::scope(|scope| {
            scope.spawn(|| drop(held));
            scope.spawn(|| drop(request));
            drop(next_up.join().unwrap());
        });
        shows(&next, [], []);
    }
}

#[test]
fn f87_f85_q20_d12_dropping_many_requests_keeps_held_locks() {
    let arm = start();
    let [locks, other] = arm.clients();
    let kept = hold(locks.request("kept"), "kept");
    let _held = hold(other.request(["a", "b", "c"]), "held");
    let owner = ["a", "b", "c"].map(|name| queue(&locks, locks.request(name), name));
    shows(&locks, ["kept", "held"], ["a", "b", "c"]);
    drop(owner);
    shows(&locks, ["kept", "held"], []);
    assert_eq!(kept.loss(), None);
}

#[test]
fn f88_d09_timeout_error_has_its_duration() {
    let arm = start();
    let [holder, locks] = arm.clients();
    let _held = hold(holder.request("a"), "holder");
    let error = soon(locks.request("a").timeout(SHORT)).unwrap_err();
    assert_eq!(error, RequestErrorKind::TimedOut { after: SHORT });
    assert_eq!(error.dom_exception_name(), "TimeoutError");
    shows(&locks, ["holder"], []);
}

#[test]
fn f88_each_request_has_its_own_timeout() {
    let arm = start();
    let [holder, locks] = arm.clients();
    let held = hold(holder.request("a"), "holder");
    let patient = queue(&locks, locks.request("a").timeout(LONG), "patient");
    let hasty = Task::start(locks.request("a").timeout(SHORT));
    assert_eq!(hasty.join().unwrap_err(), RequestErrorKind::TimedOut { after: SHORT });
    shows(&locks, ["holder"], ["patient"]);
    drop(held);
    drop(patient.join().unwrap());
}

/// Awaits a request, unless the signal opens first, as `AbortSignal.any()` does.
async fn unless(request: Request, signal: &Gate) -> Option<Result<(), RequestError>> {
    let mut request = std::pin::pin!(request.into_future());
    let mut signal = std::pin::pin!(signal.opened());
    std::future::poll_fn(|cx| {
        if let Poll::Ready(result) = request.as_mut().poll(cx) {
            return Poll::Ready(Some(result.map(drop)));
        }
        signal.as_mut().poll(cx).map(|()| None)
    })
    .await
}

#[test]
fn f88_first_of_several_limits_ends_the_request() {
    let arm = start();
    let [holder, locks] = arm.clients();
    let _held = hold(holder.request("a"), "holder");
    let signal = Gate::default();
    let timed_out = RequestErrorKind::TimedOut { after: SHORT };
    let ended = soon(unless(locks.request("a").timeout(SHORT), &signal));
    assert_eq!(ended.unwrap().unwrap_err(), timed_out);
    let given_up = Task::start(unless(locks.request("a").timeout(LONG).tag("waits"), &signal));
    shows(&locks, ["holder"], ["waits"]);
    signal.open();
    assert_eq!(given_up.join(), None);
    shows(&locks, ["holder"], []);
}

#[test]
fn timeout_of_the_longest_duration_waits() {
    let arm = start();
    let [holder, locks] = arm.clients();
    let held = hold(holder.request("a"), "holder");
    let endless = queue(&locks, locks.request("a").timeout(Duration::MAX), "endless");
    drop(held);
    drop(endless.join().unwrap());
}

#[test]
fn decision_9_timeout_is_a_duration_and_is_reported_as_given() {
    let _: fn(Request, Duration) -> Request = Request::timeout;
    let arm = start();
    let [holder, locks] = arm.clients();
    let _held = hold(holder.request("a"), "holder");
    for after in [Duration::ZERO, Duration::from_nanos(1), Duration::from_micros(1_500)] {
        let error = soon(locks.request("a").timeout(after)).unwrap_err();
        assert_eq!(error, RequestErrorKind::TimedOut { after });
    }
    shows(&locks, ["holder"], []);
}

#[test]
fn dropped_exclusive_waiter_wakes_the_shared_one_behind_it() {
    let arm = start();
    let [first, writer, second] = arm.clients();
    let _held = hold(first.request("a").shared(), "S1");
    let exclusive = queue(&writer, writer.request("a"), "X");
    let shared = queue(&second, second.request("a").shared(), "S2");
    // The request sleeps on its own thread and must be woken there.
    let asleep = Gate::default();
    thread::scope(|scope| {
        let sleeper = scope.spawn(|| soon(asleep.open_asleep(shared.finish())).map(drop));
        soon(asleep.opened());
        drop(exclusive);
        sleeper.join().unwrap().unwrap();
    });
    shows(&writer, ["S1"], []);
}

#[test]
fn timed_out_exclusive_waiter_wakes_the_shared_one_behind_it() {
    let arm = start();
    let [first, writer, second] = arm.clients();
    let _held = hold(first.request("a").shared(), "S1");
    let exclusive = queue(&writer, writer.request("a").timeout(Duration::from_millis(50)), "X");
    let shared = Task::start(second.request("a").shared().tag("S2"));
    thread::scope(|scope| {
        let sleeper = scope.spawn(|| shared.join().map(drop));
        assert!(matches!(exclusive.join().unwrap_err().kind(), RequestErrorKind::TimedOut { .. }));
        sleeper.join().unwrap().unwrap();
    });
}

#[test]
fn dropped_scope_grants_waiters_behind_it_on_each_name() {
    let arm = start();
    let [holder, wide, narrow] = arm.clients();
    let _held = hold(holder.request("a"), "holder");
    let both = queue(&wide, wide.request(["a", "b"]), "both");
    let one = queue(&narrow, narrow.request("b"), "b");
    drop(both);
    drop(one.join().unwrap());
    shows(&narrow, ["holder"], []);
}

struct CountedWaker;

impl Wake for CountedWaker {
    fn wake(self: Arc<Self>) {}
}

#[test]
fn finished_request_keeps_no_waker() {
    let arm = start();
    let [holder, locks] = arm.clients();
    let held = hold(holder.request("a"), "holder");
    let counted = Arc::new(CountedWaker);
    let waker = Waker::from(counted.clone());
    let mut cx = Context::from_waker(&waker);
    let mut polled = |request: Request| {
        let mut future = Box::pin(request.into_future());
        assert!(future.as_mut().poll(&mut cx).is_pending());
        future
    };
    let dropped = polled(locks.request("a"));
    let timed_out = polled(locks.request("a").timeout(SHORT));
    let granted = polled(locks.request("a"));
    drop(dropped);
    assert!(soon(timed_out).is_err());
    drop(held);
    let lock = soon(granted).unwrap();
    drop(waker);
    eventually(|| match Arc::strong_count(&counted) {
        1 => Ok(()),
        more => Err(format!("{} wakers are kept", more - 1)),
    });
    lock.release().unwrap();
}

#[test]
fn timeout_of_zero_gets_a_free_lock_and_no_held_one() {
    let arm = start();
    let [locks, other] = arm.clients();
    let kinds: [fn(Request) -> Request; 3] =
        [|request| request, |request| request.shared().overtake(), |request| request.steal()];
    for round in 0..20 {
        let name = format!("{round}");
        for kind in kinds {
            let request = kind(locks.request(name.as_str())).timeout(Duration::ZERO);
            drop(soon(request).expect("it is free"));
        }
        let flag = request_flag(&locks, name.as_str(), Mode::Exclusive, Some(Duration::ZERO));
        drop(soon(flag).expect("it is free"));
        let tried = locks.request(name.as_str()).timeout(Duration::ZERO).if_available();
        drop(soon(tried).expect("the service answers").expect("it is free"));
    }
    let held = hold(other.request("held"), "held");
    for kind in &kinds[..2] {
        let error = soon(kind(locks.request("held")).timeout(Duration::ZERO)).unwrap_err();
        assert_eq!(error, RequestErrorKind::TimedOut { after: Duration::ZERO });
    }
    let flag = soon(request_flag(&locks, "held", Mode::Exclusive, Some(Duration::ZERO)));
    assert_eq!(flag.unwrap_err(), RequestErrorKind::TimedOut { after: Duration::ZERO });
    shows(&locks, ["held"], []);
    drop(held);
}
