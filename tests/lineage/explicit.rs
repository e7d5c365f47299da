//! Explicit release. Each test is written once, over a function that requests such a lock.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use navlocks::blocking::block_on;
use navlocks::lineage::adapters::{ExplicitLock, explicit_from_auto, explicit_from_scoped};
use navlocks::{Lock, Locks, Mode, Request, RequestError, RequestErrorKind, Scope};

use crate::support::{Task, assert_idle, held, pending, promise};

/// A lock to be released by hand.
trait Held: Send {
    fn scope(&self) -> &Scope;
    fn mode(&self) -> Mode;
    fn token(&self) -> u64;
    /// Returns whether there was something to release.
    fn release(self: Box<Self>) -> bool;
}

macro_rules! held {
    ($($lock:ty),*) => {$(
        impl Held for $lock {
            fn scope(&self) -> &Scope {
                self.scope()
            }

            fn mode(&self) -> Mode {
                self.mode()
            }

            fn token(&self) -> u64 {
                self.fencing_token().get()
            }

            fn release(self: Box<Self>) -> bool {
                Self::release(*self).is_ok()
            }
        }
    )*};
}

held!(Lock, ExplicitLock);

/// A function that requests a lock that is released by hand.
type Explicit = fn(Request) -> Task<Result<Box<dyn Held>, RequestError>>;

fn boxed(held: impl Held + 'static) -> Box<dyn Held> {
    Box::new(held)
}

const NATIVE: Explicit = |request| Task::new(async { request.await.map(boxed) });
const FROM_AUTO: Explicit =
    |request| Task::new(async { explicit_from_auto(request.auto()).await.map(boxed) });
const FROM_SCOPED: Explicit =
    |request| Task::new(async { explicit_from_scoped(request).await.map(boxed) });

/// All tests of the model.
const BODIES: [fn(Explicit); 8] = [
    held_until_it_is_released,
    the_lock_says_what_it_is,
    release_of_lost_lock_is_an_error,
    an_early_return_releases,
    a_panic_releases,
    only_a_lock_that_is_forgotten_stays_held,
    a_request_that_fails_says_so,
    an_abort_leaves_the_queue,
];

fn lock(explicit: Explicit, locks: &Locks) -> Box<dyn Held> {
    explicit(locks.request("a")).ends().unwrap()
}

fn held_until_it_is_released(explicit: Explicit) {
    let locks = Locks::new();
    let first = lock(explicit, &locks);
    let mut second = explicit(locks.request("a"));
    second.waits();
    assert_eq!(held(&locks), ["a"]);
    assert!(first.release());
    // At once, before any future is polled.
    let second = second.wakes_and_ends().unwrap();
    assert_eq!(held(&locks), ["a"]);
    assert!(second.release());
    assert_idle(&locks);
}

fn the_lock_says_what_it_is(explicit: Explicit) {
    let locks = Locks::new();
    let first = explicit(locks.request(["b", "a"]).shared()).ends().unwrap();
    let second = explicit(locks.request("c")).ends().unwrap();
    assert_eq!((first.scope(), first.mode()), (&Scope::from(["a", "b"]), Mode::Shared));
    assert_eq!((second.scope(), second.mode()), (&Scope::from("c"), Mode::Exclusive));
    assert!(second.token() > first.token());
}

fn release_of_lost_lock_is_an_error(explicit: Explicit) {
    let locks = Locks::new();
    let robbed = lock(explicit, &locks);
    let thief = explicit(locks.request("a").steal()).ends().unwrap();
    assert!(!robbed.release());
    assert_eq!(held(&locks), ["a"]);
    assert!(thief.release());
}

fn an_early_return_releases(explicit: Explicit) {
    let locks = Locks::new();
    let work = |lock: Box<dyn Held>| {
        "not a number".parse::<u8>()?;
        assert!(lock.release());
        Ok::<(), std::num::ParseIntError>(())
    };
    work(lock(explicit, &locks)).unwrap_err();
    assert_idle(&locks);
}

fn a_panic_releases(explicit: Explicit) {
    let locks = Locks::new();
    let lock = lock(explicit, &locks);
    let mut next = explicit(locks.request("a"));
    next.waits();
    let unwound = catch_unwind(AssertUnwindSafe(|| {
        let _lock = lock;
        std::panic::resume_unwind(Box::new("the work failed"));
    }));
    assert!(unwound.is_err());
    next.wakes_and_ends().unwrap();
}

fn only_a_lock_that_is_forgotten_stays_held(explicit: Explicit) {
    let locks = Locks::new();
    std::mem::forget(lock(explicit, &locks));
    let mut next = explicit(locks.request("a"));
    next.waits();
    assert_eq!((held(&locks), pending(&locks)), (vec!["a".to_owned()], vec!["a".to_owned()]));
    assert_eq!(block_on(locks.force_release("a")).unwrap(), 1);
    next.wakes_and_ends().unwrap();
}

fn a_request_that_fails_says_so(explicit: Explicit) {
    let locks = Locks::new();
    let client = locks.new_client();
    let first = lock(explicit, &locks);
    let after = Duration::ZERO;
    let error = explicit(locks.request("a").timeout(after)).ends().err().unwrap();
    assert_eq!(error, RequestErrorKind::TimedOut { after });
    let mut pending = explicit(client.request("a"));
    pending.waits();
    client.end_client();
    assert_eq!(pending.wakes_and_ends().err().unwrap(), RequestErrorKind::ClientEnded);
    assert_eq!(explicit(client.request("b")).ends().err().unwrap(), RequestErrorKind::ClientEnded);
    assert!(first.release());
    assert_idle(&locks);
}

fn an_abort_leaves_the_queue(explicit: Explicit) {
    let locks = Locks::new();
    let first = lock(explicit, &locks);
    let mut aborted = explicit(locks.request("a"));
    aborted.waits();
    let mut unheard = explicit(locks.request("a"));
    unheard.waits();
    let mut last = explicit(locks.request("a"));
    last.waits();
    drop(aborted);
    assert!(first.release());
    // Granted, and dropped before it is polled.
    assert!(unheard.is_woken() && !last.is_woken());
    drop(unheard);
    assert!(last.wakes_and_ends().unwrap().release());
    assert_idle(&locks);
}

#[test]
fn x21_lock_is_held_until_it_is_released() {
    held_until_it_is_released(NATIVE);
}

#[test]
fn x21_release_of_lost_lock_reports_it() {
    // A second release does not compile; only this release can fail.
    release_of_lost_lock_is_an_error(NATIVE);
}

#[test]
fn x22_early_return_releases() {
    an_early_return_releases(NATIVE);
}

#[test]
fn x22_panic_releases() {
    a_panic_releases(NATIVE);
}

#[test]
fn x22_only_lock_that_is_forgotten_stays_held() {
    only_a_lock_that_is_forgotten_stays_held(NATIVE);
}

#[test]
fn native_lock_passes_for_explicit() {
    for body in BODIES {
        body(NATIVE);
    }
}

#[test]
fn x25_d13_explicit_from_auto_passes_for_explicit() {
    for body in BODIES {
        body(FROM_AUTO);
    }
}

#[test]
fn x25_d13_explicit_from_scoped_passes_for_explicit() {
    for body in BODIES {
        body(FROM_SCOPED);
    }
}

#[test]
fn x25_explicit_from_auto_keeps_work_of_other_handles() {
    let locks = Locks::new();
    let lock = block_on(locks.request("a").auto()).unwrap();
    let clone = lock.clone();
    let explicit = block_on(explicit_from_auto(async { Ok::<_, RequestError>(lock) })).unwrap();
    let (settle, work) = promise();
    let mut released = Task::new(clone.wait_until(work));
    released.waits();
    assert!(explicit.release().is_ok());
    assert_eq!(held(&locks), ["a"]);
    settle.fulfil();
    released.wakes_and_ends().unwrap();
    assert_idle(&locks);
    // Dropping it does not delay them either.
    let lock = block_on(locks.request("a").auto()).unwrap();
    let mut released = Task::new(lock.released());
    let explicit = block_on(explicit_from_auto(async { Ok::<_, RequestError>(lock) })).unwrap();
    released.waits();
    drop(explicit);
    released.wakes_and_ends().unwrap();
    assert_idle(&locks);
}
