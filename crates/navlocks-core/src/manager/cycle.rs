//! Cycles: the search of the deadlock policy, which runs for each request that begins to wait.
//!
//! Few waiters close a cycle. So this search goes from client to client and reads a few entries,
//! where the exact one in `deadlock.rs` reads whole queues. It finds every cycle that a new waiter
//! closes, and sometimes more.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use super::{Deadlock, LockManager};
use crate::RequestId;
use crate::id::Index;

/// How many entries of a client are read to learn that no entry waits for it.
const OWN_ENTRIES_MAX: usize = 32;

impl LockManager {
    /// Returns the deadlock that a request closes which has just begun to wait. Returns none for a
    /// request that waits only for what its client waits for already, and if the search would read
    /// more entries than `entries_max`.
    pub(crate) fn deadlock_closed_by(
        &self,
        request: RequestId,
        entries_max: usize,
    ) -> Option<Deadlock> {
        let entry = self.seating.find(request)?;
        // Entries behind an overtaker wait for it, so a cycle need not pass its client.
        let searched = self.seating.overtakes(entry)
            || !self.seating.follows_own_seats(entry)
                && !self.is_unwanted(self.owner(entry))
                && Search::new(self, entries_max).leads_back(entry)?;
        searched.then(|| self.deadlock_through(request, entries_max))?
    }

    /// Returns true if no entry and no client waits for this client. False if that takes long to
    /// find out.
    fn is_unwanted(&self, client: Index) -> bool {
        let mut entries = self.entries_of(client);
        let mut own = entries.by_ref().take(OWN_ENTRIES_MAX);
        let is_wanted = |entry| self.seating.is_held(entry) && self.seating.is_contended(entry);
        !self.clients.has_families() && !own.any(is_wanted) && entries.next().is_none()
    }
}

/// The clients that a request waits for, as far as they are known.
struct Search<'a> {
    manager: &'a LockManager,
    found: BTreeSet<Index>,
    /// The found clients that are still to be visited.
    open: Vec<Index>,
    /// The queues whose holders are found.
    queues: BTreeSet<Index>,
    /// How many entries may still be read.
    left: usize,
}

impl<'a> Search<'a> {
    fn new(manager: &'a LockManager, entries_max: usize) -> Self {
        let (found, queues) = (BTreeSet::new(), BTreeSet::new());
        Self { manager, found, open: Vec::new(), queues, left: entries_max }
    }

    /// Returns true if a client that the entry waits for may wait for the entry's client, which is
    /// another one. Returns none if the search would read too many entries.
    fn leads_back(mut self, entry: Index) -> Option<bool> {
        let manager = self.manager;
        let own = manager.owner(entry);
        self.add_holders(entry)?;
        self.found.remove(&own);
        self.open.retain(|&client| client != own);
        // Other clients may wait in the same queues.
        self.queues.clear();
        while let Some(client) = self.open.pop() {
            if client == own {
                return Some(true);
            }
            for entry in manager.entries_of(client) {
                self.count_read()?;
                if !manager.seating.is_held(entry) {
                    self.add_holders(entry)?;
                }
            }
            for child in manager.clients.children(client) {
                self.count_read()?;
                self.add(child);
            }
        }
        Some(false)
    }

    /// Adds the clients whose locks a pending entry waits for, also behind other entries.
    fn add_holders(&mut self, entry: Index) -> Option<()> {
        let seating = &self.manager.seating;
        let mut waiting = Vec::from([entry]);
        while let Some(entry) = waiting.pop() {
            for (queue, _) in seating.queues_of(entry) {
                if !self.queues.insert(queue) {
                    continue;
                }
                if !seating.has_wide_entries() {
                    for holder in seating.holders_in(queue) {
                        self.count_read()?;
                        self.add(self.manager.owner(holder));
                    }
                    continue;
                }
                // An entry of several names leads to further queues.
                for (_, other, _) in seating.seats_of(queue) {
                    self.count_read()?;
                    if seating.is_held(other) {
                        self.add(self.manager.owner(other));
                    } else {
                        waiting.push(other);
                    }
                }
            }
        }
        Some(())
    }

    fn add(&mut self, client: Index) {
        if self.found.insert(client) {
            self.open.push(client);
        }
    }

    /// Counts an entry that is read. Returns none if there were too many.
    fn count_read(&mut self) -> Option<()> {
        self.left = self.left.checked_sub(1)?;
        Some(())
    }
}
