//! Contention: holders that watch, once, for a request that waits for their lock.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use super::ids::IdMap;
use crate::{LockManager, Name, RequestId, Scope};

/// The watched locks. Empty most of the time, and then free of cost.
#[derive(Debug, Default)]
pub(super) struct Contention {
    locks: IdMap<Scope>,
    /// The watched locks by each of their names.
    names: BTreeMap<Name, BTreeSet<RequestId>>,
}

impl Contention {
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.locks.is_empty()
    }

    pub(super) fn watch(&mut self, lock: RequestId, scope: Scope) {
        for name in scope.names() {
            self.names.entry(name.clone()).or_default().insert(lock);
        }
        self.locks.insert(lock, scope);
    }

    /// Ends the watch of a lock that is over, or whose holder was notified. Returns true if there
    /// was one.
    #[inline]
    pub(super) fn unwatch(&mut self, lock: RequestId) -> bool {
        !self.is_empty() && self.remove(lock)
    }

    fn remove(&mut self, lock: RequestId) -> bool {
        let Some(scope) = self.locks.remove(&lock) else { return false };
        for name in scope.names() {
            if let Some(locks) = self.names.get_mut(name) {
                locks.remove(&lock);
                if locks.is_empty() {
                    self.names.remove(name);
                }
            }
        }
        true
    }

    /// Returns the watched locks that a request for `scope`, which begins to wait, contends for.
    /// Their watches end.
    pub(super) fn take_contended(
        &mut self,
        scope: &Scope,
        manager: &LockManager,
    ) -> Vec<RequestId> {
        if self.is_empty() {
            return Vec::new();
        }
        let names = scope.names().iter().filter_map(|name| self.names.get(name));
        let locks: BTreeSet<RequestId> = names.flatten().copied().collect();
        let mut contended: Vec<RequestId> = locks.into_iter().collect();
        contended.retain(|&lock| manager.is_contended(lock) && self.remove(lock));
        contended
    }

    pub(super) fn absorb(&mut self, other: Self) {
        self.locks.extend(other.locks);
        self.names.extend(other.names);
    }
}
