//! Supervised threads: a test that hangs fails, and prints holders and waiters.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use navlocks::Locks;
use navlocks::blocking::block_on;

/// No operation takes this long; a longer wait is a lost wakeup.
const PATIENCE: Duration = Duration::from_secs(60);

/// A number of operations that the threads share.
#[derive(Debug)]
pub(crate) struct Budget {
    total: u64,
    taken: AtomicU64,
}

impl Budget {
    pub(crate) fn new(total: u64) -> Arc<Self> {
        Arc::new(Self { total, taken: AtomicU64::new(0) })
    }

    /// Takes one operation. Returns false when none is left.
    pub(crate) fn take(&self) -> bool {
        self.taken.load(Ordering::Relaxed) < self.total
            && self.taken.fetch_add(1, Ordering::Relaxed) < self.total
    }
}

pub(crate) struct Crew<T> {
    threads: Vec<JoinHandle<T>>,
    alive: Sender<Failed>,
    ended: Receiver<Failed>,
}

/// A thread panicked.
struct Failed;

/// The sign that a thread runs.
struct Alive(Sender<Failed>);

impl Drop for Alive {
    fn drop(&mut self) {
        if thread::panicking() {
            // The receiver is gone when the test has failed already.
            let _ = self.0.send(Failed);
        }
    }
}

impl<T: Send + 'static> Crew<T> {
    pub(crate) fn new() -> Self {
        let (alive, ended) = mpsc::channel();
        Self { threads: Vec::new(), alive, ended }
    }

    pub(crate) fn spawn(&mut self, work: impl FnOnce() -> T + Send + 'static) {
        let alive = Alive(self.alive.clone());
        self.threads.push(thread::spawn(move || {
            let _alive = alive;
            work()
        }));
    }

    /// Returns the results of the threads, in order; panics if one did, or if none takes from the
    /// budget any more.
    pub(crate) fn join(self, budget: &Budget, locks: &Locks) -> Vec<T> {
        let Self { threads, alive, ended } = self;
        drop(alive);
        let mut before = None;
        loop {
            match ended.recv_timeout(PATIENCE) {
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => {
                    let now = Some(budget.taken.load(Ordering::Relaxed));
                    assert_ne!(now, before, "nothing goes on. {}", situation(locks));
                    before = now;
                }
                Ok(Failed) => panic!("a thread failed, as said above"),
            }
        }
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    }
}

/// Returns the holders and waiters, if the lock space still answers.
fn situation(locks: &Locks) -> String {
    let (tell, told) = mpsc::channel();
    let locks = locks.clone();
    thread::spawn(move || tell.send(format!("{:#?}", block_on(locks.query()))));
    told.recv_timeout(PATIENCE).unwrap_or_else(|_| "The lock space itself is stuck.".to_owned())
}

/// Asserts that nothing is held or pending, and no table has an entry.
pub(crate) fn assert_nothing_left(locks: &Locks) {
    let snapshot = block_on(locks.query()).unwrap();
    assert!(snapshot.held.is_empty() && snapshot.pending.is_empty(), "{snapshot:#?}");
    // The debug output of a stream shows its space.
    let space = format!("{:?}", locks.events());
    let empty = [
        "ended: {}",
        "watchers: Watchers { locks: {}",
        "contention: Contention { locks: {}, names: {}",
        "tags: {}",
        "described: Some({})",
    ];
    for empty in empty {
        assert!(space.contains(empty), "not {empty}: {space}");
    }
    for left in ["waker: Some", "tag: Some"] {
        assert!(!space.contains(left), "{left}: {space}");
    }
}
