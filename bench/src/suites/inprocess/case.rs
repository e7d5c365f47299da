//! The cases: each sets a side up and gives back the work of one round.

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
            for _ in 0..operations {
                drop(now(side.lock(black_box(HOT))));
            }
        })]
    })
}

/// Lock and unlock of one new name after the other.
pub(super) fn distinct<S: Side>(names: Names) -> Round {
    Box::new(move || {
        let side = S::new();
        vec![time_per_op(names.len(), || {
            for name in names.iter() {
                drop(now(side.lock(black_box(name))));
            }
        })]
    })
}

/// From empty: every name is taken, then every lock is released, both in the same order.
pub(super) fn hold<S: Side>(names: Names) -> Round {
    let count = names.len();
    Box::new(move || {
        let side = S::new();
        let mut guards = Vec::with_capacity(count);
        let lock = time_per_op(count, || {
            for name in names.iter() {
                guards.push(now(side.lock(name)));
            }
        });
        let unlock = time_per_op(count, || {
            for guard in guards {
                drop(guard);
            }
        });
        vec![lock, unlock]
    })
}

/// Two threads, each with a name of its own, which is another one in every round: which names fall
/// into the same part of a divided map is chance.
pub(super) fn two_threads_own<S: Side>(operations: usize) -> Round {
    let side = S::new();
    let mut names = (0..).step_by(2).map(|first| [first, first + 1].map(own_name));
    Box::new(move || {
        let names = names.next().unwrap_or_default();
        vec![time_of_two_threads(operations, |number| {
            for _ in 0..operations / 2 {
                drop(now(side.lock(black_box(&names[number]))));
            }
        })]
    })
}

fn own_name(number: usize) -> String {
    format!("name{number:08}")
}

/// Two threads that want the same name all the time, and sleep while they wait.
pub(super) fn two_threads_same<S: Side>(operations: usize) -> Round {
    let side = S::new();
    Box::new(move || {
        vec![time_of_two_threads(operations, |_| {
            navlocks::block_on(take_turns(&side, operations / 2));
        })]
    })
}

/// Nanoseconds per operation of what two threads do together, from their common start to the end of
/// the later one.
fn time_of_two_threads(operations: usize, work: impl Fn(usize) + Sync) -> f64 {
    let (work, start) = (&work, &Barrier::new(2));
    let run = move |number| {
        start.wait();
        let started = Instant::now();
        work(number);
        (started, Instant::now())
    };
    let (own, other) = thread::scope(|scope| {
        let other = scope.spawn(move || run(1));
        (run(0), other.join().expect("no case panics"))
    });
    (own.1.max(other.1) - own.0.min(other.0)).as_nanos() as f64 / operations as f64
}

/// A lock that goes to and fro between two tasks. `workers` are the threads of their runtime; with none it
/// is the current thread.
///
/// Two that wait for each other from the start will always do, where first come is first served: each
/// asks again right after it let the other one in. So every operation here is a hand-over.
pub(super) fn handoff<S: Side>(workers: usize, operations: usize) -> Round {
    let runtime = runtime(workers);
    let side = Arc::new(S::new());
    Box::new(move || {
        vec![runtime.block_on(async {
            let holder = side.lock(HOT).await;
            let queued = Arc::new(tokio::sync::Barrier::new(3));
            let tasks = [(); 2].map(|()| {
                let (side, queued) = (Arc::clone(&side), Arc::clone(&queued));
                tokio::spawn(async move {
                    let mut first = pin!(side.lock(HOT));
                    let at_once = poll_fn(|cx| Poll::Ready(first.as_mut().poll(cx).is_ready()));
                    assert!(!at_once.await, "somebody holds the lock");
                    queued.wait().await;
                    drop(first.await);
                    take_turns(&*side, operations / 2 - 1).await;
                })
            });
            queued.wait().await;
            let start = Instant::now();
            drop(holder);
            for task in tasks {
                task.await.expect("no turn panics");
            }
            start.elapsed().as_nanos() as f64 / operations as f64
        })]
    })
}

async fn take_turns<S: Side>(side: &S, turns: usize) {
    for _ in 0..turns {
        drop(side.lock(black_box(HOT)).await);
    }
}

/// So many tasks are spawned that all wait for one name, and each gets it in turn.
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
            // The runtime's queue is first in, first out: behind this task, all others wait for the lock.
            tokio::spawn(async {}).await.expect("nothing panics");
            drop(holder);
            // So is the lock: whoever gets it last has seen all others get it.
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

/// What a future gives at once, which it does.
#[inline]
fn now<T>(future: impl Future<Output = T>) -> T {
    let mut cx = Context::from_waker(Waker::noop());
    match pin!(future).poll(&mut cx) {
        Poll::Ready(output) => black_box(output),
        Poll::Pending => unreachable!("the lock is free"),
    }
}

fn runtime(workers: usize) -> Runtime {
    let built = match workers {
        0 => Builder::new_current_thread().build(),
        _ => Builder::new_multi_thread().worker_threads(workers).build(),
    };
    built.expect("threads can be started")
}
