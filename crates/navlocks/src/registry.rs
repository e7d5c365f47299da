//! The lock spaces of one family in this process, by the names of their partitions.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use navlocks_core::DeadlockPolicy;

use crate::query::PartitionSnapshot;
use crate::space::Space;

/// The partitions that are in use, of one family of lock spaces in this process.
#[derive(Debug)]
pub(crate) struct Registry {
    partitions: Mutex<HashMap<String, Weak<Space>>>,
    deadlocks: DeadlockPolicy,
}

impl Registry {
    pub(crate) fn new(deadlocks: DeadlockPolicy) -> Self {
        Self { partitions: Mutex::new(HashMap::new()), deadlocks }
    }

    /// Returns the locks held and requests pending in all partitions.
    pub(crate) fn snapshots(&self) -> Vec<PartitionSnapshot> {
        let partitions = self.partitions.lock().unwrap_or_else(PoisonError::into_inner);
        let living = partitions.iter().filter_map(|(name, space)| Some((name, space.upgrade()?)));
        let mut spaces: Vec<_> = living.map(|(name, space)| (name.clone(), space)).collect();
        drop(partitions);
        spaces.sort_by(|(a, _), (b, _)| a.cmp(b));
        let describe = |(partition, space): (String, Arc<Space>)| PartitionSnapshot {
            partition,
            tenant: String::new(),
            origin: String::new(),
            snapshot: space.query(),
        };
        spaces.into_iter().map(describe).collect()
    }

    /// The lock space of that name.
    pub(crate) fn partition(registry: &Arc<Self>, name: &str) -> Arc<Space> {
        let mut partitions = registry.partitions.lock().unwrap_or_else(PoisonError::into_inner);
        let known = partitions.get(name).and_then(Weak::upgrade);
        known.unwrap_or_else(|| {
            partitions.retain(|_, space| space.strong_count() > 0);
            let space = Arc::new(Space::new(registry.deadlocks, registry.clone()));
            partitions.insert(name.to_owned(), Arc::downgrade(&space));
            space
        })
    }
}
