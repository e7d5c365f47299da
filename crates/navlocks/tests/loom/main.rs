//! Two or three threads on one lock space, in every interleaving. The model checker runs each test
//! again and again, each time in another order, and reports a deadlock when all threads sleep.
//!
//! `RUSTFLAGS="--cfg loom" cargo test --release -p navlocks --test loom`. Each test tries all
//! orders with up to [`PREEMPTIONS`] preemptions; `LOOM_MAX_PREEMPTIONS` sets another bound. With
//! `-- --nocapture` a deadlock is shown even if the clean-up after it fails.
#![cfg(loom)]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed, and says where")]
#![allow(clippy::print_stdout, reason = "how much was searched")]

mod exclusion;
mod dropping;
mod stealing;
mod ending;
mod watching;
mod subscribers;
mod gathering;
mod auto;

use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};

use loom::future::block_on;
use loom::model::Builder;
use loom::thread::{self, JoinHandle};
use navlocks::{Lock, Locks, Request, RequestError, RequestFuture, RequestId};

const PREEMPTIONS: usize = 4;

/// Runs a test in all orders.
fn model(test: impl Fn() + Send + Sync + 'static) {
    let orders = Arc::new(AtomicUsize::new(0));
    let mut builder = Builder::new();
    builder.preemption_bound.get_or_insert(PREEMPTIONS);
    builder.check({
        let orders = orders.clone();
        move || {
            orders.fetch_add(1, Ordering::Relaxed);
            test();
        }
    });
    let orders = orders.load(Ordering::Relaxed);
    println!("{orders} orders");
    assert!(orders > 1, "the threads never raced");
}

/// Gets the lock, however long it takes.
fn hold(request: Request) -> Lock {
    block_on(request.into_future()).unwrap()
}

/// Enqueues a request; the next poll of the future may be on any task.
fn begin_to_wait(request: Request) -> RequestFuture {
    let mut waiting = request.into_future();
    assert!(poll(&mut waiting).is_pending());
    waiting
}

/// Polls once, with a waker that wakes no task.
fn poll<F: Future + Unpin>(future: &mut F) -> Poll<F::Output> {
    Pin::new(future).poll(&mut Context::from_waker(Waker::noop()))
}

/// Spawns a thread that waits for the lock and returns the result.
fn waiter(request: Request) -> JoinHandle<Result<Lock, RequestError>> {
    thread::spawn(|| block_on(request.into_future()))
}

fn held(locks: &Locks) -> Vec<RequestId> {
    let snapshot = block_on(locks.query()).unwrap();
    snapshot.held.iter().map(|lock| lock.request).collect()
}

/// Asserts that no request is left, no table remembers one, and the name is free.
fn assert_nothing_left(locks: &Locks, name: &str) {
    let snapshot = block_on(locks.query()).unwrap();
    assert!(snapshot.held.is_empty() && snapshot.pending.is_empty(), "{snapshot:#?}");
    // The debug output of a stream shows its space.
    let space = format!("{:?}", locks.events());
    for (table, empty) in [
        ("Notices { ended: ", "Notices { ended: {}"),
        ("watchers: ", "watchers: Watchers { locks: {}"),
        ("tags: ", "tags: {}"),
        ("contention: ", "contention: Contention { locks: {}, names: {} }"),
        ("described: Some(", "described: Some({})"),
    ] {
        let (all, empty) = (space.matches(table).count(), space.matches(empty).count());
        assert!(all > 0 && empty == all, "{empty} of {all} tables are empty: {space}");
    }
    assert!(space.contains("notes: [") && !space.contains("Some(Waker"), "{space}");
    assert!(block_on(locks.request(name).if_available().into_future()).unwrap().is_some());
}
