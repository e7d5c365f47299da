//! The auto-release style. Each test is written once, over a function that requests such a lock.

use navlocks::blocking::block_on;
use navlocks::lineage::adapters::auto_from_explicit;
use navlocks::lineage::{AutoLock, ReleaseError};
use navlocks::lineage::{request_flag, request_lock};
use navlocks::{Locks, LossCause, Mode, RequestError, RequestErrorKind, Scope};

use crate::support::{Task, assert_idle, held, pending, promise};

/// A function that requests a lock that releases itself.
type Auto = fn(Locks, Scope, Mode) -> Task<Result<AutoLock, RequestError>>;

const NATIVE: Auto =
    |locks, scope, mode| Task::new(async move { locks.request(scope).mode(mode).auto().await });
const REQUEST_LOCK: Auto =
    |locks, scope, mode| Task::new(async move { request_lock(&locks, scope, mode).await });
const REQUEST_FLAG: Auto =
    |locks, scope, mode| Task::new(async move { request_flag(&locks, scope, mode, None).await });
const FROM_EXPLICIT: Auto =
    |locks, scope, mode| Task::new(auto_from_explicit(locks.request(scope).mode(mode)));

/// All tests of the model.
const BODIES: [fn(Auto); 12] = [
    the_request_gives_a_lock,
    without_work_it_is_released_when_awaited,
    without_work_it_is_released_when_let_go,
    code_after_the_grant_comes_in_time,
    held_until_the_work_ends,
    held_until_all_works_end,
    the_first_failure_releases_at_once,
    adding_returns_the_release,
    too_late_is_an_error,
    the_release_gives_nothing,
    an_abort_while_pending_leaves_the_queue,
    the_end_of_the_client_ends_the_lock,
];

fn lock(auto: Auto, locks: &Locks, scope: impl Into<Scope>) -> AutoLock {
    auto(locks.clone(), scope.into(), Mode::Exclusive).ends().unwrap()
}

/// Makes another request for `a`.
fn next(locks: &Locks) -> Task<Result<navlocks::Lock, RequestError>> {
    let mut next = Task::new(locks.new_client().request("a").into_future());
    next.waits();
    next
}

fn the_request_gives_a_lock(auto: Auto) {
    let locks = Locks::new();
    let shared = auto(locks.clone(), ["b", "a", "b"].into(), Mode::Shared).ends().unwrap();
    assert_eq!(shared.scope(), &Scope::from(["a", "b"]));
    assert_eq!(shared.mode(), Mode::Shared);
    let exclusive = lock(auto, &locks, "c");
    assert_eq!(exclusive.mode(), Mode::Exclusive);
    assert!(exclusive.fencing_token() > shared.fencing_token());
    assert_ne!(exclusive.request_id(), shared.request_id());
    assert_eq!(held(&locks), ["{a, b}", "c"]);
    // The facts of a lock stay known after its release.
    block_on(shared.released()).unwrap();
    assert_eq!(shared.scope(), &Scope::from(["a", "b"]));
    assert_eq!(shared.mode(), Mode::Shared);
}

fn without_work_it_is_released_when_awaited(auto: Auto) {
    let locks = Locks::new();
    let lock = lock(auto, &locks, "a");
    let mut next = next(&locks);
    let mut released = Task::new(lock.released());
    assert!(!next.is_woken());
    assert!(released.ends().is_ok());
    drop(next.wakes_and_ends().unwrap());
}

fn without_work_it_is_released_when_let_go(auto: Auto) {
    let locks = Locks::new();
    let lock = lock(auto, &locks, "a");
    let (clone, released) = (lock.clone(), lock.released());
    let mut next = next(&locks);
    drop(lock);
    drop(clone);
    assert!(!next.is_woken());
    drop(released);
    drop(next.wakes_and_ends().unwrap());
}

fn code_after_the_grant_comes_in_time(auto: Auto) {
    let locks = Locks::new();
    let before = block_on(locks.request("a").into_future()).unwrap();
    let (settle, work) = promise();
    let mut script = auto(locks.clone(), "a".into(), Mode::Exclusive);
    script.waits();
    let mut next = next(&locks);
    drop(before);
    // The lock is granted and not polled, then polled and not used; each time another client
    // queries.
    assert_eq!((held(&locks), pending(&locks)), (vec!["a".to_owned()], vec!["a".to_owned()]));
    let lock = script.wakes_and_ends().unwrap();
    next.waits();
    assert_eq!((held(&locks), pending(&locks)), (vec!["a".to_owned()], vec!["a".to_owned()]));
    let mut released = Task::new(lock.wait_until(work));
    released.waits();
    settle.fulfil();
    released.wakes_and_ends().unwrap();
    drop(next.wakes_and_ends().unwrap());
}

fn held_until_the_work_ends(auto: Auto) {
    let locks = Locks::new();
    let lock = lock(auto, &locks, "a");
    let (settle, work) = promise();
    lock.wait_until(work);
    let mut released = Task::new(lock.released());
    let mut next = next(&locks);
    released.waits();
    released.waits();
    assert_eq!(held(&locks), ["a"]);
    settle.fulfil();
    assert!(!next.is_woken());
    released.wakes_and_ends().unwrap();
    drop(next.wakes_and_ends().unwrap());
}

fn held_until_all_works_end(auto: Auto) {
    let locks = Locks::new();
    let lock = lock(auto, &locks, "a");
    let ((first, one), (second, two), (third, three)) = (promise(), promise(), promise());
    lock.wait_until(one);
    let mut released = Task::new(lock.wait_until(two));
    let mut next = next(&locks);
    released.waits();
    second.fulfil();
    released.waits();
    // Work is added while the lock is held.
    lock.wait_until(three);
    assert!(released.is_woken());
    first.fulfil();
    released.waits();
    assert!(!next.is_woken());
    third.fulfil();
    released.wakes_and_ends().unwrap();
    drop(next.wakes_and_ends().unwrap());
}

fn the_first_failure_releases_at_once(auto: Auto) {
    let locks = Locks::new();
    let lock = lock(auto, &locks, "a");
    let ((fails, one), (goes_on, two)) = (promise(), promise());
    lock.wait_until(two);
    lock.wait_until(one);
    let mut released = Task::new(lock.released());
    let mut next = next(&locks);
    released.waits();
    fails.reject("the disk is full");
    let error = released.wakes_and_ends().unwrap_err();
    assert!(matches!(&error, ReleaseError::Failed(_)));
    assert_eq!(error.to_string(), "the disk is full");
    drop(next.wakes_and_ends().unwrap());
    // A promise would have continued without the lock.
    assert!(goes_on.is_dropped());
    goes_on.reject("not received");
    assert_eq!(released.ends().unwrap_err().to_string(), "the disk is full");
    assert_eq!(block_on(lock.released()).unwrap_err().to_string(), "the disk is full");
}

fn adding_returns_the_release(auto: Auto) {
    let locks = Locks::new();
    for fails in [false, true] {
        let lock = lock(auto, &locks, "a");
        let ((first, one), (second, two)) = (promise(), promise());
        let mut of_one = Task::new(lock.wait_until(one));
        let mut of_two = Task::new(lock.wait_until(two));
        let mut released = Task::new(lock.released());
        for task in [&mut of_one, &mut of_two, &mut released] {
            task.waits();
        }
        // The future resolves at the release, not at the end of its own work.
        first.fulfil();
        of_one.waits();
        if fails {
            second.reject("no")
        } else {
            second.fulfil()
        }
        for task in [&mut of_one, &mut of_two, &mut released] {
            assert_eq!(task.wakes_and_ends().is_err(), fails);
        }
    }
    assert_idle(&locks);
}

fn too_late_is_an_error(auto: Auto) {
    let locks = Locks::new();
    let released = lock(auto, &locks, "a");
    block_on(released.released()).unwrap();
    let failed = lock(auto, &locks, "a");
    block_on(failed.wait_until(async { Err("no") })).unwrap_err();
    let lost = lock(auto, &locks, "a");
    block_on(locks.force_release("a")).unwrap();
    block_on(lost.released()).unwrap_err();
    for lock in [released, failed, lost] {
        let (settle, work) = promise();
        let mut late = Task::new(lock.wait_until(work));
        assert!(settle.is_dropped());
        let error = late.ends().unwrap_err();
        assert!(matches!(error, ReleaseError::TooLate));
        assert_eq!(error.dom_exception_name(), Some("TypeError"));
    }
    assert_idle(&locks);
}

fn the_release_gives_nothing(auto: Auto) {
    let locks = Locks::new();
    let lock = lock(auto, &locks, "a");
    assert!(matches!(block_on(lock.wait_until(async { Ok::<(), &str>(()) })), Ok(())));
    assert!(matches!(block_on(lock.released()), Ok(())));
}

fn an_abort_while_pending_leaves_the_queue(auto: Auto) {
    let locks = Locks::new();
    let reader = block_on(locks.request("a").shared().into_future()).unwrap();
    let mut aborted = auto(locks.clone(), ["a", "b"].into(), Mode::Exclusive);
    aborted.waits();
    let mut behind = Task::new(locks.new_client().request("b").into_future());
    behind.waits();
    drop(aborted);
    let behind = behind.wakes_and_ends().unwrap();
    drop((reader, behind));
    assert_idle(&locks);
    // Once granted there is nothing left to abort: dropping the request does not affect the lock.
    let mut granted = auto(locks.clone(), "a".into(), Mode::Exclusive);
    let lock = granted.ends().unwrap();
    drop(granted);
    assert_eq!(held(&locks), ["a"]);
    drop(lock);
    // Granted and never polled: the lock is released.
    let before = block_on(locks.request("a").into_future()).unwrap();
    let mut unheard = auto(locks.clone(), "a".into(), Mode::Exclusive);
    unheard.waits();
    let mut next = next(&locks);
    drop(before);
    drop(unheard);
    drop(next.wakes_and_ends().unwrap());
}

fn the_end_of_the_client_ends_the_lock(auto: Auto) {
    let locks = Locks::new();
    let ends = locks.new_client();
    let lock = lock(auto, &ends, "a");
    let (settle, work) = promise();
    let mut released = Task::new(lock.wait_until(work));
    released.waits();
    let mut pending = auto(ends.clone(), "a".into(), Mode::Exclusive);
    pending.waits();
    let mut next = next(&locks);
    ends.end_client();
    drop(next.wakes_and_ends().unwrap());
    let error = released.wakes_and_ends().unwrap_err();
    assert!(matches!(error, ReleaseError::Lost(LossCause::ClientEnded)));
    assert_eq!(error.dom_exception_name(), Some("AbortError"));
    assert!(settle.is_dropped());
    assert_eq!(lock.loss(), Some(LossCause::ClientEnded));
    assert_eq!(pending.wakes_and_ends().unwrap_err(), RequestErrorKind::ClientEnded);
    assert_idle(&locks);
}

#[test]
fn q11_request_gives_a_lock() {
    the_request_gives_a_lock(REQUEST_LOCK);
}

#[test]
fn q12_lock_without_work_is_released_when_awaited() {
    without_work_it_is_released_when_awaited(REQUEST_LOCK);
}

#[test]
fn q12_lock_without_work_is_released_when_dropped() {
    without_work_it_is_released_when_let_go(REQUEST_LOCK);
}

#[test]
fn q13_work_added_after_the_grant_is_accepted() {
    code_after_the_grant_comes_in_time(REQUEST_LOCK);
}

#[test]
fn q14_lock_is_held_until_the_work_ends() {
    held_until_the_work_ends(REQUEST_LOCK);
}

#[test]
fn q15_lock_is_held_until_all_work_ends() {
    held_until_all_works_end(REQUEST_LOCK);
}

#[test]
fn q16_first_failure_releases_at_once() {
    the_first_failure_releases_at_once(REQUEST_LOCK);
}

#[test]
fn q17_wait_until_returns_the_release() {
    adding_returns_the_release(REQUEST_LOCK);
}

#[test]
fn q18_work_added_after_the_release_is_refused() {
    too_late_is_an_error(REQUEST_LOCK);
}

#[test]
fn q19_release_resolves_to_nothing() {
    the_release_gives_nothing(REQUEST_LOCK);
}

#[test]
fn q20_abort_while_pending_leaves_the_queue() {
    an_abort_while_pending_leaves_the_queue(REQUEST_LOCK);
}

#[test]
fn q21_end_of_client_releases_the_lock() {
    the_end_of_the_client_ends_the_lock(REQUEST_LOCK);
}

#[test]
fn x23_auto_release_model_passes_all_bodies() {
    for body in BODIES {
        body(NATIVE);
    }
}

#[test]
fn t02_flag_is_a_lock_that_releases_itself() {
    for body in BODIES {
        body(REQUEST_FLAG);
    }
}

#[test]
fn x25_d13_auto_from_explicit_passes_for_auto() {
    for body in BODIES {
        body(FROM_EXPLICIT);
    }
}
