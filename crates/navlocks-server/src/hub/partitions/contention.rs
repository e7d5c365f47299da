//! Holders that want to hear, once, that somebody waits for their lock.

use std::collections::HashMap;

use navlocks_core::{LockManager, Name, RequestId, Scope};

/// The locks whose holders want to hear. Empty most of the time, and then free of cost.
#[derive(Debug, Default)]
pub(crate) struct Contention {
    locks: HashMap<RequestId, Scope>,
    names: HashMap<Name, Vec<RequestId>>,
}

impl Contention {
    /// The holder of this lock wants to hear.
    pub(crate) fn watch(&mut self, lock: RequestId, scope: Scope) {
        for name in scope.names() {
            let locks = self.names.entry(name.clone()).or_default();
            if !locks.contains(&lock) {
                locks.push(lock);
            }
        }
        self.locks.insert(lock, scope);
    }

    /// The lock is no more, or its holder was told.
    #[inline]
    pub(crate) fn forget(&mut self, lock: RequestId) {
        if self.locks.is_empty() {
            return;
        }
        let Some(scope) = self.locks.remove(&lock) else { return };
        for name in scope.names() {
            if let Some(locks) = self.names.get_mut(name) {
                locks.retain(|&other| other != lock);
                if locks.is_empty() {
                    self.names.remove(name);
                }
            }
        }
    }

    /// A request for this scope has begun to wait: the locks whose holders are to be told. They are forgotten.
    pub(crate) fn began_to_wait(&mut self, scope: &Scope, manager: &LockManager) -> Vec<RequestId> {
        if self.locks.is_empty() {
            return Vec::new();
        }
        let names = scope.names().iter();
        let mut locks: Vec<RequestId> =
            names.filter_map(|name| self.names.get(name)).flatten().copied().collect();
        locks.sort_unstable();
        locks.dedup();
        locks.retain(|&lock| manager.is_contended(lock));
        locks.iter().for_each(|&lock| self.forget(lock));
        locks
    }

    /// A request was granted: whether its holder is to be told at once. Then it is forgotten.
    pub(crate) fn granted(&mut self, lock: RequestId, manager: &LockManager) -> bool {
        let told = self.locks.contains_key(&lock) && manager.is_contended(lock);
        if told {
            self.forget(lock);
        }
        told
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.locks.is_empty()
    }
}
