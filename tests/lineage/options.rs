//! The options of a request, in the three release styles.

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use navlocks::blocking::block_on;
use navlocks::lineage::AcquireOptions;
use navlocks::{Locks, Mode, RequestErrorKind};

use crate::support::{Task, assert_idle, held, pending, promise};

#[test]
fn x26_request_is_exclusive_and_waits_by_default() {
    let locks = Locks::new();
    let explicit = block_on(locks.request("a").into_future()).unwrap();
    let auto = block_on(locks.request("b").auto()).unwrap();
    let scoped = block_on(locks.request("c").with(async |lock| lock.mode())).unwrap();
    assert_eq!([explicit.mode(), auto.mode(), scoped], [Mode::Exclusive; 3]);
    let mut waiting = Task::new(locks.request("a").into_future());
    waiting.waits();
    assert_eq!(pending(&locks), ["a"]);
    let defaults = AcquireOptions { mode: Mode::Exclusive, if_available: false, steal: false };
    assert_eq!(AcquireOptions::default(), defaults);
}

#[test]
fn x27_signal_aborts_a_pending_request() {
    let locks = Locks::new();
    let holder = block_on(locks.request("a").into_future()).unwrap();
    let (abort, signal) = promise();
    let request = locks.request("a").with(async |_| "done");
    // As `select!` does: the first ready future wins, and the other is dropped.
    let mut work = Task::new(async {
        let (mut request, mut signal) = (pin!(request), pin!(signal));
        poll_fn(|cx| match request.as_mut().poll(cx) {
            Poll::Ready(result) => Poll::Ready(result.map_err(|_| "failed")),
            Poll::Pending => signal.as_mut().poll(cx).map(|_| Err("aborted")),
        })
        .await
    });
    work.waits();
    assert_eq!(pending(&locks), ["a"]);
    abort.fulfil();
    assert_eq!(work.wakes_and_ends(), Err("aborted"));
    assert_eq!(pending(&locks), [""; 0]);
    drop(holder);
    assert_idle(&locks);
}

#[test]
fn x27_timer_aborts_a_pending_request() {
    let locks = Locks::new();
    let _holder = block_on(locks.request("a").into_future()).unwrap();
    let after = Duration::from_millis(20);
    let outcome = block_on(locks.request("a").timeout(after).with(async |_| panic!("granted")));
    assert_eq!(outcome.unwrap_err(), RequestErrorKind::TimedOut { after });
    assert_eq!(pending(&locks), [""; 0]);
}

#[test]
fn x28_unavailable_lock_is_none_in_every_model() {
    let locks = Locks::new();
    let holder = block_on(locks.request("a").into_future()).unwrap();
    let request = || locks.request("a").if_available();
    assert!(block_on(request().into_future()).unwrap().is_none());
    assert!(block_on(request().auto()).unwrap().is_none());
    assert!(block_on(request().with(async |lock| lock.is_none())).unwrap());
    assert_eq!((held(&locks), pending(&locks)), (vec!["a".to_owned()], vec![]));
    drop(holder);
    assert!(block_on(request().into_future()).unwrap().is_some());
    assert!(block_on(request().auto()).unwrap().is_some());
    assert!(block_on(request().with(async |lock| lock.is_some())).unwrap());
    assert_idle(&locks);
}
