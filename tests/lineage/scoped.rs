//! Scoped release. Each test is written once, over a function that runs work under a lock.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::time::Duration;

use navlocks::blocking::block_on;
use navlocks::lineage::adapters::{explicit_from_auto, explicit_from_scoped, scoped_from_explicit};
use navlocks::{Locks, Mode, Request, RequestError, RequestErrorKind, Scope};

use crate::support::{Task, assert_idle, held, pending, promise};

/// Work that gets the scope and the mode of its lock, and returns a number.
type Work = Box<dyn FnOnce(&Scope, Mode) -> Pin<Box<dyn Future<Output = u32> + Send>> + Send>;

/// A function that runs work under a lock.
type Scoped = fn(Request, Work) -> Task<Result<u32, RequestError>>;

const NATIVE: Scoped = |request, work| {
    Task::new(request.with(async move |lock| work(lock.scope(), lock.mode()).await))
};
const FROM_EXPLICIT: Scoped = |request, work| {
    let work = async move |lock: &navlocks::Lock| work(lock.scope(), lock.mode()).await;
    Task::new(scoped_from_explicit(request, work))
};
const FROM_EXPLICIT_FROM_AUTO: Scoped = |request, work| {
    Task::new(async {
        let explicit = explicit_from_auto(request.auto());
        scoped_from_explicit(explicit, async |lock| work(lock.scope(), lock.mode()).await).await
    })
};
const FROM_EXPLICIT_FROM_SCOPED: Scoped = |request, work| {
    Task::new(async {
        let explicit = explicit_from_scoped(request);
        scoped_from_explicit(explicit, async |lock| work(lock.scope(), lock.mode()).await).await
    })
};

/// All tests of the model.
const BODIES: [fn(Scoped); 6] = [
    the_result_is_the_works,
    held_while_the_work_runs,
    a_request_that_fails_says_so,
    an_abort_while_waiting_leaves_the_queue,
    an_abort_while_working_releases,
    a_panic_releases,
];

/// Makes work of a future.
fn work(future: impl Future<Output = u32> + Send + 'static) -> Work {
    Box::new(|_, _| Box::pin(future))
}

/// Makes work that must not run.
fn never() -> Work {
    Box::new(|_, _| panic!("the work ran without its lock"))
}

fn the_result_is_the_works(scoped: Scoped) {
    let locks = Locks::new();
    assert_eq!(scoped(locks.request("a"), work(async { 42 })).ends(), Ok(42));
    let count = |scope: &Scope, mode| {
        let names = u32::try_from(scope.names().len()).unwrap();
        if mode == Mode::Shared { names } else { 0 }
    };
    let work: Work = Box::new(move |scope, mode| Box::pin(std::future::ready(count(scope, mode))));
    assert_eq!(scoped(locks.request(["a", "b", "c"]).shared(), work).ends(), Ok(3));
    assert_idle(&locks);
}

fn held_while_the_work_runs(scoped: Scoped) {
    let locks = Locks::new();
    let (settle, goes_on) = promise();
    let first = work(async { goes_on.await.map_or(0, |()| 1) });
    let mut first = scoped(locks.request("a"), first);
    // Nothing happens before it is awaited.
    assert_idle(&locks);
    first.waits();
    let mut second = scoped(locks.request("a"), work(async { 2 }));
    second.waits();
    assert_eq!((held(&locks), pending(&locks)), (vec!["a".to_owned()], vec!["a".to_owned()]));
    settle.fulfil();
    assert!(!second.is_woken());
    assert_eq!(first.wakes_and_ends(), Ok(1));
    assert_eq!(second.wakes_and_ends(), Ok(2));
    assert_idle(&locks);
}

fn a_request_that_fails_says_so(scoped: Scoped) {
    let locks = Locks::new();
    let client = locks.new_client();
    let _first = block_on(locks.request("a").into_future()).unwrap();
    let after = Duration::ZERO;
    let timed_out = scoped(locks.request("a").timeout(after), never()).ends();
    assert_eq!(timed_out.unwrap_err(), RequestErrorKind::TimedOut { after });
    let mut pending = scoped(client.request("a"), never());
    pending.waits();
    client.end_client();
    assert_eq!(pending.wakes_and_ends().unwrap_err(), RequestErrorKind::ClientEnded);
}

fn an_abort_while_waiting_leaves_the_queue(scoped: Scoped) {
    let locks = Locks::new();
    let reader = block_on(locks.request("a").shared().into_future()).unwrap();
    let mut aborted = scoped(locks.request("a"), never());
    aborted.waits();
    let mut behind = scoped(locks.request("a").shared(), work(async { 1 }));
    behind.waits();
    drop(aborted);
    assert_eq!(behind.wakes_and_ends(), Ok(1));
    drop(reader);
    assert_idle(&locks);
}

fn an_abort_while_working_releases(scoped: Scoped) {
    let locks = Locks::new();
    let (settle, goes_on) = promise();
    let mut aborted = scoped(locks.request("a"), work(async { goes_on.await.map_or(0, |()| 1) }));
    aborted.waits();
    let mut next = scoped(locks.request("a"), work(async { 2 }));
    next.waits();
    drop(aborted);
    assert!(settle.is_dropped());
    assert_eq!(next.wakes_and_ends(), Ok(2));
}

fn a_panic_releases(scoped: Scoped) {
    let locks = Locks::new();
    let (settle, starts) = promise();
    let fails = work(async {
        starts.await.unwrap();
        std::panic::resume_unwind(Box::new("the work failed"))
    });
    let mut fails = scoped(locks.request("a"), fails);
    fails.waits();
    let mut next = scoped(locks.request("a"), work(async { 1 }));
    next.waits();
    settle.fulfil();
    assert!(catch_unwind(AssertUnwindSafe(|| fails.poll())).is_err());
    assert_eq!(next.wakes_and_ends(), Ok(1));
}

#[test]
fn x24_request_returns_the_result_of_the_work() {
    the_result_is_the_works(NATIVE);
}

#[test]
fn x24_lock_is_held_while_the_work_runs() {
    held_while_the_work_runs(NATIVE);
}

#[test]
fn x24_abort_while_waiting_leaves_queue() {
    an_abort_while_waiting_leaves_the_queue(NATIVE);
}

#[test]
fn native_request_passes_for_scoped() {
    for body in BODIES {
        body(NATIVE);
    }
}

#[test]
fn x25_d13_scoped_from_explicit_passes_for_scoped() {
    for body in BODIES {
        body(FROM_EXPLICIT);
    }
}

#[test]
fn x25_adapters_of_adapters_pass_for_scoped() {
    for body in BODIES {
        body(FROM_EXPLICIT_FROM_AUTO);
        body(FROM_EXPLICIT_FROM_SCOPED);
    }
}
