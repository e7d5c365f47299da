//! The lock spaces of one family in this process, by the names of their partitions.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use navlocks_core::DeadlockPolicy;

use super::space::Space;
use crate::query::PartitionSnapshot;

/// The partitions in use, of one family of lock spaces.
#[derive(Debug)]
pub(super) struct Registry {
    partitions: Mutex<HashMap<String, Weak<Space>>>,
    deadlocks: DeadlockPolicy,
}

impl Registry {
    pub(super) fn new(deadlocks: DeadlockPolicy) -> Arc<Self> {
        Arc::new(Self { partitions: Mutex::default(), deadlocks })
    }

    /// Returns the locks held and requests pending in all partitions, in the order of their names.
    pub(super) fn snapshots(&self) -> Vec<PartitionSnapshot> {
        let partitions = self.lock();
        let living = partitions.iter().filter_map(|(name, space)| Some((name, space.upgrade()?)));
        let mut spaces: Vec<_> = living.map(|(name, space)| (name.clone(), space)).collect();
        drop(partitions);
        spaces.sort_by(|(a, _), (b, _)| a.cmp(b));
        let describe = |(partition, space): (String, Arc<Space>)| PartitionSnapshot {
            partition,
            tenant: String::new(),
            origin: String::new(),
            snapshot: space.snapshot(),
        };
        spaces.into_iter().map(describe).collect()
    }

    /// Returns the lock space of this name, and makes it when no client uses it.
    pub(super) fn partition(self: &Arc<Self>, name: &str) -> Arc<Space> {
        let mut partitions = self.lock();
        let known = partitions.get(name).and_then(Weak::upgrade);
        known.unwrap_or_else(|| {
            let space = Arc::new_cyclic(|own| {
                Space::new(self.deadlocks, name.into(), self.clone(), own.clone())
            });
            partitions.insert(name.to_owned(), Arc::downgrade(&space));
            space
        })
    }

    /// Forgets the lock space of this name, unless a client has begun to use it again.
    pub(super) fn forget(&self, name: &str) {
        let mut partitions = self.lock();
        if partitions.get(name).is_some_and(|space| space.strong_count() == 0) {
            partitions.remove(name);
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Weak<Space>>> {
        self.partitions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn partition_that_no_client_uses_is_forgotten_at_once() {
        let registry = Registry::new(DeadlockPolicy::Ignore);
        let used: Vec<_> = (0..100).map(|name| registry.partition(&name.to_string())).collect();
        assert!(Arc::ptr_eq(&used[7], &registry.partition("7")));
        assert_eq!(registry.lock().len(), used.len());
        drop(used);
        assert_eq!(registry.lock().len(), 0);
    }
}
