//! The lock spaces of one family in this process, by the names of their partitions.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

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

    /// Makes a lock space that finds related ones here.
    pub(super) fn space(self: &Arc<Self>) -> Arc<Space> {
        Arc::new(Space::new(self.deadlocks, self.clone()))
    }

    /// Returns the locks held and requests pending in all partitions, in the order of their names.
    pub(super) fn snapshots(&self) -> Vec<PartitionSnapshot> {
        let partitions = self.partitions.lock().unwrap_or_else(PoisonError::into_inner);
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
        let mut partitions = self.partitions.lock().unwrap_or_else(PoisonError::into_inner);
        let known = partitions.get(name).and_then(Weak::upgrade);
        known.unwrap_or_else(|| {
            partitions.retain(|_, space| space.strong_count() > 0);
            let space = self.space();
            partitions.insert(name.to_owned(), Arc::downgrade(&space));
            space
        })
    }
}
