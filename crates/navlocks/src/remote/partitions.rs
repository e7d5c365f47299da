//! The sessions of one connection to a cluster: each partition has one of its own.
//!
//! In one service the partitions of a connection are clients of one session, so there is one
//! session here.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use navlocks_client::Begin;
use navlocks_core::ClientId;

use super::backend::Handle;
use super::connect::Options;
use super::driver::Driver;

/// The sessions that belong together, by their partitions.
#[derive(Debug, Default)]
pub(super) struct Partitions(Mutex<HashMap<String, Weak<Handle>>>);

impl Partitions {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, Weak<Handle>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the sessions that are in use.
    pub(super) fn all(&self) -> Vec<Arc<Handle>> {
        self.lock().values().filter_map(Weak::upgrade).collect()
    }

    /// Forgets the session of a partition that is not in use any more.
    pub(super) fn forget(&self, partition: &str) {
        let mut known = self.lock();
        if known.get(partition).is_some_and(|handle| handle.strong_count() == 0) {
            known.remove(partition);
        }
    }
}

impl Handle {
    /// Adds a client to this partition. In a cluster it may be the first one of another session.
    pub(crate) fn partition(self: &Arc<Self>, name: &str) -> (Arc<Self>, ClientId) {
        if !self.has_one_partition() || self.options.partition == name {
            return (self.clone(), self.add_client(name));
        }
        let mut known = self.partitions.lock();
        known.entry(self.options.partition.clone()).or_insert_with(|| Arc::downgrade(self));
        if let Some(other) = known.get(name).and_then(Weak::upgrade) {
            drop(known);
            let client = other.add_client(name);
            return (other, client);
        }
        let other = Arc::new(self.begin_beside(name));
        known.insert(name.to_owned(), Arc::downgrade(&other));
        drop(known);
        let first = other.first_client();
        (other, first)
    }

    /// Begins the session of another partition. Requests wait until its driver has connected.
    fn begin_beside(&self, partition: &str) -> Self {
        let options = Options { partition: partition.to_owned(), ..self.options.clone() };
        let driver = Driver::new(&options, Begin::Persist);
        let session = driver.session().clone();
        session.input(|state| state.machine.expect_cluster());
        self.runtime.spawn(driver.drive());
        Self { session, runtime: self.runtime.clone(), partitions: self.partitions.clone() }
    }
}
