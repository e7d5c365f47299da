//! `AutoLock` on several threads: no wakeup is lost, and all accepted work runs.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};
use std::task::{Context, Waker};
use std::thread;

use navlocks::Locks;
use navlocks::blocking::block_on;
use navlocks::lineage::{AutoLock, ReleaseError};

use crate::support::{assert_idle, promise};

const ROUNDS: usize = 2_000;

fn lock(locks: &Locks) -> AutoLock {
    block_on(locks.request("a").auto()).unwrap()
}

#[test]
fn release_wakes_all_threads_that_await_it() {
    let locks = Locks::new();
    for _ in 0..ROUNDS {
        let lock = lock(&locks);
        let settles: Vec<_> = (0..4)
            .map(|_| {
                let (settle, work) = promise();
                lock.wait_until(work);
                settle
            })
            .collect();
        let barrier = Barrier::new(4);
        let barrier = &barrier;
        thread::scope(|scope| {
            for _ in 0..2 {
                let released = lock.released();
                scope.spawn(move || {
                    barrier.wait();
                    block_on(released).unwrap();
                });
            }
            // A task that drives for a moment and is dropped.
            let released = lock.released();
            scope.spawn(move || {
                barrier.wait();
                let mut released = Box::pin(released);
                let _ = released.as_mut().poll(&mut Context::from_waker(Waker::noop()));
            });
            barrier.wait();
            for settle in &settles {
                settle.fulfil();
            }
        });
        assert!(settles.iter().all(|settle| settle.is_dropped()));
        assert_idle(&locks);
    }
}

#[test]
fn added_work_is_either_done_or_refused() {
    let locks = Locks::new();
    for _ in 0..ROUNDS {
        let lock = lock(&locks);
        let done = Arc::new(AtomicUsize::new(0));
        let barrier = Barrier::new(3);
        let (lock, done, barrier) = (&lock, &done, &barrier);
        let refused: usize = thread::scope(|scope| {
            let adding = [0, 1].map(|_| {
                scope.spawn(move || {
                    barrier.wait();
                    let add = |_| {
                        let done = Arc::clone(done);
                        let released = lock.wait_until(async move {
                            done.fetch_add(1, Ordering::SeqCst);
                            Ok::<(), std::io::Error>(())
                        });
                        match block_on(released) {
                            Ok(()) => 0,
                            Err(ReleaseError::TooLate) => 1,
                            Err(error) => panic!("{error}"),
                        }
                    };
                    (0..2).map(add).sum::<usize>()
                })
            });
            barrier.wait();
            block_on(lock.released()).unwrap();
            adding.map(|thread| thread.join().unwrap()).iter().sum()
        });
        assert_eq!(done.load(Ordering::SeqCst) + refused, 4);
        assert_idle(&locks);
    }
}

#[test]
fn theft_wakes_all_threads_that_await_the_release() {
    let locks = Locks::new();
    for _ in 0..ROUNDS {
        let lock = lock(&locks);
        let (settle, work) = promise();
        lock.wait_until(work);
        let barrier = Barrier::new(3);
        let barrier = &barrier;
        thread::scope(|scope| {
            let awaiting = [0, 1].map(|_| {
                let released = lock.released();
                scope.spawn(move || {
                    barrier.wait();
                    block_on(released)
                })
            });
            barrier.wait();
            drop(block_on(locks.request("a").steal().into_future()).unwrap());
            for thread in awaiting {
                assert!(matches!(thread.join().unwrap(), Err(ReleaseError::Lost(_))));
            }
        });
        assert!(settle.is_dropped());
        assert_idle(&locks);
    }
}
