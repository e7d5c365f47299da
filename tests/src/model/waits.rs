//! The waits-for relation, by comparing every pair.

use super::scopes::{Entry, conflict};
use super::words::{Blockers, Deadlock, RequestNo};

/// The live entries, held ones in the order of the grants, then pending ones in the order of the
/// queue.
#[derive(Clone, Copy, Debug)]
pub(super) struct Live<'a> {
    pub(super) held: &'a [Entry],
    pub(super) queue: &'a [Entry],
}

impl Live<'_> {
    /// Returns the blockers of a pending request: every earlier live entry that it conflicts with.
    pub(super) fn blockers(self, request: RequestNo) -> Blockers {
        let Some(place) = self.queue.iter().position(|entry| entry.request == request) else {
            return Blockers::default();
        };
        let conflicting = |entries: &[Entry]| {
            entries
                .iter()
                .filter(|entry| conflict(entry, &self.queue[place]))
                .map(|entry| entry.request)
                .collect()
        };
        Blockers { hard: conflicting(self.held), soft: conflicting(&self.queue[..place]) }
    }

    /// Returns the deadlocks. A pending entry waits for every earlier live entry that conflicts; a
    /// held one for every pending request of its own client, which may not release before. Entries
    /// that can all reach each other are a deadlock.
    pub(super) fn deadlocks(self) -> Vec<Deadlock> {
        let entries: Vec<&Entry> = self.held.iter().chain(self.queue).collect();
        let held = self.held.len();

        // Each row is the bit set of the entries that one entry waits for, made transitive in
        // place.
        assert!(entries.len() <= 128, "a row has 128 bits");
        let mut reach = vec![0u128; entries.len()];
        for (from, entry) in entries.iter().enumerate() {
            for (to, other) in entries.iter().enumerate() {
                let waits = if from < held {
                    to >= held && other.client == entry.client
                } else {
                    to < from && conflict(other, entry)
                };
                reach[from] |= u128::from(waits) << to;
            }
        }
        for through in 0..entries.len() {
            for from in 0..entries.len() {
                if reach[from] >> through & 1 == 1 {
                    reach[from] |= reach[through];
                }
            }
        }

        let mut found: Vec<Deadlock> = Vec::new();
        for one in 0..entries.len() {
            let component: Vec<&Entry> = (0..entries.len())
                .filter(|&other| {
                    other == one || (reach[one] >> other & 1 == 1 && reach[other] >> one & 1 == 1)
                })
                .map(|other| entries[other])
                .collect();
            if component.len() > 1 {
                let mut requests: Vec<_> = component.iter().map(|entry| entry.request).collect();
                requests.sort_unstable();
                let mut clients: Vec<_> = component.iter().map(|entry| entry.client).collect();
                clients.sort_unstable();
                clients.dedup();
                found.push(Deadlock { requests, clients });
            }
        }
        // Each member found the same component.
        found.sort_unstable();
        found.dedup();
        found
    }
}
