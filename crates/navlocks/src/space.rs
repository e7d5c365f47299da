//! A lock space in this process: engines behind mutexes, and who is to be woken.
//!
//! Each method locks, gives the engine one input, passes its events on, unlocks, and only then wakes. Nothing of a user's runs
//! while the state is locked, except that a waker is cloned; wakers are woken and dropped after.
//!
//! ```text
//!   divided     part 0: a c   part 1: b   …   part 7: z        each name in its part, each part behind its own mutex
//!                    │             │              │
//!                    ▼  a scope of several names, a listener …  ▲  nothing was left, many times
//!                                                               │
//!   gathered    whole: a b c z                                 all names behind one mutex
//! ```

use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::task::{Poll, Waker};

use navlocks_core::{
    Answer as Decided, Blockers, ClientId, Deadlock, DeadlockPolicy, FencingToken, HashKey,
    LockManager, Name, RequestId, Scope, State as Stage,
};

use crate::clock::Moment;
use crate::deadlock::Cycle;
use crate::error::{Loss, RequestError};
use crate::events::Kind as What;
use crate::part::Part;
use crate::query::Snapshot;
use crate::registry::Registry;
use crate::request::Request;
use crate::subscribers::Inboxes;
use crate::sync::{AtomicBool, AtomicU64, Mutex, MutexGuard};
use crate::wakes::Wakes;
use crate::watch::Watched;

/// One partition, shared by its clients.
#[derive(Debug)]
pub(crate) struct Space {
    parts: [Place; PARTS],
    whole: Place,
    /// Whether all requests are in the whole. Changes only while everything is locked, so that who has locked a place knows.
    gathered: AtomicBool,
    /// How many locks were ever taken away here: as long as it stands still, no holder needs to ask.
    losses: AtomicU64,
    deadlocks: DeadlockPolicy,
    /// Where related lock spaces are found by name.
    registry: Arc<Registry>,
}

/// A mutex that shares no piece of memory with the next.
#[derive(Debug)]
#[repr(align(128))]
struct Place(Mutex<Part>);

/// A space of which everything is locked.
struct All<'a> {
    parts: [MutexGuard<'a, Part>; PARTS],
    whole: MutexGuard<'a, Part>,
}

/// Two under the model checker, so that it comes to an end.
pub(crate) const PARTS: usize = if cfg!(loom) { 2 } else { 8 };

/// So often must nothing be left in the whole before the space is divided again.
const IDLE_TIMES: u32 = if cfg!(loom) { 1 } else { 1000 };

/// A lock as it is granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Grant {
    pub(crate) id: RequestId,
    pub(crate) token: FencingToken,
    /// The losses in this space until then; [`OVER`](Self::OVER) once there is nothing left to release.
    pub(crate) losses: u64,
}

impl Grant {
    /// More than are ever counted.
    pub(crate) const OVER: u64 = u64::MAX;
}

/// What became of a request at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    Granted(Grant),
    Unavailable,
    Pending(RequestId),
    Failed(RequestError),
}

impl Space {
    pub(crate) fn new(deadlocks: DeadlockPolicy, registry: Arc<Registry>) -> Self {
        let random = RandomState::new();
        let (low, high) = (random.hash_one(0), random.hash_one(1));
        let key = (u128::from(high) << 64 | u128::from(low)).to_ne_bytes();
        let parts = LockManager::shards(HashKey::from_bytes(key));
        let whole = LockManager::whole(&parts.each_ref());
        Self {
            parts: parts.map(Place::new),
            whole: Place::new(whole),
            // Who waits for whom is a question to the whole.
            gathered: AtomicBool::new(deadlocks != DeadlockPolicy::Ignore),
            losses: AtomicU64::new(0),
            deadlocks,
            registry,
        }
    }

    pub(crate) fn registry(&self) -> &Arc<Registry> {
        &self.registry
    }

    pub(crate) fn add_client(&self) -> ClientId {
        let mut all = self.lock_all();
        // All know the same clients, and so give the same id.
        for part in &mut all.parts {
            part.manager.add_client();
        }
        all.whole.manager.add_client()
    }

    /// The part that requests of this scope go to, or any, if that is the whole.
    #[inline]
    pub(crate) fn part_of(scope: &Scope) -> usize {
        match scope.names() {
            [name] => LockManager::shard_of::<PARTS>(name),
            _ => 0,
        }
    }

    /// Requests a lock; if it has to wait, `waker` is woken when it is decided.
    #[inline(never)]
    pub(crate) fn request(&self, request: &Request, waker: &Waker) -> Answer {
        let since = Moment::now();
        let mut part = match request.asked.scope.names() {
            [_] => self.lock(request.owner.part),
            _ => self.lock_whole(),
        };
        match part.request(request, since, &self.losses) {
            // Returned here and not further below, because the answer is written at once where it is to be.
            Ok((id, Decided::Granted(token))) if part.is_settled() => self.granted(id, token),
            Ok((id, Decided::Pending)) if self.waits_unnoticed(&part) => {
                *part.waker(id) = Some(waker.clone());
                Answer::Pending(id)
            }
            decided => self.pass_on_and_answer(part, decided, waker),
        }
    }

    /// Whether that a request has to wait concerns nobody else.
    #[inline]
    fn waits_unnoticed(&self, part: &Part) -> bool {
        self.deadlocks == DeadlockPolicy::Ignore && part.watches.is_empty() && part.is_settled()
    }

    /// What became of a request, when that may concern others.
    #[inline(never)]
    fn pass_on_and_answer(
        &self,
        mut part: MutexGuard<'_, Part>,
        decided: Result<(RequestId, Decided), navlocks_core::RequestError>,
        waker: &Waker,
    ) -> Answer {
        let answer = match decided {
            Ok((id, Decided::Granted(token))) => self.granted(id, token),
            Ok((id, Decided::Pending)) => match self.begin_to_wait(&mut part, id, waker) {
                None => Answer::Pending(id),
                Some(cycle) => Answer::Failed(RequestError::Deadlock(cycle)),
            },
            Ok((_, Decided::Unavailable)) => Answer::Unavailable,
            Err(error) => Answer::Failed(error.into()),
        };
        self.pass_on(part);
        answer
    }

    /// A lock that is held from now on, by whoever has locked its part.
    #[inline]
    fn granted(&self, id: RequestId, token: FencingToken) -> Answer {
        Answer::Granted(Grant { id, token, losses: self.losses.load(Ordering::Relaxed) })
    }

    /// Applies the deadlock policy to a request that has to wait, and tells holders who want to know. Returns the cycle
    /// for which it is refused.
    fn begin_to_wait(&self, part: &mut Part, id: RequestId, waker: &Waker) -> Option<Cycle> {
        let Part { manager, listeners, watches, wakes, .. } = part;
        let deadlock = match self.deadlocks {
            DeadlockPolicy::Ignore => None,
            DeadlockPolicy::Report | DeadlockPolicy::Refuse => manager.deadlock_through(id),
        };
        if let Some(cycle) = deadlock.map(Cycle::from) {
            listeners.tell(id, || What::Deadlock(cycle.clone()), wakes);
            if self.deadlocks == DeadlockPolicy::Refuse {
                part.abort(id);
                return Some(cycle);
            }
        }
        watches.began_to_wait(id, manager, wakes);
        *part.waker(id) = Some(waker.clone());
        None
    }

    /// What became of a request that waited; if nothing yet, `waker` is woken when it has.
    pub(crate) fn poll_request(&self, id: RequestId, waker: &Waker) -> Answer {
        let mut part = self.lock(part_of(id));
        match part.manager.state(id) {
            Some(Stage::Held(token)) => self.granted(id, token),
            Some(Stage::Pending) => {
                let known = part.waker(id);
                if !known.as_ref().is_some_and(|known| known.will_wake(waker)) {
                    let earlier = known.replace(waker.clone());
                    drop(part);
                    drop(earlier);
                }
                Answer::Pending(id)
            }
            None => Answer::Failed(part.hear(id).into()),
        }
    }

    /// The owner of a request that waits lost interest.
    pub(crate) fn abandon(&self, id: RequestId) {
        if !self.time_out(id) {
            // If it was granted and not heard of, the lock passes on.
            let _lost_or_released = self.release(id);
        }
    }

    /// The time of a request that waits is up. False when it was decided before.
    pub(crate) fn time_out(&self, id: RequestId) -> bool {
        let mut part = self.lock_request(id);
        let aborted = part.abort(id);
        self.pass_on(part);
        aborted
    }

    /// Releases a lock, or says how it had been lost.
    #[inline(never)]
    pub(crate) fn release(&self, id: RequestId) -> Result<(), Loss> {
        let mut part = self.lock(part_of(id));
        let released = part.release(id);
        self.pass_on(part);
        released
    }

    pub(crate) fn force_release(&self, name: &Name) -> usize {
        let mut part = self.lock_where_it_is(LockManager::shard_of::<PARTS>(name));
        let count = part.manager.force_release(name);
        self.pass_on(part);
        count
    }

    /// Ends a client. In the standard nobody is left to hear of it; here guards and futures of it may live on.
    pub(crate) fn end_client(&self, client: ClientId) {
        let mut all = self.lock_all();
        let has_any = |manager: &&&LockManager| manager.requests_of(client).next().is_some();
        if all.managers().iter().filter(has_any).count() > 1 {
            // All grants of one step come in queue order, whatever their names.
            self.gather(&mut all);
        }
        let end = |part: &mut Part| {
            part.end_client(client, &self.losses);
            part.pass_all_on(&self.losses);
            std::mem::take(&mut part.wakes)
        };
        let of_whole = end(&mut all.whole);
        let of_parts = all.parts.each_mut().map(|part| end(part));
        drop(all);
        of_parts.into_iter().chain([of_whole]).for_each(Wakes::wake);
    }

    /// All that is held and pending, at one moment.
    pub(crate) fn query(&self) -> Snapshot {
        let all = self.lock_all();
        let snapshot = LockManager::snapshot_of(&all.managers());
        Snapshot::new(snapshot, |id| {
            let gathered = self.gathered.load(Ordering::Relaxed);
            let part = if gathered { &all.whole } else { &all.parts[part_of(id)] };
            part.about(id)
        })
    }

    /// As [`LockManager::deadlocks`].
    pub(crate) fn deadlocks(&self) -> Vec<Deadlock> {
        LockManager::whole(&self.lock_all().managers()).deadlocks()
    }

    /// As [`LockManager::blockers`].
    pub(crate) fn blockers(&self, id: RequestId) -> Blockers {
        self.lock_request(id).manager.blockers(id)
    }

    /// As [`LockManager::is_contended`].
    pub(crate) fn is_contended(&self, id: RequestId) -> bool {
        self.lock_request(id).manager.is_contended(id)
    }

    /// As [`LockManager::knows`].
    pub(crate) fn knows(&self, client: ClientId) -> bool {
        self.whole.lock().manager.knows(client)
    }

    /// How often a lock was taken away here so far.
    #[inline]
    pub(crate) fn losses(&self) -> u64 {
        self.losses.load(Ordering::Acquire)
    }

    /// Why a lock is no more, if it is. The answer stands until its guard is dropped.
    pub(crate) fn loss(&self, id: RequestId) -> Option<Loss> {
        self.lock_request(id).loss(id)
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
        let mut part = self.lock_request(id);
        if let Some(loss) = part.loss(id) {
            return Poll::Ready(Err(loss));
        }
        if watched == Watched::Contention && part.manager.is_contended(id) {
            return Poll::Ready(Ok(()));
        }
        let earlier = part.watches.register(id, scope, watched, watch, waker);
        drop(part);
        drop(earlier);
        Poll::Pending
    }

    /// Ends a watch that nobody waits for any more.
    pub(crate) fn unwatch(&self, id: RequestId, watch: u64) {
        let _dropped_unlocked = self.lock_request(id).watches.unregister(id, watch);
    }

    /// Runs `work` on the event streams. They hear of everything, and in one order, so all names are behind one mutex then.
    pub(crate) fn listen<T>(&self, work: impl FnOnce(&mut Inboxes) -> T) -> T {
        self.lock_whole().listen(work)
    }
}

/// Where everything is.
impl Space {
    /// Locks what has the requests of this part: itself, or the whole.
    #[inline(always)]
    fn lock(&self, part: usize) -> MutexGuard<'_, Part> {
        let gathered = || self.gathered.load(Ordering::Relaxed);
        if !gathered()
            && let Ok(locked) = self.parts[part].0.try_lock()
            && !gathered()
        {
            debug_assert!(locked.is_settled(), "an input left something to do");
            return locked;
        }
        self.lock_where_it_is(part)
    }

    /// The same, wherever the names of the part are and whoever is there.
    #[inline(never)]
    fn lock_where_it_is(&self, part: usize) -> MutexGuard<'_, Part> {
        loop {
            let gathered = self.gathered.load(Ordering::Relaxed);
            let locked = if gathered { self.whole.lock() } else { self.parts[part].lock() };
            if self.gathered.load(Ordering::Relaxed) == gathered {
                return locked;
            }
        }
    }

    fn lock_request(&self, id: RequestId) -> MutexGuard<'_, Part> {
        self.lock_where_it_is(part_of(id))
    }

    /// Everything, in the one order in which more than one place is ever locked.
    fn lock_all(&self) -> All<'_> {
        All { parts: self.parts.each_ref().map(Place::lock), whole: self.whole.lock() }
    }

    /// Locks the whole, with everything in it.
    fn lock_whole(&self) -> MutexGuard<'_, Part> {
        let mut whole = self.whole.lock();
        if !self.gathered.load(Ordering::Relaxed) {
            drop(whole);
            let mut all = self.lock_all();
            self.gather(&mut all);
            whole = all.whole;
        }
        whole.idle_times = 0;
        whole
    }

    /// Moves everything to the whole.
    fn gather(&self, all: &mut All<'_>) {
        if self.gathered.load(Ordering::Relaxed) {
            return;
        }
        all.whole.manager = LockManager::whole(&all.managers());
        for (number, part) in all.parts.iter_mut().enumerate() {
            all.whole.absorb(part, |slot| slot * PARTS + number);
        }
        self.gathered.store(true, Ordering::Relaxed);
    }

    /// Gives the parts back their names, when there is nothing to move.
    #[cold]
    fn divide(&self) {
        let mut all = self.lock_all();
        all.whole.idle_times = 0;
        if all.whole.is_idle() {
            self.gathered.store(false, Ordering::Relaxed);
        }
    }

    /// Whether the whole was left without requests often enough to do without it.
    fn is_idle_often(&self, whole: &mut Part) -> bool {
        let idle = self.deadlocks == DeadlockPolicy::Ignore && whole.manager.name_count() == 0;
        whole.idle_times += u32::from(idle);
        idle && whole.idle_times >= IDLE_TIMES
    }

    /// Passes on what the engine says after an input, and wakes whom that concerns once nothing is locked.
    #[inline]
    fn pass_on(&self, part: MutexGuard<'_, Part>) {
        if self.gathered.load(Ordering::Relaxed) || !part.is_settled() {
            self.pass_all_on(part);
        }
    }

    #[inline(never)]
    fn pass_all_on(&self, mut part: MutexGuard<'_, Part>) {
        part.pass_all_on(&self.losses);
        let divide = self.gathered.load(Ordering::Relaxed) && self.is_idle_often(&mut part);
        if !part.wakes.is_empty() {
            let wakes = std::mem::take(&mut part.wakes);
            drop(part);
            wakes.wake();
        } else {
            drop(part);
        }
        if divide {
            self.divide();
        }
    }
}

/// The part in which a request was made, unless that was in the whole.
#[inline]
fn part_of(id: RequestId) -> usize {
    id.slot() % PARTS
}

impl All<'_> {
    /// All engines, of which those of the parts or that of the whole have no requests.
    fn managers(&self) -> Vec<&LockManager> {
        self.parts.iter().chain([&self.whole]).map(|part| &part.manager).collect()
    }
}

impl Place {
    fn new(manager: LockManager) -> Self {
        Self(Mutex::new(Part::new(manager)))
    }

    /// A panic in the engine would be its bug; its holders must be able to let go all the same.
    #[inline]
    fn lock(&self) -> MutexGuard<'_, Part> {
        #[cfg(not(loom))]
        if let Some(part) = self.lock_by_spinning() {
            return part;
        }
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tries for a few microseconds before the thread goes to sleep: an operation takes a tenth of one, and to wake a
    /// thread takes twenty. Not under the model checker, which would try every number of tries.
    #[cfg(not(loom))]
    #[inline]
    fn lock_by_spinning(&self) -> Option<MutexGuard<'_, Part>> {
        for doublings in 0..10 {
            if let Ok(part) = self.0.try_lock() {
                return Some(part);
            }
            for _ in 0..1 << doublings {
                std::hint::spin_loop();
            }
        }
        None
    }
}
