//! A lock space in this process: shards behind mutexes.
//!
//! No user code runs while a shard is locked, except the cloning of a waker; wakers are woken and
//! dropped after unlocking.
//!
//! ```text
//!   divided     shard 0: a c   shard 1: b   …   shard 7: z     each behind its own mutex
//!                     │             │                │
//!                     ▼  a scope of several names,   ▲  the whole was left empty, many times
//!                        a subscriber …              │
//!   gathered    whole: a b c z                                 behind one mutex
//! ```

mod shards;

use std::future::ready;
use std::hash::RandomState;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::task::{Poll, Waker};

use navlocks_core::kit::SpaceError;
use navlocks_core::{
    Answer as Decided, Blockers, ClientId, DeadlockPolicy, ExplainBounds, Explained, Explanation,
    FencingToken, HashKey, LockManager, Mode, Name, Request, RequestId, State as Stage,
};

use super::registry::Registry;
use super::shard::Shard;
use crate::backend::extras::Extras;
use crate::backend::inbox::Inboxes;
use crate::backend::{Answer, Backend, Grant, Reply, SHARDS, Sender, Watched};
use crate::deadlock::Cycle;
use crate::error::{DowngradeError, LossCause, QueryError, RequestErrorKind};
use crate::query::{self, PartitionSnapshot, Snapshot, Waits};
use crate::sync::clock::Moment;
use crate::sync::{AtomicBool, AtomicU64, MutexGuard};
use shards::{ShardCell, shard_of};

/// One partition, shared by its clients.
#[derive(Debug)]
pub(crate) struct Space {
    shards: [ShardCell; SHARDS],
    whole: ShardCell,
    /// True if all requests are in the whole. Changes only while everything is locked.
    gathered: AtomicBool,
    /// How many locks were lost here.
    losses: AtomicU64,
    deadlocks: DeadlockPolicy,
    /// The name of the partition.
    name: Box<str>,
    /// Where related lock spaces are found by name.
    registry: Arc<Registry>,
    /// For timers, which do not keep it alive.
    own: Weak<Self>,
}

/// The space is divided again after the whole was left empty this often.
const IDLE_TIMES: u32 = if cfg!(loom) { 1 } else { 1000 };

impl Space {
    pub(super) fn new(
        deadlocks: DeadlockPolicy,
        name: Box<str>,
        registry: Arc<Registry>,
        own: Weak<Self>,
    ) -> Self {
        let shards = LockManager::shards(HashKey::drawn_from(&RandomState::new()));
        let whole = LockManager::whole(&shards.each_ref());
        Self {
            shards: shards.map(|shard| ShardCell::new(shard, deadlocks)),
            whole: ShardCell::new(whole, deadlocks),
            // Deadlocks are found in the whole alone.
            gathered: AtomicBool::new(deadlocks != DeadlockPolicy::Ignore),
            losses: AtomicU64::new(0),
            deadlocks,
            name,
            registry,
            own,
        }
    }

    /// Makes a lock space related to no other.
    pub(crate) fn alone(deadlocks: DeadlockPolicy) -> Arc<Self> {
        // The default partition is the one without a name, as in a service.
        Registry::new(deadlocks).partition("")
    }

    /// Takes away a lock whose time is over.
    pub(super) fn expire(&self, id: RequestId) {
        let mut shard = self.lock_request(id);
        shard.expire(id, &self.losses);
        self.settle(shard);
    }

    /// Returns the lock space of this name among the related ones.
    pub(crate) fn partition(&self, name: &str) -> Arc<Self> {
        self.registry.partition(name)
    }

    pub(crate) fn add_client(&self) -> ClientId {
        let mut all = self.lock_all();
        // All shards know the same clients, and so give the same id.
        for shard in &mut all.shards {
            shard.add_client();
        }
        all.whole.add_client()
    }
}

impl Drop for Space {
    fn drop(&mut self) {
        self.registry.forget(&self.name);
    }
}

impl Backend for Space {
    #[inline(never)]
    fn request(
        &self,
        sender: &Sender,
        request: &Request,
        extras: Option<&Extras>,
        waker: &Waker,
    ) -> Answer {
        let now = Moment::now();
        // Waits between nested requests of different names are found in the whole alone.
        let is_nested = extras.is_some_and(|extras| extras.within.is_some());
        let mut shard = match request.scope.names() {
            [_] if !is_nested => self.lock(sender.shard),
            _ => self.lock_whole(),
        };
        let decided = shard.request(sender.client, request, extras, now, &self.losses);
        if let Some(max) = extras.and_then(|extras| extras.max_hold)
            && let Ok((id, _)) = decided
        {
            shard.limit_hold(id, max, &self.own);
        }
        match decided {
            // Returned here and not below, so that the answer is built in its final place.
            Ok((id, Decided::Granted(token))) if shard.is_settled() => self.granted(id, token),
            Ok((id, Decided::Pending)) if shard.is_settled() => {
                shard.register(id, waker);
                Answer::Pending(id)
            }
            decided => self.settle_and_answer(shard, decided, waker),
        }
    }

    fn poll_request(&self, id: RequestId, waker: &Waker) -> Answer {
        let mut shard = self.lock(shard_of(id));
        match shard.stage(id) {
            Some(Stage::Held(token)) => self.granted(id, token),
            Some(Stage::Pending) => {
                let earlier = shard.register(id, waker);
                drop(shard);
                drop(earlier);
                Answer::Pending(id)
            }
            None => Answer::Failed(shard.take_loss(id).into()),
        }
    }

    fn abandon(&self, id: RequestId) {
        if !self.time_out(id) {
            // If it was granted and its future did not receive that, the lock passes on.
            let _lost_or_released = self.release(id);
        }
    }

    fn time_out(&self, id: RequestId) -> bool {
        let mut shard = self.lock_request(id);
        let aborted = shard.abort(id, &self.losses);
        self.settle(shard);
        aborted
    }

    #[inline(never)]
    fn release(&self, id: RequestId) -> Result<(), LossCause> {
        let mut shard = self.lock(shard_of(id));
        let released = shard.release(id, &self.losses);
        self.settle(shard);
        released
    }

    fn downgrade(&self, id: RequestId, mode: Mode) -> Result<bool, DowngradeError> {
        let mut shard = self.lock(shard_of(id));
        let downgraded = shard.downgrade(id, mode, &self.losses);
        self.settle(shard);
        downgraded.map(|()| true)
    }

    #[inline]
    fn losses(&self) -> u64 {
        self.losses.load(Ordering::Acquire)
    }

    fn loss(&self, id: RequestId) -> Option<LossCause> {
        self.lock_request(id).loss(id)
    }

    fn poll_watch(
        &self,
        id: RequestId,
        watched: Watched,
        watch: &mut Option<u64>,
        waker: &Waker,
    ) -> Poll<Result<(), LossCause>> {
        let waker = waker.clone();
        let mut shard = self.lock_request(id);
        let (poll, unused) = shard.watch(id, watched, watch, waker, &self.losses);
        drop(shard);
        drop(unused);
        poll
    }

    fn unwatch(&self, id: RequestId, watch: u64) {
        let _dropped_unlocked = self.lock_request(id).unwatch(id, watch);
    }

    fn end_client(&self, client: ClientId) {
        let mut all = self.lock_all();
        let has_any = |manager: &&&LockManager| has_any(manager, client);
        if all.managers().iter().filter(has_any).count() > 1 {
            // All grants of one step come in queue order, whatever their names.
            self.gather(&mut all);
        }
        let end = |shard: &mut Shard| {
            shard.end_client(client, &self.losses);
            shard.take_wakes()
        };
        let mut wakes = end(&mut all.whole);
        all.shards.iter_mut().for_each(|shard| wakes.absorb(end(shard)));
        drop(all);
        wakes.wake();
    }

    fn has_requests(&self, client: ClientId) -> bool {
        self.lock_all().managers().iter().any(|manager| has_any(manager, client))
    }

    /// Subscribers receive everything in one order, so all names are behind one mutex then.
    fn with_inboxes(&self, _client: ClientId, work: &mut dyn FnMut(&mut Inboxes)) {
        self.lock_whole().with_inboxes(work);
    }

    fn query(&self, client: ClientId) -> Reply<'_, Snapshot> {
        self.reply(client, || self.snapshot())
    }

    fn place(&self, client: ClientId) -> Reply<'_, Option<query::Place>> {
        self.reply(client, || {
            let pending = self.snapshot().pending;
            let own = pending.iter().find(|info| info.client == client)?.request;
            self.lock_request(own).place(own)
        })
    }

    fn place_of(&self, client: ClientId, request: RequestId) -> Reply<'_, Option<query::Place>> {
        self.reply(client, || self.lock_request(request).place(request))
    }

    fn query_all(&self, client: ClientId) -> Reply<'_, Vec<PartitionSnapshot>> {
        self.reply(client, || self.registry.snapshots())
    }

    fn blockers(&self, client: ClientId, request: RequestId) -> Reply<'_, Blockers> {
        self.reply(client, || self.lock_request(request).manager().blockers(request))
    }

    fn is_contended(&self, client: ClientId, lock: RequestId) -> Reply<'_, bool> {
        self.reply(client, || self.lock_request(lock).manager().is_contended(lock))
    }

    fn waits(&self, client: ClientId, explained: Explained) -> Reply<'_, Waits> {
        self.reply(client, || {
            let all = self.lock_all();
            let whole = LockManager::whole(&all.managers());
            let explanation = whole.explain(explained, ExplainBounds::default());
            let Explanation { requests, waits, deadlocks, more, .. } =
                explanation.unwrap_or_default();
            let requests = self.describe(&all, requests);
            let cycles = deadlocks.into_iter().map(Cycle::from).collect();
            Waits { requests, waits, cycles, more }
        })
    }

    fn force_release(&self, client: ClientId, name: Name) -> Reply<'_, usize> {
        self.reply(client, || {
            let mut shard = self.lock_slow(LockManager::shard_of::<SHARDS>(&name));
            let count = shard.force_release(&name, &self.losses);
            self.settle(shard);
            count
        })
    }
}

fn has_any(manager: &LockManager, client: ClientId) -> bool {
    manager.requests_of(client).next().is_some()
}

/// The end of an input.
impl Space {
    #[inline]
    fn granted(&self, id: RequestId, token: FencingToken) -> Answer {
        Answer::Granted(Grant { id, token, losses: self.losses.load(Ordering::Relaxed) })
    }

    /// Answers a request that concerns other tasks, or has no lock.
    #[inline(never)]
    fn settle_and_answer(
        &self,
        mut shard: MutexGuard<'_, Shard>,
        decided: Result<(RequestId, Decided), SpaceError>,
        waker: &Waker,
    ) -> Answer {
        let answer = match decided {
            Ok((id, Decided::Granted(token))) => self.granted(id, token),
            Ok((id, Decided::Pending)) => {
                shard.register(id, waker);
                Answer::Pending(id)
            }
            Ok((_, Decided::Unavailable)) => Answer::Unavailable,
            Err(SpaceError::Request(error)) => Answer::Failed(error.into()),
            Err(SpaceError::Deadlock(cycle)) => {
                Answer::Failed(RequestErrorKind::Deadlock(cycle.into()))
            }
        };
        self.settle(shard);
        answer
    }

    /// Ends an input: unlocks, and then wakes the tasks that it concerns.
    #[inline(always)]
    fn settle(&self, mut shard: MutexGuard<'_, Shard>) {
        if self.gathered.load(Ordering::Relaxed) {
            return self.settle_gathered(shard);
        }
        if !shard.is_settled() {
            let wakes = shard.take_wakes();
            drop(shard);
            wakes.wake();
        }
    }

    #[inline(never)]
    fn settle_gathered(&self, mut whole: MutexGuard<'_, Shard>) {
        let divide = self.is_idle_often(&mut whole);
        let wakes = whole.take_wakes();
        drop(whole);
        wakes.wake();
        if divide {
            self.divide();
        }
    }

    /// Answers a question of a client that has not ended.
    fn reply<T: Send + 'static>(
        &self,
        client: ClientId,
        answer: impl FnOnce() -> T,
    ) -> Reply<'static, T> {
        let known = self.whole.lock().manager().knows(client);
        Box::pin(ready(if known { Ok(answer()) } else { Err(QueryError::ClientEnded) }))
    }
}
