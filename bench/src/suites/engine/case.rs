//! The cases: each sets a side up and returns the work of one round.

use std::hint::black_box;

use navlocks_core::Mode::{Exclusive, Shared};

use super::side::{Engine, Side};
use crate::harness::{Round, time_per_op};
use crate::heap;
use crate::workload::{HOT, Names, shuffle};

/// Request and release of one name, while unrelated locks are held.
pub(super) fn hot<S: Side>(others: Names, operations: usize) -> Round {
    let mut locks = S::new();
    for name in others.iter() {
        locks.request(name, Exclusive);
    }
    Box::new(move || {
        vec![time_per_op(operations, || {
            for _ in 0..operations {
                let id = locks.request(black_box(HOT), Exclusive);
                locks.release(id);
            }
        })]
    })
}

/// One more waiter at the tail of a long queue, which is aborted.
pub(super) fn queue_abort<S: Side>(waiting: usize, operations: usize) -> Round {
    let (mut locks, _) = crowded::<S>(waiting);
    Box::new(move || {
        vec![time_per_op(operations, || {
            for _ in 0..operations {
                let id = locks.request(black_box(HOT), Exclusive);
                locks.abort(id);
            }
        })]
    })
}

/// The holder of a long queue's lock releases, the next waiter is granted, and a new one queues.
pub(super) fn handoff<S: Side>(waiting: usize, operations: usize) -> Round {
    let (mut locks, mut holder) = crowded::<S>(waiting);
    Box::new(move || {
        vec![time_per_op(operations, || {
            for _ in 0..operations {
                if let Some(next) = locks.release(holder) {
                    holder = next;
                }
                locks.request(black_box(HOT), Exclusive);
            }
        })]
    })
}

fn crowded<S: Side>(waiting: usize) -> (S, S::Id) {
    let mut locks = S::new();
    let holder = locks.request(HOT, Exclusive);
    for _ in 0..waiting {
        locks.request(HOT, Exclusive);
    }
    (locks, holder)
}

/// From empty: every name is locked, then every lock is released, in the same order.
pub(super) fn hold<S: Side>(names: Names) -> Round {
    let count = names.len();
    Box::new(move || {
        let mut locks = S::new();
        let mut ids = Vec::with_capacity(count);
        let request = time_per_op(count, || {
            for name in names.iter() {
                ids.push(locks.request(name, Exclusive));
            }
        });
        let release = time_per_op(count, || {
            for id in ids {
                locks.release(id);
            }
        });
        vec![request, release]
    })
}

/// From empty: many waiters queue for one name, then each is granted in turn. Short queues are
/// filled and drained many times for one measurement.
pub(super) fn drain<S: Side>(waiting: usize, repeats: usize) -> Round {
    Box::new(move || {
        let mut locks = S::new();
        let (mut enqueue, mut drain) = (0.0, 0.0);
        for _ in 0..repeats {
            let mut holder = Some(locks.request(HOT, Exclusive));
            enqueue += time_per_op(waiting * repeats, || {
                for _ in 0..waiting {
                    locks.request(black_box(HOT), Exclusive);
                }
            });
            drain += time_per_op(waiting * repeats, || {
                while let Some(id) = holder {
                    holder = locks.release(id);
                }
            });
        }
        vec![enqueue, enqueue + drain]
    })
}

/// Half of the waiters of one name are aborted, in random order.
pub(super) fn abort_half<S: Side>(waiting: usize) -> Round {
    Box::new(move || {
        let mut locks = S::new();
        locks.request(HOT, Exclusive);
        let mut ids: Vec<S::Id> = (0..waiting).map(|_| locks.request(HOT, Exclusive)).collect();
        shuffle(&mut ids);
        ids.truncate(waiting / 2);
        vec![time_per_op(ids.len(), || {
            for id in ids {
                locks.abort(id);
            }
        })]
    })
}

/// A client with five held and five pending entries ends, among many entries of others.
pub(super) fn terminate<S: Side>(others: Names, sessions: usize) -> Round {
    let mut locks = S::new();
    for name in others.iter() {
        locks.request(name, Exclusive);
    }
    let own: Vec<String> = (0..5 * sessions).map(|n| format!("own-{n:08}")).collect();
    let mut taken: Vec<usize> = (0..others.len()).collect();
    shuffle(&mut taken);
    Box::new(move || {
        let mut taken = taken.iter().cycle().map(|&number| others.get(number));
        let open: Vec<S::Session> = (own.chunks(5))
            .map(|own| locks.open(own.iter().map(String::as_str).chain(taken.by_ref().take(5))))
            .collect();
        vec![time_per_op(sessions, || {
            for session in open {
                locks.close(session);
            }
        })]
    })
}

/// Request and release of several names together.
pub(super) fn scope<S: Side, const N: usize>(operations: usize) -> Round {
    let mut locks = S::new();
    let names = ["scope-name-1", "scope-name-2", "scope-name-3", "scope-name-4"];
    let names: [&str; N] = std::array::from_fn(|number| names[number]);
    Box::new(move || {
        vec![time_per_op(operations, || {
            for _ in 0..operations {
                locks.cycle_scope(black_box(names));
            }
        })]
    })
}

/// Request and release of one shared lock that many others hold, too.
pub(super) fn shared<S: Side>(holders: usize, operations: usize) -> Round {
    let mut locks = S::new();
    for _ in 0..holders {
        locks.request(HOT, Shared);
    }
    Box::new(move || {
        vec![time_per_op(operations, || {
            for _ in 0..operations {
                let id = locks.request(black_box(HOT), Shared);
                locks.release(id);
            }
        })]
    })
}

/// One name, stolen again and again.
pub(super) fn steal<S: Side>(operations: usize) -> Round {
    let mut locks = S::new();
    let mut holder = locks.request(HOT, Exclusive);
    Box::new(move || {
        vec![time_per_op(operations, || {
            for _ in 0..operations {
                holder = locks.steal(black_box(HOT), holder);
            }
        })]
    })
}

/// A full snapshot of many held locks with a waiter each.
pub(super) fn snapshot(names: Names, operations: usize) -> Round {
    let mut engine = Engine::new();
    for name in names.iter() {
        engine.request(name, Exclusive);
        engine.request(name, Exclusive);
    }
    Box::new(move || {
        vec![time_per_op(operations, || {
            for _ in 0..operations {
                black_box(engine.locks.snapshot());
            }
        })]
    })
}

/// Bytes per lock of many distinct names held at once: at the end, and at the peak.
pub(super) fn memory_held<S: Side>(names: Names) -> Round {
    Box::new(move || {
        bytes_per_entry(names.len(), || {
            let mut locks = S::new();
            for name in names.iter() {
                locks.request(name, Exclusive);
            }
            locks
        })
    })
}

/// Bytes per request of many that wait for one name: at the end, and at the peak.
pub(super) fn memory_pending<S: Side>(waiting: usize) -> Round {
    Box::new(move || bytes_per_entry(waiting, || crowded::<S>(waiting)))
}

fn bytes_per_entry<T>(entries: usize, fill: impl FnOnce() -> T) -> Vec<f64> {
    let (filled, usage) = heap::measure(fill);
    drop(filled);
    vec![usage.live / entries as f64, usage.peak / entries as f64]
}
