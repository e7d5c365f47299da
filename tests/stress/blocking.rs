//! Threads that block, on one name, with a subscriber.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use navlocks::EventKind;
use navlocks::Locks;

use crate::dice::operations;
use crate::supervisor::{Budget, Crew, assert_nothing_left};

const THREADS: usize = 4;

/// A counter that is read and written in two steps is correct all the same, and the events show
/// each lock in turn.
#[test]
fn blocking_threads_exclude_each_other() {
    let locks = Locks::new();
    let mut events = locks.events().capacity(usize::MAX);
    let budget = Budget::new(operations(5));
    let counter = Arc::new(AtomicU64::new(0));
    let mut crew = Crew::new();
    for _ in 0..THREADS {
        let (locks, budget, counter) = (locks.clone(), budget.clone(), counter.clone());
        crew.spawn(move || {
            while budget.take() {
                let lock = locks.request("counter").lock_blocking().unwrap();
                let count = counter.load(Ordering::Relaxed);
                counter.store(count + 1, Ordering::Relaxed);
                lock.release().unwrap();
            }
        });
    }
    crew.join(&budget, &locks);
    assert_eq!(counter.load(Ordering::Relaxed), operations(5));

    let (mut requested, mut granted, mut released) = (Vec::new(), Vec::new(), Vec::new());
    let mut token = 0;
    while let Some(Ok(event)) = events.try_recv() {
        match event.kind {
            EventKind::Requested => requested.push(event.request),
            EventKind::Granted(next) => {
                assert!(next.get() > token);
                token = next.get();
                granted.push(event.request);
            }
            EventKind::Released => released.push(event.request),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(requested.len() as u64, operations(5));
    assert_eq!(requested, granted);
    assert_eq!(granted, released);
    drop(events);
    assert_nothing_left(&locks);
}
