//! The lock spaces of one family in this process, by the names of their partitions.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use navlocks_core::DeadlockPolicy;

use super::space::Space;

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

    /// Makes a lock space that finds its relatives here.
    pub(super) fn space(self: &Arc<Self>) -> Arc<Space> {
        Arc::new(Space::new(self.deadlocks, self.clone()))
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
