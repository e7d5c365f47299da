//! A lock space in this process: the engine behind a mutex, and who is to be woken.
//!
//! Each method locks, gives the engine one input, passes its events on, unlocks, and only then wakes. Nothing of a user's runs
//! while the state is locked, except that a waker is cloned; wakers are woken and dropped after.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::task::{Poll, Waker};

use navlocks_core::{
    Answer as Decided, ClientId, Event, FencingToken, HandOver, HashKey, LockManager, Name,
    Request, RequestId, Scope, State as Stage,
};

use crate::clock::Moment;
use crate::deadlock::DeadlockPolicy;
use crate::error::{Cycle, Loss, RequestError};
use crate::events::{About, Inboxes, Listeners, What};
use crate::locks::Registry;
use crate::query::Snapshot;
use crate::sync::{AtomicU64, Mutex, MutexGuard};
use crate::wakes::Wakes;
use crate::watch::{Watched, Watches};

/// One partition, shared by its clients.
#[derive(Debug)]
pub(crate) struct Space {
    state: Mutex<State>,
    /// How many locks were ever taken away here: as long as it stands still, no holder needs to ask.
    losses: AtomicU64,
    deadlocks: DeadlockPolicy,
    /// Where related lock spaces are found by name.
    registry: Arc<Registry>,
}

#[derive(Debug)]
struct State {
    manager: LockManager,
    /// What is known of each live request beyond the engine, by [`RequestId::slot`].
    asked: Vec<Asked>,
    /// The tags of live requests that have one.
    tags: HashMap<RequestId, Arc<str>>,
    /// Requests that ended otherwise than by their owner, who has yet to hear of it or to let go.
    ended: HashMap<RequestId, Loss>,
    watches: Watches,
    listeners: Listeners,
    /// Whom this input concerns. Empty between inputs.
    wakes: Wakes,
}

#[derive(Debug)]
struct Asked {
    waker: Option<Waker>,
    /// When it was requested, and once held when it was granted.
    since: Moment,
}

/// A lock as it is granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Grant {
    pub(crate) id: RequestId,
    pub(crate) token: FencingToken,
    /// The losses in this space until then.
    pub(crate) losses: u64,
}

/// What became of a request at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    Granted(Grant),
    Unavailable,
    Pending(RequestId),
    Failed(RequestError),
}

/// Above this many slots, an idle space gives memory back.
const IDLE_CAPACITY: usize = 1024;

impl Space {
    pub(crate) fn new(deadlocks: DeadlockPolicy, registry: Arc<Registry>) -> Self {
        let random = RandomState::new();
        let (low, high) = (random.hash_one(0), random.hash_one(1));
        let key = (u128::from(high) << 64 | u128::from(low)).to_ne_bytes();
        Self {
            state: Mutex::new(State {
                manager: LockManager::new(HashKey::from_bytes(key)),
                asked: Vec::new(),
                tags: HashMap::new(),
                ended: HashMap::new(),
                watches: Watches::default(),
                listeners: Listeners::default(),
                wakes: Wakes::default(),
            }),
            losses: AtomicU64::new(0),
            deadlocks,
            registry,
        }
    }

    pub(crate) fn registry(&self) -> &Arc<Registry> {
        &self.registry
    }

    /// A panic in the engine would be its bug; its holders must be able to let go all the same.
    fn lock(&self) -> MutexGuard<'_, State> {
        #[cfg(not(loom))]
        if let Some(state) = self.lock_by_spinning() {
            return state;
        }
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tries for a few microseconds before the thread goes to sleep: an operation takes a tenth of one, and to wake a
    /// thread takes twenty. Not under the model checker, which would try every number of tries.
    #[cfg(not(loom))]
    fn lock_by_spinning(&self) -> Option<MutexGuard<'_, State>> {
        for doublings in 0..10 {
            if let Ok(state) = self.state.try_lock() {
                return Some(state);
            }
            for _ in 0..1 << doublings {
                std::hint::spin_loop();
            }
        }
        None
    }

    /// Gives the engine one input, passes on what it says, and wakes whom that concerns.
    #[inline]
    fn input<T>(&self, input: impl FnOnce(&mut State) -> T) -> T {
        let mut state = self.lock();
        let result = input(&mut state);
        self.pass_on(state);
        result
    }

    /// Passes on what the engine says after an input, and wakes whom that concerns once the state is unlocked.
    #[inline]
    fn pass_on(&self, mut state: MutexGuard<'_, State>) {
        while let Some(event) = state.manager.poll_event() {
            state.pass_on(event, &self.losses);
        }
        if state.asked.capacity() > IDLE_CAPACITY && state.manager.name_count() == 0 {
            state.asked = Vec::new();
        }
        if !state.wakes.is_empty() {
            let wakes = std::mem::take(&mut state.wakes);
            drop(state);
            wakes.wake();
        }
    }

    pub(crate) fn add_client(&self) -> ClientId {
        self.lock().manager.add_client()
    }

    /// Requests a lock; if it has to wait, `waker` is woken when it is decided.
    #[inline]
    pub(crate) fn request(
        &self,
        client: ClientId,
        request: &Request,
        tag: Option<Arc<str>>,
        waker: &Waker,
    ) -> Answer {
        let since = Moment::now();
        let mut state = self.lock();
        let answered = match state.listeners.about(client, request, tag.as_ref()) {
            None => state.manager.request_answer(client, request),
            Some(about) => state.request_announced(client, request, about),
        };
        let (id, answer) = match answered {
            Ok(answered) => answered,
            Err(error) => return Answer::Failed(error.into()),
        };
        if answer != Decided::Unavailable {
            state.note(id, tag, since);
        }
        let refused = match answer {
            Decided::Pending => self.begin_to_wait(&mut state, id, waker),
            Decided::Granted(_) | Decided::Unavailable => None,
        };
        let losses = self.losses.load(Ordering::Relaxed);
        self.pass_on(state);
        match (answer, refused) {
            (Decided::Granted(token), _) => Answer::Granted(Grant { id, token, losses }),
            (Decided::Unavailable, _) => Answer::Unavailable,
            (Decided::Pending, None) => Answer::Pending(id),
            (Decided::Pending, Some(cycle)) => Answer::Failed(RequestError::Deadlock(cycle)),
        }
    }

    /// Applies the deadlock policy to a request that has to wait, and tells holders who want to know. Returns the cycle
    /// for which it is refused.
    fn begin_to_wait(&self, state: &mut State, id: RequestId, waker: &Waker) -> Option<Cycle> {
        let State { manager, listeners, watches, wakes, .. } = state;
        let deadlock = match self.deadlocks {
            DeadlockPolicy::Ignore => None,
            DeadlockPolicy::Report | DeadlockPolicy::Refuse => manager.deadlock_through(id),
        };
        if let Some(cycle) = deadlock.map(Cycle::from) {
            listeners.tell(id, || What::Deadlock(cycle.clone()), wakes);
            if self.deadlocks == DeadlockPolicy::Refuse {
                state.abort(id);
                return Some(cycle);
            }
        }
        watches.began_to_wait(id, manager, wakes);
        state.asked[id.slot()].waker = Some(waker.clone());
        None
    }

    /// What became of a request that waited; if nothing yet, `waker` is woken when it has.
    pub(crate) fn poll_request(&self, id: RequestId, waker: &Waker) -> Answer {
        let mut state = self.lock();
        match state.manager.state(id) {
            Some(Stage::Held(token)) => {
                let losses = self.losses.load(Ordering::Relaxed);
                Answer::Granted(Grant { id, token, losses })
            }
            Some(Stage::Pending) => {
                let known = &mut state.asked[id.slot()].waker;
                if !known.as_ref().is_some_and(|known| known.will_wake(waker)) {
                    let earlier = known.replace(waker.clone());
                    drop(state);
                    drop(earlier);
                }
                Answer::Pending(id)
            }
            None => Answer::Failed(state.hear(id).into()),
        }
    }

    /// The owner of a request that waits lost interest.
    pub(crate) fn abandon(&self, id: RequestId) {
        self.input(|state| {
            // If it was granted and not heard of, the lock passes on.
            if !state.abort(id) {
                let _lost_or_released = state.release(id);
            }
        });
    }

    /// The time of a request that waits is up. False when it was decided before.
    pub(crate) fn time_out(&self, id: RequestId) -> bool {
        self.input(|state| state.abort(id))
    }

    /// Releases a lock, or says how it had been lost.
    #[inline]
    pub(crate) fn release(&self, id: RequestId) -> Result<(), Loss> {
        self.input(|state| state.release(id))
    }

    pub(crate) fn force_release(&self, name: &Name) -> usize {
        self.input(|state| state.manager.force_release(name))
    }

    /// Ends a client. In the standard nobody is left to hear of it; here guards and futures of it may live on.
    pub(crate) fn end_client(&self, client: ClientId) {
        self.input(|state| {
            let requests: Vec<RequestId> = state.manager.requests_of(client).collect();
            for id in requests {
                let pending = state.manager.state(id) == Some(Stage::Pending);
                let what = if pending { What::Aborted } else { What::Lost };
                state.end(id, Loss::ClientEnded, what);
                self.losses.fetch_add(1, Ordering::Release);
            }
            state.manager.terminate(client);
        });
    }

    /// As [`query`](navlocks_core::LockManager::query): may evict clients that sleep.
    pub(crate) fn query(&self) -> Snapshot {
        self.input(|state| {
            let snapshot = state.manager.query();
            Snapshot::new(snapshot, |id| {
                (state.tags.get(&id).cloned(), state.asked[id.slot()].since.age())
            })
        })
    }

    pub(crate) fn ask<T>(&self, question: impl FnOnce(&LockManager) -> T) -> T {
        question(&self.lock().manager)
    }

    /// How often a lock was taken away here so far.
    #[inline]
    pub(crate) fn losses(&self) -> u64 {
        self.losses.load(Ordering::Acquire)
    }

    /// Why a lock is no more, if it is. The answer stands until its guard is dropped.
    pub(crate) fn loss(&self, id: RequestId) -> Option<Loss> {
        self.lock().ended.get(&id).copied()
    }

    /// Whether what a holder waits for has come; if not, `waker` is woken when it may have.
    pub(crate) fn poll_watch(
        &self,
        id: RequestId,
        scope: &Scope,
        watched: Watched,
        watch: &mut Option<u64>,
        waker: &Waker,
    ) -> Poll<Result<(), Loss>> {
        let waker = waker.clone();
        let mut state = self.lock();
        if let Some(&loss) = state.ended.get(&id) {
            return Poll::Ready(Err(loss));
        }
        let State { manager, watches, .. } = &mut *state;
        if watched == Watched::Contention && manager.is_contended(id) {
            return Poll::Ready(Ok(()));
        }
        let earlier = watches.register(id, scope, watched, watch, waker);
        drop(state);
        drop(earlier);
        Poll::Pending
    }

    /// Ends a watch that nobody waits for any more.
    pub(crate) fn unwatch(&self, id: RequestId, watch: u64) {
        let _dropped_unlocked = self.lock().watches.unregister(id, watch);
    }

    /// Runs `work` on the event streams.
    pub(crate) fn listen<T>(&self, work: impl FnOnce(&mut Inboxes) -> T) -> T {
        let mut state = self.lock();
        let State { listeners, manager, tags, .. } = &mut *state;
        listeners.change(work, manager, |id| tags.get(&id).cloned())
    }
}

impl State {
    /// Notes what the engine does not know of a new request.
    #[inline]
    fn note(&mut self, id: RequestId, tag: Option<Arc<str>>, since: Moment) {
        // Slots of requests that are over were cleared; a scope takes one slot a name, so some are skipped.
        if id.slot() >= self.asked.len() {
            self.asked.resize_with(id.slot() + 1, || Asked { waker: None, since });
        }
        self.asked[id.slot()].since = since;
        if let Some(tag) = tag {
            self.tags.insert(id, tag);
        }
    }

    /// Requests a lock while somebody listens: everything that it causes is an event then, in order.
    #[cold]
    fn request_announced(
        &mut self,
        client: ClientId,
        request: &Request,
        about: About,
    ) -> Result<(RequestId, Decided), navlocks_core::RequestError> {
        let id = self.manager.request(client, request)?;
        self.listeners.requested(id, about, &mut self.wakes);
        Ok((id, self.manager.answer(id)))
    }

    fn abort(&mut self, id: RequestId) -> bool {
        let aborted = self.manager.abort(id);
        if aborted {
            self.listeners.end(id, || What::Withdrawn, &mut self.wakes);
            self.forget(id);
        }
        aborted
    }

    /// Releases a lock, or says how it was lost and forgets that.
    #[inline]
    fn release(&mut self, id: RequestId) -> Result<(), Loss> {
        self.watches.over(id, &mut self.wakes);
        let hand_over = if self.listeners.is_empty() {
            self.manager.release_answer(id)
        } else if self.manager.release(id) {
            self.listeners.end(id, || What::Released, &mut self.wakes);
            HandOver::Told
        } else {
            HandOver::Nothing
        };
        match hand_over {
            HandOver::Nothing => return Err(self.hear(id)),
            HandOver::To(next, _) => self.wake_holder(next),
            HandOver::Told => {}
        }
        self.forget(id);
        Ok(())
    }

    /// A request that waited holds its lock now.
    #[inline]
    fn wake_holder(&mut self, id: RequestId) {
        let asked = &mut self.asked[id.slot()];
        if let Some(waker) = asked.waker.take() {
            asked.since = Moment::now();
            self.wakes.add(waker);
        }
    }

    /// Clears what was noted of a request that is over.
    #[inline]
    fn forget(&mut self, id: RequestId) {
        if let Some(waker) = self.asked[id.slot()].waker.take() {
            self.wakes.discard(waker);
        }
        if !self.tags.is_empty() {
            self.tags.remove(&id);
        }
    }

    /// What ended a request that is not alive, told to its owner once.
    fn hear(&mut self, id: RequestId) -> Loss {
        // Only an owner asks, and only once: there is always an answer.
        self.ended.remove(&id).unwrap_or(Loss::ClientEnded)
    }

    /// A request came to its end by somebody else's doing.
    fn end(&mut self, id: RequestId, loss: Loss, what: fn(Loss) -> What) {
        self.ended.insert(id, loss);
        self.wakes.add_all(self.asked[id.slot()].waker.take());
        self.forget(id);
        self.watches.over(id, &mut self.wakes);
        self.listeners.end(id, || what(loss), &mut self.wakes);
    }

    /// Passes one of the engine's events on to those whom it concerns.
    #[inline]
    fn pass_on(&mut self, event: Event, losses: &AtomicU64) {
        match event {
            Event::Granted { request, token, .. } => {
                self.wake_holder(request);
                self.listeners.tell(request, || What::Granted(token), &mut self.wakes);
            }
            Event::Lost { request, cause, .. } => {
                losses.fetch_add(1, Ordering::Release);
                self.end(request, cause.into(), What::Lost);
            }
            Event::Aborted { request, cause, .. } => {
                self.end(request, cause.into(), What::Aborted);
            }
            Event::Unavailable { request, .. } => {
                self.listeners.end(request, || What::Unavailable, &mut self.wakes);
            }
            // Told of clients that are suspended; a client in this process never is.
            Event::Evicted { .. } => {}
        }
    }
}
