//! Cycles: the search of the deadlock policy, which runs for each request that begins to wait.
//!
//! Only a request within a held one closes a cycle, or one that overtakes others. Few of them do.
//! So this search goes from holder to holder and reads a few entries, where the exact one in
//! `deadlock.rs` reads whole queues. It finds every cycle that a new waiter closes, and sometimes
//! more.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use super::{Deadlock, LockManager};
use crate::RequestId;
use crate::id::Index;

impl LockManager {
    /// Returns the deadlock that a request closes which has just begun to wait. Returns none if the
    /// search would read more entries than `entries_max`.
    pub(crate) fn deadlock_closed_by(
        &self,
        request: RequestId,
        entries_max: usize,
    ) -> Option<Deadlock> {
        let entry = self.seating.find(request)?;
        let outer = self.outer_of(request).and_then(|outer| self.seating.find(outer));
        let closes = match outer {
            // Entries behind an overtaker wait for it.
            _ if self.seating.overtakes(entry) => !self.clients.nests.is_empty(),
            Some(outer) => Search::new(self, entries_max).leads(entry, outer)?,
            None => false,
        };
        closes.then(|| self.deadlock_through(request, entries_max))?
    }
}

/// The holders that a request waits for, as far as they are known.
struct Search<'a> {
    manager: &'a LockManager,
    found: BTreeSet<Index>,
    /// The found holders that are still to be visited.
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

    /// Returns true if an entry may wait for this holder. Returns none if the search would read too
    /// many entries.
    fn leads(mut self, entry: Index, to: Index) -> Option<bool> {
        let manager = self.manager;
        self.add_holders(entry)?;
        while let Some(holder) = self.open.pop() {
            if holder == to {
                return Some(true);
            }
            for inner in manager.inner_entries(holder) {
                self.count_read()?;
                if manager.seating.is_held(inner) {
                    self.add(inner);
                } else {
                    self.add_holders(inner)?;
                }
            }
        }
        Some(false)
    }

    /// Adds the holders that a pending entry waits for, also behind other entries.
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
                        self.add(holder);
                    }
                    continue;
                }
                // An entry of several names leads to further queues.
                for (_, other, _) in seating.seats_of(queue) {
                    self.count_read()?;
                    if seating.is_held(other) {
                        self.add(other);
                    } else {
                        waiting.push(other);
                    }
                }
            }
        }
        Some(())
    }

    fn add(&mut self, holder: Index) {
        if self.found.insert(holder) {
            self.open.push(holder);
        }
    }

    /// Counts an entry that is read. Returns none if there were too many.
    fn count_read(&mut self) -> Option<()> {
        self.left = self.left.checked_sub(1)?;
        Some(())
    }
}
