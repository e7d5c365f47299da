//! Wakers: a task that is woken or dropped may use the lock space that does it.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use futures_core::Stream;
use navlocks::{Lock, Locks, Request, RequestError, RequestErrorKind};

use super::{Arm, start};
use crate::backend::Backend;
use crate::patience::{comes_back, eventually, soon};
use crate::task::Task;
use crate::watch::{caught_up, hold, queue, shows, subscribe};

/// A task as an executor may have it: the last of its wakers owns its state, here a lock.
struct Sleeper {
    _lock: Lock,
}

impl Wake for Sleeper {
    fn wake(self: Arc<Self>) {}
}

/// Makes a waker that owns a lock.
fn owner(locks: &Locks) -> Waker {
    Waker::from(Arc::new(Sleeper { _lock: hold(locks.request("owned"), "owned") }))
}

/// Makes a pending request whose only waker owns a lock.
fn forgotten(locks: &Locks, request: Request) -> Task<'static, Result<Lock, RequestError>> {
    let mut task = queue(locks, request, "waits");
    let waker = owner(locks);
    task.poll_for(&waker);
    shows(locks, ["held", "owned"], ["waits"]);
    task
}

/// Runs a test on its own thread, because a lock space that is entered while it is locked blocks
/// for ever.
fn on_its_own(test: fn(Arm)) {
    comes_back(move || test(start()));
}

#[test]
fn dropped_request_drops_a_waker_that_owns_a_lock() {
    on_its_own(|arm| {
        let [holder, locks] = arm.clients();
        let _held = hold(holder.request("a"), "held");
        drop(forgotten(&locks, locks.request("a")));
        shows(&locks, ["held"], []);
        // The same when another request takes its place.
        drop(hold(locks.request("b"), "next"));
        shows(&locks, ["held"], []);
    });
}

#[test]
fn timed_out_request_drops_a_waker_that_owns_a_lock() {
    on_its_own(|arm| {
        let [holder, locks] = arm.clients();
        let _held = hold(holder.request("a"), "held");
        let long_enough_to_be_seen = Duration::from_millis(100);
        let request = forgotten(&locks, locks.request("a").timeout(long_enough_to_be_seen));
        assert!(request.join().is_err());
        shows(&locks, ["held"], []);
    });
}

#[test]
fn granted_request_drops_a_waker_that_owns_a_lock() {
    on_its_own(|arm| {
        let [holder, locks] = arm.clients();
        let held = hold(holder.request("a"), "held");
        let request = forgotten(&locks, locks.request("a"));
        drop(held);
        shows(&holder, ["waits"], []);
        drop(request);
    });
}

#[test]
fn failed_request_drops_a_waker_that_owns_a_lock() {
    on_its_own(|arm| {
        let [holder, locks] = arm.clients();
        let ended = locks.new_client();
        let _held = hold(holder.request("a"), "held");
        let request = forgotten(&locks, ended.request("a"));
        ended.end_client();
        shows(&holder, ["held"], []);
        assert_eq!(request.join().unwrap_err(), RequestErrorKind::ClientEnded);
    });
}

#[test]
fn request_polled_by_another_task_drops_the_first_waker() {
    on_its_own(|arm| {
        let [holder, locks] = arm.clients();
        let _held = hold(holder.request("a"), "held");
        let mut request = forgotten(&locks, locks.request("a"));
        assert!(!request.poll());
        shows(&locks, ["held"], ["waits"]);
    });
}

#[test]
fn watches_drop_a_waker_that_owns_a_lock() {
    on_its_own(|arm| {
        let [locks, other] = arm.clients();
        let lock = hold(locks.request("a"), "watched");
        let mut lost = Box::pin(lock.lost());
        let mut contended = Box::pin(lock.contended());
        let waker = owner(&locks);
        assert!(lost.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        drop(waker);
        // Dropped,
        drop(lost);
        shows(&locks, ["watched"], []);
        let waker = owner(&locks);
        assert!(contended.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        drop(waker);
        // polled by another task,
        assert!(contended.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        shows(&locks, ["watched"], []);
        let mut lost = Box::pin(lock.lost());
        let waker = owner(&locks);
        assert!(lost.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        drop(waker);
        // and woken.
        assert_eq!(soon(other.force_release("a")), Ok(1));
        shows(&other, [], []);
    });
}

#[test]
fn event_stream_drops_a_waker_that_owns_a_lock() {
    on_its_own(|arm| {
        let [locks, watcher] = arm.clients();
        let mut events = subscribe(&watcher);
        let waker = owner(&locks);
        let mut cx = Context::from_waker(&waker);
        eventually(|| match Pin::new(&mut events).poll_next(&mut cx) {
            Poll::Pending => Ok(()),
            Poll::Ready(event) => Err(format!("received {event:?}")),
        });
        drop(waker);
        drop(events);
        caught_up(&watcher);
        shows(&locks, [], []);
    });
}

/// A task that requests a lock as soon as it is woken, on the waking thread.
struct Eager(Locks);

impl Wake for Eager {
    fn wake(self: Arc<Self>) {
        let request = self.0.request("asked at once").into_future();
        let mut request = Box::pin(request);
        // The request is polled and dropped, and so is its lock.
        let _ = request.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    }
}

#[test]
fn woken_task_may_request_at_once() {
    on_its_own(|arm| {
        let [holder, locks, watcher] = arm.clients();
        let lock = hold(holder.request("a"), "lock");
        let eager = Waker::from(Arc::new(Eager(locks.clone())));
        let mut cx = Context::from_waker(&eager);
        let mut request = Box::pin(locks.request("a").tag("waits").into_future());
        let mut contended = Box::pin(lock.contended());
        let mut lost = Box::pin(lock.lost());
        let mut events = subscribe(&watcher);
        assert!(lost.as_mut().poll(&mut cx).is_pending());
        assert!(contended.as_mut().poll(&mut cx).is_pending());
        assert!(Pin::new(&mut events).poll_next(&mut cx).is_pending());
        // This wakes the stream and the holder,
        assert!(request.as_mut().poll(&mut cx).is_pending());
        assert_eq!(soon(contended), Ok(()));
        // and this wakes the holder and the waiter.
        assert_eq!(soon(watcher.force_release("a")), Ok(1));
        soon(lost);
        drop(soon(request).unwrap());
        shows(&locks, [], []);
    });
}

/// Records that it was woken.
#[derive(Default)]
struct Flag(AtomicBool);

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::SeqCst);
    }
}

impl Flag {
    /// Waits until it was woken, and clears the record.
    #[track_caller]
    fn was_raised(&self) {
        eventually(|| {
            self.0.swap(false, Ordering::SeqCst).then_some(()).ok_or("no task was woken")
        });
    }
}

#[test]
fn subscriber_is_woken_by_a_request_that_has_to_wait() {
    let arm = start();
    let [holder, other] = arm.clients();
    let _lock = hold(holder.request("a"), "lock");
    let mut events = subscribe(&other);
    let flag = Arc::new(Flag::default());
    let received = Waker::from(flag.clone());
    assert!(Pin::new(&mut events).poll_next(&mut Context::from_waker(&received)).is_pending());
    // No other event wakes it.
    let _waiter = Task::start(other.request("a"));
    flag.was_raised();
}

#[test]
fn dropped_watch_leaves_other_watches() {
    let arm = start();
    let [holder, other] = arm.clients();
    let lock = hold(holder.request("a"), "lock");
    let flags: [Arc<Flag>; 3] = Default::default();
    let [lost, contended, received] = flags.clone().map(Waker::from);
    let [mut lost, mut contended, mut received] =
        [&lost, &contended, &received].map(Context::from_waker);
    let mut events = [subscribe(&other), subscribe(&other)];
    let mut losses = [Box::pin(lock.lost()), Box::pin(lock.lost())];
    let mut contentions = [Box::pin(lock.contended()), Box::pin(lock.contended())];
    for loss in &mut losses {
        assert!(loss.as_mut().poll(&mut lost).is_pending());
    }
    for contention in &mut contentions {
        assert!(contention.as_mut().poll(&mut contended).is_pending());
    }
    for stream in &mut events {
        assert!(Pin::new(stream).poll_next(&mut received).is_pending());
    }
    // The second watch of each kind is dropped.
    let [_loss, gone] = losses;
    drop(gone);
    let [_contention, gone] = contentions;
    drop(gone);
    let [_stream, gone] = events;
    drop(gone);
    let _waiter = queue(&other, other.request("a"), "waiter");
    flags[1].was_raised();
    flags[2].was_raised();
    assert_eq!(soon(other.force_release("a")), Ok(1));
    flags[0].was_raised();
}

#[test]
fn end_of_a_client_wakes_the_task_that_waits_for_its_next_event() {
    let arm = start();
    let watcher = arm.client();
    let mut events = subscribe(&watcher);
    let flag = Arc::new(Flag::default());
    let waker = Waker::from(flag.clone());
    let mut next = Task::start(events.recv());
    assert!(!next.poll_for(&waker));
    watcher.end_client();
    flag.was_raised();
    assert_eq!(next.join(), None);
}
