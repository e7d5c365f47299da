//! The cases: each sets a side up and returns the work of one round.

use std::future::{Future, poll_fn};
use std::hint::black_box;
use std::pin::pin;
use std::sync::{Arc, Barrier};
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::Instant;

use tokio::runtime::{Builder, Runtime};

use super::side::Side;
use crate::harness::{Round, time_per_op};
use crate::heap;
use crate::workload::{HOT, Names};

/// Lock and unlock of one name.
pub(super) fn hot<S: Side>(operations: usize) -> Round {
    let side = S::new();
    Box::new(move || {
        vec![time_per_op(operations, || {
            now(async {
                for _ in 0..operations {
                    drop(side.lock(black_box(HOT)).await);
                }
            });
        })]
    })
}

/// Lock and unlock of one new name after the other.
pub(super) fn distinct<S: Side>(names: Names) -> Round {
    Box::new(move || {
        let side = S::new();
        vec![time_per_op(names.len(), || {
            now(async {
                for name in names.iter() {
                    drop(side.lock(name).await);
                }
            });
        })]
    })
}

/// From empty: every name is locked, then every lock is released, in the same order. Both together,
/// and each.
pub(super) fn hold<S: Side>(names: Names) -> Round {
    let count = names.len();
    Box::new(move || {
        let side = S::new();
        let mut guards = Vec::with_capacity(count);
        let lock = time_per_op(count, || {
            now(async {
                for name in names.iter() {
                    guards.push(side.lock(name).await);
                }
            });
        });
        let unlock = time_per_op(count, || {
            for guard in guards {
                drop(guard);
            }
        });
        vec![lock + unlock, lock, unlock]
    })
}

/// Two threads with a name each, other ones in every round, because two names may share a shard by
/// chance. From their common start to the end of the later one.
pub(super) fn two_threads_own<S: Side>(operations: usize) -> Round {
    let side = S::new();
    let mut numbers = 0..;
    Box::new(move || {
        let names = [(); 2].map(|()| format!("name{:08}", numbers.next().unwrap_or_default()));
        let start = Barrier::new(names.len());
        let work = |name: &str| {
            start.wait();
            let started = Instant::now();
            now(async {
                for _ in 0..operations / 2 {
                    drop(side.lock(black_box(name)).await);
                }
            });
            (started, Instant::now())
        };
        let (own, other) = thread::scope(|scope| {
            let other = scope.spawn(|| work(&names[1]));
            (work(&names[0]), other.join().expect("no turn panics"))
        });
        let time = own.1.max(other.1) - own.0.min(other.0);
        vec![time.as_nanos() as f64 / operations as f64]
    })
}

/// Two tasks that contend for one name all the time, on a runtime of two threads.
pub(super) fn two_threads_same<S: Side>(operations: usize) -> Round {
    two_tasks(2, operations, move |side: Arc<S>| async move {
        for _ in 0..operations / 2 {
            drop(side.lock(black_box(HOT)).await);
        }
    })
}

/// A lock that two tasks pass to each other. `workers` are the threads of their runtime; 0 is the
/// current thread.
pub(super) fn handoff<S: Side>(workers: usize, operations: usize) -> Round {
    two_tasks(workers, operations, move |side: Arc<S>| async move {
        let mut held = Some(side.lock(HOT).await);
        for _ in 1..operations / 2 {
            let mut next = pin!(side.lock(black_box(HOT)));
            let hand_over = poll_fn(|cx| {
                let turn = next.as_mut().poll(cx);
                // Released only when in the queue again: so there always is a waiter, and it is the
                // other task.
                held = None;
                turn
            });
            held = Some(hand_over.await);
        }
    })
}

/// Returns the time of two tasks that do the same on the same side.
fn two_tasks<S: Side, T: Future<Output = ()> + Send + 'static>(
    workers: usize,
    operations: usize,
    task: impl Fn(Arc<S>) -> T + 'static,
) -> Round {
    let runtime = runtime(workers);
    let side = Arc::new(S::new());
    Box::new(move || {
        vec![time_per_op(operations, || {
            runtime.block_on(async {
                for task in [(); 2].map(|()| tokio::spawn(task(Arc::clone(&side)))) {
                    task.await.expect("no task panics");
                }
            });
        })]
    })
}

/// Many tasks are spawned that all wait for one name, and each is granted in turn.
pub(super) fn queued<S: Side>(waiting: usize) -> Round {
    let runtime = runtime(0);
    Box::new(move || {
        let side = Arc::new(S::new());
        vec![runtime.block_on(async {
            let holder = side.lock(HOT).await;
            let start = Instant::now();
            for _ in 0..waiting {
                let side = Arc::clone(&side);
                tokio::spawn(async move { drop(side.lock(black_box(HOT)).await) });
            }
            // The queue of the runtime is first in, first out: after this task, all others wait for
            // the lock.
            tokio::spawn(async {}).await.expect("nothing panics");
            drop(holder);
            // So is the lock: the last holder comes after all others.
            drop(side.lock(HOT).await);
            start.elapsed().as_nanos() as f64 / waiting as f64
        })]
    })
}

/// Bytes per lock of many distinct names held at once: all of it, and without the guards.
pub(super) fn memory_held<S: Side>(names: Names) -> Round {
    let count = names.len();
    Box::new(move || {
        let side = S::new();
        let (guards, usage) = heap::measure(|| {
            let mut guards = Vec::with_capacity(count);
            guards.extend(names.iter().map(|name| now(side.lock(name))));
            guards
        });
        let all = usage.live / count as f64;
        let own = guards.capacity() * size_of::<S::Guard<'_>>();
        vec![all, all - own as f64 / count as f64]
    })
}

/// Returns the result of a future that is ready at once, as without contention.
fn now<T>(future: impl Future<Output = T>) -> T {
    let mut cx = Context::from_waker(Waker::noop());
    match pin!(future).poll(&mut cx) {
        Poll::Ready(output) => output,
        Poll::Pending => unreachable!("every lock is free"),
    }
}

fn runtime(workers: usize) -> Runtime {
    let built = match workers {
        0 => Builder::new_current_thread().build(),
        _ => Builder::new_multi_thread().worker_threads(workers).build(),
    };
    built.expect("threads can be started")
}
