//! Who blocks a request.

use alloc::vec::Vec;

use crate::RequestId;
use crate::id::Index;
use crate::manager::LockManager;

/// What a pending request waits for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Blockers {
    /// Held locks that conflict with it, in grant order.
    pub hard: Vec<RequestId>,
    /// Earlier requests that conflict with it and wait themselves, in queue order.
    pub soft: Vec<RequestId>,
}

impl LockManager {
    /// What `request` waits for: nothing, if it is not pending. It is granted when all of these are gone.
    ///
    /// Costs O(entries before it on its names), and nothing while nobody asks.
    pub fn blockers(&self, request: RequestId) -> Blockers {
        let Some(entry) = self.entries.find(request) else { return Blockers::default() };
        let mut blockers: Vec<Index> =
            self.entries.seats(entry).flat_map(|seat| self.conflicts_before(seat)).collect();
        self.sort(&mut blockers);
        blockers.dedup();
        let held = blockers.partition_point(|&blocker| self.entries[blocker].life.is_held());
        let ids = |entries: &[Index]| entries.iter().map(|&entry| self.entries.id(entry)).collect();
        let (hard, soft) = blockers.split_at(held);
        Blockers { hard: ids(hard), soft: ids(soft) }
    }

    /// Whether somebody waits for this held lock. Costs O(names of its scope).
    pub fn is_contended(&self, lock: RequestId) -> bool {
        let held = self.entries.find(lock).filter(|&entry| self.entries[entry].life.is_held());
        // The first seat that is not clear conflicts with all that are.
        held.is_some_and(|entry| {
            self.entries.seats(entry).any(|seat| {
                let queue = &self.queues[self.entries[seat].seat.queue];
                queue.clear_end != queue.last
            })
        })
    }

    /// The entries before a seat in its queue that conflict with it.
    fn conflicts_before(&self, seat: Index) -> impl Iterator<Item = Index> + '_ {
        let first = self.queues[self.entries[seat].seat.queue].first;
        self.seats_from(first)
            .take_while(move |&earlier| earlier != seat)
            .filter(move |&earlier| self.conflict(earlier, seat))
            .map(|earlier| self.entries[earlier].seat.entry)
    }
}
