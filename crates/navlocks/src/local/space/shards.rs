//! The shards of a space: each alone, or all gathered into one.

use std::sync::PoisonError;
use std::sync::atomic::Ordering;

#[cfg(not(loom))]
use navlocks_core::kit::spin;
use navlocks_core::{DeadlockPolicy, LockManager, RequestId};

use super::super::shard::Shard;
use super::{IDLE_TIMES, Space};
use crate::backend::SHARDS;
use crate::query::Snapshot;
use crate::sync::{Mutex, MutexGuard};

/// A mutex that shares no cache line with the next.
#[derive(Debug)]
#[repr(align(128))]
pub(super) struct ShardCell(Mutex<Shard>);

/// A space of which everything is locked.
pub(super) struct All<'a> {
    pub(super) shards: [MutexGuard<'a, Shard>; SHARDS],
    pub(super) whole: MutexGuard<'a, Shard>,
}

/// Locking: a shard, all shards, or the whole.
impl Space {
    /// Returns the locks held and requests pending, at one moment.
    pub(crate) fn snapshot(&self) -> Snapshot {
        let all = self.lock_all();
        let snapshot = LockManager::snapshot_of(&all.managers());
        self.describe(&all, snapshot)
    }

    pub(super) fn describe(&self, all: &All<'_>, snapshot: navlocks_core::Snapshot) -> Snapshot {
        Snapshot::new(snapshot, |id| {
            let gathered = self.gathered.load(Ordering::Relaxed);
            let shard = if gathered { &all.whole } else { &all.shards[shard_of(id)] };
            shard.about(id)
        })
    }

    /// Locks the shard with this number, or the whole if that has its requests.
    #[inline(always)]
    pub(super) fn lock(&self, shard: usize) -> MutexGuard<'_, Shard> {
        let gathered = || self.gathered.load(Ordering::Relaxed);
        if !gathered()
            && let Ok(locked) = self.shards[shard].0.try_lock()
            && !gathered()
        {
            debug_assert!(locked.is_settled(), "an input left a task to wake");
            return locked;
        }
        self.lock_slow(shard)
    }

    /// Does the same if the whole has the requests, or another thread has the lock.
    #[inline(never)]
    pub(super) fn lock_slow(&self, shard: usize) -> MutexGuard<'_, Shard> {
        loop {
            let gathered = self.gathered.load(Ordering::Relaxed);
            let locked = if gathered { self.whole.lock() } else { self.shards[shard].lock() };
            if self.gathered.load(Ordering::Relaxed) == gathered {
                return locked;
            }
        }
    }

    pub(super) fn lock_request(&self, id: RequestId) -> MutexGuard<'_, Shard> {
        self.lock_slow(shard_of(id))
    }

    /// Locks everything, in the one order in which more than one mutex is ever locked.
    pub(super) fn lock_all(&self) -> All<'_> {
        All { shards: self.shards.each_ref().map(ShardCell::lock), whole: self.whole.lock() }
    }

    /// Locks the whole, with everything in it.
    pub(super) fn lock_whole(&self) -> MutexGuard<'_, Shard> {
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
    pub(super) fn gather(&self, all: &mut All<'_>) {
        if self.gathered.load(Ordering::Relaxed) {
            return;
        }
        let All { shards, whole } = all;
        whole.gather(shards.each_mut().map(|shard| &mut **shard));
        self.gathered.store(true, Ordering::Relaxed);
    }

    /// Divides the space again if the whole is empty.
    #[cold]
    pub(super) fn divide(&self) {
        let mut all = self.lock_all();
        all.whole.idle_times = 0;
        if all.whole.is_idle() {
            self.gathered.store(false, Ordering::Relaxed);
        }
    }

    /// Returns true if the whole was left without requests often enough to divide the space.
    pub(super) fn is_idle_often(&self, whole: &mut Shard) -> bool {
        let idle = self.deadlocks == DeadlockPolicy::Ignore && whole.manager().name_count() == 0;
        whole.idle_times += u32::from(idle);
        idle && whole.idle_times >= IDLE_TIMES
    }
}

/// Returns the shard in which a request was made, unless that was in the whole.
#[inline]
pub(super) fn shard_of(id: RequestId) -> usize {
    id.slot() % SHARDS
}

impl All<'_> {
    /// Returns all engines; either the shards or the whole have the requests.
    pub(super) fn managers(&self) -> Vec<&LockManager> {
        self.shards.iter().chain([&self.whole]).map(|shard| shard.manager()).collect()
    }
}

impl ShardCell {
    pub(super) fn new(manager: LockManager, deadlocks: DeadlockPolicy) -> Self {
        Self(Mutex::new(Shard::new(manager, deadlocks)))
    }

    /// Locks, even after a panic: holders must still be able to release.
    #[inline]
    pub(super) fn lock(&self) -> MutexGuard<'_, Shard> {
        // The model checker would explore every number of tries.
        #[cfg(not(loom))]
        if let Some(shard) = spin(|| self.0.try_lock().ok()) {
            return shard;
        }
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
