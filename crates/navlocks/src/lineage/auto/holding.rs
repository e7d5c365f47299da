//! A lock and the work that it is held for.

use std::collections::BTreeMap;
use std::error::Error;
use std::future::Future;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::sync::{Arc, PoisonError};
use std::task::{Context, Poll, Waker};

use navlocks_core::{FencingToken, Mode, RequestId, Scope};

use super::ReleaseError;
use super::wakeups::Wakeups;
use crate::backend::Watched;
use crate::error::LossCause;
use crate::lock::Lock;
use crate::sync::{Mutex, MutexGuard};

type Outcome = Result<(), ReleaseError>;
type Failure = Arc<dyn Error + Send + Sync>;
pub(super) type WorkFuture = Pin<Box<dyn Future<Output = Result<(), Failure>> + Send>>;
type Works = BTreeMap<u64, Work>;

/// The state that all handles of an auto-released lock share. No user code runs while its stage is
/// locked: work is taken out to be polled, and dropped outside.
pub(super) struct Holding {
    pub(super) facts: Facts,
    stage: Mutex<Stage>,
    wakeups: Arc<Wakeups>,
}

/// The facts about a lock that stay true after its end.
#[derive(Clone, Debug)]
pub(crate) struct Facts {
    pub(crate) scope: Scope,
    pub(crate) mode: Mode,
    pub(crate) token: FencingToken,
    pub(crate) request: RequestId,
}

impl Facts {
    pub(crate) fn of(lock: &Lock) -> Self {
        Self {
            scope: lock.scope().clone(),
            mode: lock.mode(),
            token: lock.fencing_token(),
            request: lock.request_id(),
        }
    }
}

enum Stage {
    Held(Held),
    /// Decided, but the lock is not released yet.
    Ending,
    Over(Outcome),
}

struct Held {
    /// Declared before the lock, because fields are dropped in order.
    works: Works,
    lock: Lock,
    /// True while a task polls the work, which it has taken out.
    driven: bool,
    next_work: u64,
    /// The number of the watch for the loss of the lock, which ends with the lock.
    watch: Option<u64>,
}

struct Work {
    future: WorkFuture,
    waker: Waker,
}

impl Holding {
    pub(super) fn new(lock: Lock) -> Self {
        let facts = Facts::of(&lock);
        let works = Works::new();
        let held = Held { works, lock, driven: false, next_work: 0, watch: None };
        Self { facts, stage: Mutex::new(Stage::Held(held)), wakeups: Wakeups::new() }
    }

    fn stage(&self) -> MutexGuard<'_, Stage> {
        self.stage.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds work. Returns false if the lock is already released.
    pub(super) fn add(&self, future: WorkFuture) -> bool {
        let mut stage = self.stage();
        let Stage::Held(held) = &mut *stage else {
            drop(stage);
            return false;
        };
        let work = held.next_work;
        held.next_work += 1;
        held.works.insert(work, Work { future, waker: self.wakeups.waker_of(work) });
        drop(stage);
        // After the work is stored, so that the woken task finds it.
        self.wakeups.awaken(work);
        true
    }

    pub(super) fn loss(&self) -> Option<LossCause> {
        match &*self.stage() {
            Stage::Held(held) => held.lock.loss(),
            Stage::Over(Err(ReleaseError::Lost(loss))) => Some(loss.clone()),
            Stage::Ending | Stage::Over(_) => None,
        }
    }

    /// Drives the work that is awake, unless another task does, and returns whether the lock is
    /// released. If it is not, wakes `waker` when there is more to drive or to report.
    pub(super) fn poll_released(&self, waiter: &mut Option<u64>, waker: &Waker) -> Poll<Outcome> {
        // Registered before any state is read, so that no later change is missed.
        self.wakeups.register(waiter, waker);

        let mut stage = self.stage();
        let Stage::Held(held) = &mut *stage else { return stage.poll() };
        if let Poll::Ready(loss) = held.poll_loss(&self.wakeups) {
            return self.end(stage, Works::new(), Err(ReleaseError::Lost(loss)));
        }
        if held.driven {
            return Poll::Pending;
        }
        held.driven = true;
        let mut works = mem::take(&mut held.works);
        let awake = self.wakeups.take_awake();
        drop(stage);

        let round = catch_unwind(AssertUnwindSafe(|| drive(&mut works, awake)));

        let mut stage = self.stage();
        match round {
            Ok(Ok(())) => {}
            Ok(Err(error)) => return self.end(stage, works, Err(ReleaseError::Failed(error))),
            Err(panic) => {
                let _ = self.end(stage, works, Err(ReleaseError::Panicked));
                resume_unwind(panic)
            }
        }
        if let Stage::Held(held) = &mut *stage {
            held.driven = false;
            held.works.append(&mut works);
            if !held.works.is_empty() {
                drop(stage);
                // A task that was woken for this work may have returned, because this task was
                // driving.
                if self.wakeups.is_any_awake() {
                    self.wakeups.wake_all();
                }
                return Poll::Pending;
            }
        }
        self.end(stage, works, Ok(()))
    }

    /// Removes a task that no longer awaits the release.
    pub(super) fn leave(&self, waiter: u64) {
        self.wakeups.unregister(waiter);
    }

    /// Drops the work, then releases the lock with this outcome, then wakes all tasks. If another
    /// task has found the lock lost meanwhile, that outcome stands.
    fn end(
        &self,
        mut stage: MutexGuard<'_, Stage>,
        works: Works,
        outcome: Outcome,
    ) -> Poll<Outcome> {
        let before = mem::replace(&mut *stage, Stage::Ending);
        let Stage::Held(Held { works: added, lock, .. }) = before else {
            *stage = before;
            drop(stage);
            drop(works);
            return self.stage().poll();
        };
        drop(stage);
        let ending = Ending { holding: self, end: Some((lock, outcome)) };
        drop((works, added));
        drop(ending);
        self.stage().poll()
    }
}

/// Polls the work that is awake, until some fails.
fn drive(works: &mut Works, awake: impl IntoIterator<Item = u64>) -> Result<(), Failure> {
    for number in awake {
        let Some(work) = works.get_mut(&number) else { continue };
        let mut cx = Context::from_waker(&work.waker);
        if let Poll::Ready(result) = work.future.as_mut().poll(&mut cx) {
            works.remove(&number);
            result?;
        }
    }
    Ok(())
}

impl Held {
    fn poll_loss(&mut self, wakeups: &Arc<Wakeups>) -> Poll<LossCause> {
        let waker = Waker::from(wakeups.clone());
        let Self { lock, watch, .. } = self;
        match lock.poll_watch(Watched::Loss, watch, &waker) {
            Poll::Ready(Err(loss)) => Poll::Ready(loss),
            Poll::Ready(Ok(())) | Poll::Pending => Poll::Pending,
        }
    }
}

impl Stage {
    fn poll(&self) -> Poll<Outcome> {
        match self {
            Self::Over(outcome) => Poll::Ready(outcome.clone()),
            Self::Held(_) | Self::Ending => Poll::Pending,
        }
    }
}

/// Releases the lock on drop, so that it is released even if dropping the work panics.
struct Ending<'a> {
    holding: &'a Holding,
    end: Option<(Lock, Outcome)>,
}

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        let Some((lock, outcome)) = self.end.take() else { return };
        // Released first: a task that is woken may request the lock.
        let released = lock.release().map_err(ReleaseError::Lost);
        *self.holding.stage() = Stage::Over(outcome.and(released));
        self.holding.wakeups.wake_all();
    }
}
