//! Wakeups: the work to be polled, and the tasks to be woken for it.

use std::collections::BTreeSet;
use std::mem;
use std::sync::{Arc, PoisonError};
use std::task::{Wake, Waker};

use crate::sync::{Mutex, MutexGuard};

/// The work of a lock that is awake, and the tasks that await its release.
///
/// Apart from the work, because its wakers may live for ever: they must neither keep the lock or
/// the work alive, nor drop it. No user code runs while this is locked.
///
/// Every event wakes all tasks. So a task that is dropped or no longer polled delays no other.
#[derive(Debug)]
pub(super) struct Wakeups(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    awake: BTreeSet<u64>,
    waiters: Vec<(u64, Waker)>,
    next: u64,
}

impl Wakeups {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self(Mutex::new(State::default())))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Registers `waker` to be woken once, by the next event. The first call writes the number of
    /// the task to `waiter`.
    pub(super) fn register(&self, waiter: &mut Option<u64>, waker: &Waker) {
        let waker = waker.clone();
        let mut state = self.state();
        let number = *waiter.get_or_insert_with(|| {
            state.next += 1;
            state.next
        });
        let known = state.waiters.iter_mut().find(|(known, _)| *known == number);
        let _dropped_unlocked = match known {
            Some((_, known)) => Some(mem::replace(known, waker)),
            None => {
                state.waiters.push((number, waker));
                None
            }
        };
        drop(state);
    }

    /// Stops waking a task.
    pub(super) fn unregister(&self, waiter: u64) {
        let mut state = self.state();
        let position = state.waiters.iter().position(|(known, _)| *known == waiter);
        let _dropped_unlocked = position.map(|position| state.waiters.swap_remove(position));
        drop(state);
    }

    /// Marks work as awake, and wakes all tasks.
    pub(super) fn awaken(&self, work: u64) {
        self.state().awake.insert(work);
        self.wake_all();
    }

    /// Takes the work to be polled; a later wakeup marks it again.
    pub(super) fn take_awake(&self) -> BTreeSet<u64> {
        mem::take(&mut self.state().awake)
    }

    pub(super) fn is_any_awake(&self) -> bool {
        !self.state().awake.is_empty()
    }

    pub(super) fn wake_all(&self) {
        let waiters = mem::take(&mut self.state().waiters);
        for (_, waker) in waiters {
            waker.wake();
        }
    }

    /// Returns the waker of some work.
    pub(super) fn waker_of(self: &Arc<Self>, work: u64) -> Waker {
        Waker::from(Arc::new(WorkWaker { work, wakeups: self.clone() }))
    }
}

impl Wake for Wakeups {
    fn wake(self: Arc<Self>) {
        self.wake_all();
    }
}

struct WorkWaker {
    work: u64,
    wakeups: Arc<Wakeups>,
}

impl Wake for WorkWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.wakeups.awaken(self.work);
    }
}
