//! `AutoLock`: which task drives the work, when work is dropped, panics, theft.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use navlocks::blocking::block_on;
use navlocks::lineage::{AutoLock, ReleaseError};
use navlocks::{Locks, LossCause};

use crate::support::{Task, assert_idle, held, promise};

fn lock(locks: &Locks) -> AutoLock {
    block_on(locks.request("a").auto()).unwrap()
}

/// Work that never ends and records, when it is dropped, which locks are held.
struct Witness {
    locks: Locks,
    seen: Arc<Mutex<Option<Vec<String>>>>,
}

impl Witness {
    fn new(locks: &Locks) -> (Self, Arc<Mutex<Option<Vec<String>>>>) {
        let seen = Arc::default();
        (Self { locks: locks.clone(), seen: Arc::clone(&seen) }, seen)
    }
}

impl Future for Witness {
    type Output = Result<(), io::Error>;

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Self::Output> {
        Poll::Pending
    }
}

impl Drop for Witness {
    fn drop(&mut self) {
        *self.seen.lock().unwrap() = Some(held(&self.locks));
    }
}

#[test]
fn work_adds_work_to_its_own_lock() {
    let locks = Locks::new();
    let lock = lock(&locks);
    let (settle, last) = promise();
    let own = lock.clone();
    let mut released = Task::new(lock.wait_until(async move {
        let weak = own.downgrade();
        own.wait_until(async move {
            weak.upgrade().unwrap().wait_until(last);
            Ok::<(), io::Error>(())
        });
        Ok::<(), io::Error>(())
    }));
    // Each poll runs the present work and is woken for the work that it added.
    for _ in 0..3 {
        released.waits();
    }
    assert_eq!((settle.polls(), released.is_woken()), (1, false));
    settle.fulfil();
    released.wakes_and_ends().unwrap();
    assert_idle(&locks);
}

#[test]
fn work_that_awaits_its_own_lock_blocks_no_other() {
    let locks = Locks::new();
    let lock = lock(&locks);
    let own = lock.released();
    let mut released = Task::new(lock.wait_until(own));
    released.waits();
    released.waits();
    assert_eq!(block_on(locks.force_release("a")).unwrap(), 1);
    let error = released.wakes_and_ends().unwrap_err();
    assert!(matches!(error, ReleaseError::Lost(LossCause::ForceReleased)));
}

#[test]
fn work_is_polled_only_when_awake() {
    let locks = Locks::new();
    let lock = lock(&locks);
    let ((first, one), (second, two)) = (promise(), promise());
    lock.wait_until(one);
    lock.wait_until(two);
    let mut released = Task::new(lock.released());
    released.waits();
    released.waits();
    first.fulfil();
    released.waits();
    assert_eq!((first.polls(), second.polls()), (2, 1));
    assert!(first.is_dropped());
}

#[test]
fn remaining_task_drives_the_work() {
    let locks = Locks::new();
    let lock = lock(&locks);
    let ((first, one), (second, two)) = (promise(), promise());
    lock.wait_until(one);
    lock.wait_until(two);
    let [mut dropped, mut forgotten, mut left] = [0; 3].map(|_| Task::new(lock.released()));
    for task in [&mut dropped, &mut forgotten, &mut left] {
        task.waits();
    }
    // The task is woken and dropped before it runs.
    first.fulfil();
    assert!(dropped.is_woken() && forgotten.is_woken() && left.is_woken());
    drop(dropped);
    left.waits();
    assert!(first.is_dropped());
    // The task is kept and not polled any more.
    second.fulfil();
    assert!(left.wakes_and_ends().is_ok());
    assert!(forgotten.wakes_and_ends().is_ok());
}

#[test]
fn task_that_comes_during_driving_is_woken_for_the_rest() {
    let locks = Locks::new();
    let lock = lock(&locks);
    let (settle, left) = promise();
    lock.wait_until(left);
    let other = Arc::new(Mutex::new(Task::new(lock.released())));
    let comes = Arc::clone(&other);
    // While this work is driven, other work wakes, and another task arrives that could drive it.
    let mut driver = Task::new(lock.wait_until(async move {
        settle.fulfil();
        comes.lock().unwrap().waits();
        Ok::<(), io::Error>(())
    }));
    driver.waits();
    drop(driver);
    other.lock().unwrap().wakes_and_ends().unwrap();
    assert_idle(&locks);
}

#[test]
fn work_that_wakes_itself_is_polled_again() {
    let locks = Locks::new();
    let lock = lock(&locks);
    let mut left = 3;
    let mut released = Task::new(lock.wait_until(std::future::poll_fn(move |cx| {
        cx.waker().wake_by_ref();
        left -= 1;
        if left == 0 { Poll::Ready(Ok::<(), io::Error>(())) } else { Poll::Pending }
    })));
    for _ in 0..2 {
        released.waits();
        assert!(released.is_woken());
    }
    released.wakes_and_ends().unwrap();
}

#[test]
fn work_is_dropped_under_the_lock() {
    let locks = Locks::new();
    let (witness, seen) = Witness::new(&locks);
    // The last handle is dropped.
    let let_go = lock(&locks);
    let mut released = Task::new(let_go.wait_until(witness));
    released.waits();
    drop(let_go);
    assert_eq!(held(&locks), ["a"]);
    drop(released);
    assert_eq!(seen.lock().unwrap().take(), Some(vec!["a".to_owned()]));
    assert_idle(&locks);
    // Other work fails.
    let (witness, seen) = Witness::new(&locks);
    let failing = lock(&locks);
    failing.wait_until(witness);
    block_on(failing.wait_until(async { Err("no") })).unwrap_err();
    assert_eq!(seen.lock().unwrap().take(), Some(vec!["a".to_owned()]));
    assert_idle(&locks);
}

#[test]
fn waker_that_outlives_lock_does_nothing() {
    let locks = Locks::new();
    let lock = lock(&locks);
    let (settle, work) = promise();
    let mut released = Task::new(lock.wait_until(work));
    released.waits();
    drop((lock, released));
    assert!(settle.is_dropped());
    assert_idle(&locks);
    settle.fulfil();
}

#[test]
fn weak_handle_keeps_nothing() {
    let locks = Locks::new();
    let lock = lock(&locks);
    let (weak, own) = (lock.downgrade(), lock.downgrade());
    lock.wait_until(async move {
        let _own = own;
        std::future::pending::<Result<(), io::Error>>().await
    });
    assert!(weak.upgrade().is_some());
    drop(lock);
    assert!(weak.upgrade().is_none());
    assert_idle(&locks);
}

#[test]
fn stolen_lock_drops_its_work_and_names_the_thief() {
    let locks = Locks::new();
    let lock = lock(&locks);
    let (settle, work) = promise();
    let mut released = Task::new(lock.wait_until(work));
    released.waits();
    assert_eq!(lock.loss(), None);
    let thief = block_on(locks.request("a").steal().into_future()).unwrap();
    let stolen = LossCause::Stolen { by: thief.request_id().into() };
    assert_eq!(lock.loss(), Some(stolen.clone()));
    // No work begins or continues on a lost lock.
    let (late, too_late) = promise();
    let mut of_late = Task::new(lock.wait_until(too_late));
    settle.fulfil();
    for task in [&mut released, &mut of_late] {
        let error = task.ends().unwrap_err();
        assert!(matches!(error, ReleaseError::Lost(loss) if loss == stolen));
    }
    assert_eq!((settle.polls(), late.polls()), (1, 0));
    assert!(settle.is_dropped() && late.is_dropped());
    assert_eq!(lock.loss(), Some(stolen));
    drop(lock);
    assert_eq!(held(&locks), ["a"]);
    drop(thief);
}

#[test]
fn work_that_ends_after_the_loss_reports_the_loss() {
    let locks = Locks::new();
    let lock = lock(&locks);
    let own = locks.clone();
    let released = lock.wait_until(async move { own.force_release("a").await.map(|_| ()) });
    assert!(matches!(block_on(released), Err(ReleaseError::Lost(LossCause::ForceReleased))));
}

#[test]
fn panic_continues_in_its_task_and_others_get_an_error() {
    let locks = Locks::new();
    let lock = lock(&locks);
    let (settle, other) = promise();
    lock.wait_until(other);
    let (start, starts) = promise();
    lock.wait_until(async move {
        starts.await?;
        resume_unwind(Box::new("a bug"));
        #[allow(unreachable_code, reason = "says what the work would return")]
        Ok::<(), &str>(())
    });
    let [mut driver, mut other] = [0; 2].map(|_| Task::new(lock.released()));
    driver.waits();
    other.waits();
    start.fulfil();
    let panic = catch_unwind(AssertUnwindSafe(|| driver.poll())).unwrap_err();
    assert_eq!(panic.downcast_ref::<&str>(), Some(&"a bug"));
    assert!(settle.is_dropped());
    assert!(matches!(other.wakes_and_ends(), Err(ReleaseError::Panicked)));
    assert_idle(&locks);
}

/// Panics when it is dropped.
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        resume_unwind(Box::new("a bug in a destructor"));
    }
}

#[test]
fn panic_in_destructor_releases_the_lock() {
    let locks = Locks::new();
    // Work that ended is dropped.
    let ended = lock(&locks);
    let (start, starts) = promise();
    let bomb = Bomb;
    let mut driver = Task::new(ended.wait_until(async move {
        let _bomb = bomb;
        starts.await
    }));
    let mut other = Task::new(ended.released());
    driver.waits();
    other.waits();
    start.fulfil();
    assert!(catch_unwind(AssertUnwindSafe(|| driver.poll())).is_err());
    assert!(matches!(other.wakes_and_ends(), Err(ReleaseError::Panicked)));
    assert_idle(&locks);
    // Work is dropped because other work failed: that failure stands.
    let failed = lock(&locks);
    let bomb = Bomb;
    failed.wait_until(async move {
        let _bomb = bomb;
        std::future::pending::<Result<(), io::Error>>().await
    });
    let mut other = Task::new(failed.released());
    other.waits();
    let mut driver = Task::new(failed.wait_until(async { Err("no") }));
    assert!(catch_unwind(AssertUnwindSafe(|| driver.poll())).is_err());
    assert_eq!(other.wakes_and_ends().unwrap_err().to_string(), "no");
    assert_idle(&locks);
}

#[test]
fn work_may_fail_with_any_error() {
    let locks = Locks::new();
    let failed = |released| match block_on(released) {
        Err(ReleaseError::Failed(error)) => error,
        other => panic!("it did not fail: {other:?}"),
    };
    let error = failed(lock(&locks).wait_until(async { Err(io::Error::other("io")) }));
    assert_eq!(error.downcast_ref::<io::Error>().unwrap().kind(), io::ErrorKind::Other);
    let error = failed(lock(&locks).wait_until(async { Err(format!("a {}", "text")) }));
    assert_eq!(error.to_string(), "a text");
    let boxed: Box<dyn std::error::Error + Send + Sync> = "boxed".into();
    let error = failed(lock(&locks).wait_until(async { Err(boxed) }));
    assert_eq!(error.to_string(), "boxed");
    // The release of one lock may be the work of another.
    let inner = lock(&locks).wait_until(async { Err("inner") });
    let outer = block_on(locks.request("b").auto()).unwrap();
    assert_eq!(failed(outer.wait_until(inner)).to_string(), "inner");
    assert_idle(&locks);
}
