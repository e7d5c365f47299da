//! The lock spaces of one family in this process, by the names of their partitions.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use navlocks_core::DeadlockPolicy;

use super::space::Space;
use crate::backend::Member;

/// The partitions in use, of one family of lock spaces.
#[derive(Debug)]
pub(super) struct Registry {
    partitions: Mutex<HashMap<String, Weak<Space>>>,
    deadlocks: DeadlockPolicy,
}

/// Makes a lock space with one client, related to no other.
pub(crate) fn new_space(deadlocks: DeadlockPolicy) -> Member {
    let registry = Arc::new(Registry { partitions: Mutex::default(), deadlocks });
    Registry::space(&registry).with_client()
}

impl Registry {
    fn space(registry: &Arc<Self>) -> Arc<Space> {
        Arc::new(Space::new(registry.deadlocks, registry.clone()))
    }

    /// Returns the lock space of this name, and makes it when no client uses it.
    pub(super) fn partition(registry: &Arc<Self>, name: &str) -> Arc<Space> {
        let mut partitions = registry.partitions.lock().unwrap_or_else(PoisonError::into_inner);
        let known = partitions.get(name).and_then(Weak::upgrade);
        known.unwrap_or_else(|| {
            partitions.retain(|_, space| space.strong_count() > 0);
            let space = Self::space(registry);
            partitions.insert(name.to_owned(), Arc::downgrade(&space));
            space
        })
    }
}
