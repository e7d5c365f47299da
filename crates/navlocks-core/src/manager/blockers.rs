//! Blockers: the entries that a pending request waits for.

use alloc::vec::Vec;

use super::LockManager;
use crate::RequestId;
use crate::id::Index;

/// The entries that a pending request waits for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Blockers {
    /// Held locks that conflict with it, in grant order.
    pub hard: Vec<RequestId>,
    /// Earlier requests that conflict with it and wait themselves, in queue order.
    pub soft: Vec<RequestId>,
}

impl LockManager {
    /// Returns what `request` waits for: nothing, if it is not pending. It is granted when all of
    /// these are gone.
    ///
    /// Costs O(entries before it on its names).
    pub fn blockers(&self, request: RequestId) -> Blockers {
        self.blockers_within(request, usize::MAX).unwrap_or_default()
    }

    /// Returns the same, or none if more entries than this stand before it, counted once for each
    /// name.
    pub fn blockers_within(&self, request: RequestId, entries_max: usize) -> Option<Blockers> {
        let Some(entry) = self.seating.find(request) else { return Some(Blockers::default()) };
        let mut blockers: Vec<Index> = Vec::new();
        let mut left = entries_max;
        for (earlier, conflicts) in self.seating.entries_before(entry) {
            left = left.checked_sub(1)?;
            if conflicts {
                blockers.push(earlier);
            }
        }
        self.seating.sort(&mut blockers);
        blockers.dedup();
        let held = blockers.partition_point(|&blocker| self.seating.is_held(blocker));
        let ids = |entries: &[Index]| entries.iter().map(|&entry| self.seating.id(entry)).collect();
        let (hard, soft) = blockers.split_at(held);
        Some(Blockers { hard: ids(hard), soft: ids(soft) })
    }

    /// Returns true if a request waits for this held lock. Costs O(names of its scope).
    pub fn is_contended(&self, lock: RequestId) -> bool {
        let held = self.seating.find(lock).filter(|&entry| self.seating.is_held(entry));
        held.is_some_and(|entry| self.seating.is_contended(entry))
    }
}
