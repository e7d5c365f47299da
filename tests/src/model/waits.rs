//! The waits-for relation, by comparing every pair.

use std::collections::BTreeMap;

use super::scopes::{Entry, conflict, in_the_way};
use super::words::{Blockers, Deadlock, RequestNo};

/// The live entries, held ones in the order of the grants, then pending ones in the order of the
/// queue.
#[derive(Clone, Copy, Debug)]
pub(super) struct Live<'a> {
    pub(super) held: &'a [Entry],
    pub(super) queue: &'a [Entry],
    /// The request within which another one was made, by that other one.
    pub(super) outers: &'a BTreeMap<RequestNo, RequestNo>,
}

impl Live<'_> {
    /// Returns the blockers of a pending request: every earlier live entry that it waits for.
    pub(super) fn blockers(self, request: RequestNo) -> Blockers {
        let Some(place) = self.queue.iter().position(|entry| entry.request == request) else {
            return Blockers::default();
        };
        let before: Vec<&Entry> = self.held.iter().chain(&self.queue[..place]).collect();
        let blockers = in_the_way(&before, &self.queue[place]);
        let (hard, soft): (Vec<&Entry>, Vec<&Entry>) =
            blockers.into_iter().partition(|entry| entry.is_held());
        let requests = |entries: Vec<&Entry>| entries.iter().map(|entry| entry.request).collect();
        Blockers { hard: requests(hard), soft: requests(soft) }
    }

    /// Returns the certain deadlocks. A pending entry waits for every earlier live entry that
    /// conflicts, and a held one for all that were made within it. Entries that can all reach each
    /// other are a deadlock.
    pub(super) fn deadlocks(self) -> Vec<Deadlock> {
        let entries: Vec<&Entry> = self.held.iter().chain(self.queue).collect();
        let held = self.held.len();
        let mut reach = vec![vec![false; entries.len()]; entries.len()];
        for from in 0..entries.len() {
            for to in 0..entries.len() {
                reach[from][to] = if from < held {
                    self.outers.get(&entries[to].request) == Some(&entries[from].request)
                } else {
                    to < from && conflict(entries[to], entries[from])
                };
            }
        }
        for through in 0..entries.len() {
            let onward = reach[through].clone();
            for row in reach.iter_mut().filter(|row| row[through]) {
                row.iter_mut().zip(&onward).for_each(|(reached, &more)| *reached |= more);
            }
        }
        let mut found: Vec<Deadlock> = Vec::new();
        for one in (0..entries.len()).filter(|&one| reach[one][one]) {
            let together = |&other: &usize| reach[one][other] && reach[other][one];
            let part: Vec<&Entry> =
                (0..entries.len()).filter(together).map(|other| entries[other]).collect();
            found.push(of_entries(&part));
        }
        found.sort_unstable();
        found.dedup();
        found
    }

    /// Returns the deadlocks that are possible and not certain.
    pub(super) fn possible_deadlocks(self) -> Vec<Deadlock> {
        let certain = self.deadlocks();
        let is_certain =
            |request: &RequestNo| certain.iter().any(|it| it.requests.contains(request));
        let mut found = self.cycles_of_clients();
        found.retain(|possible| !possible.requests.iter().any(is_certain));
        found
    }

    /// Returns the deadlocks if every lock of a client waits. A pending entry waits for every
    /// earlier live entry that conflicts. A client waits for another one through the entries from
    /// its pending request to a lock of the other. Clients that can all reach each other are a
    /// deadlock, with the entries between them.
    pub(super) fn cycles_of_clients(self) -> Vec<Deadlock> {
        let entries: Vec<&Entry> = self.held.iter().chain(self.queue).collect();
        let held = self.held.len();

        // Each row is the bit set of the entries that one entry reaches, itself included. An entry
        // waits for earlier ones alone, so their rows are complete.
        assert!(entries.len() <= 128, "a row has 128 bits");
        let mut reach = vec![0u128; entries.len()];
        for from in 0..entries.len() {
            reach[from] = 1 << from;
            let earlier = if from < held { 0 } else { from };
            for to in (0..earlier).filter(|&to| conflict(entries[to], entries[from])) {
                reach[from] |= reach[to];
            }
        }

        // Each row is the bit set of the clients that one client waits for, made transitive in
        // place.
        let mut clients: Vec<_> = entries.iter().map(|entry| entry.client).collect();
        clients.sort_unstable();
        clients.dedup();
        let bit = |entry: &Entry| clients.iter().position(|&client| client == entry.client);
        let bit = |entry: &Entry| bit(entry).expect("it is one of them");
        let mut waits = vec![0u128; clients.len()];
        for (from, entry) in entries.iter().enumerate().skip(held) {
            let holders = (0..held).filter(|&to| reach[from] >> to & 1 == 1);
            for holder in holders.map(|to| bit(entries[to])).filter(|&to| to != bit(entry)) {
                waits[bit(entry)] |= 1 << holder;
            }
        }
        for through in 0..clients.len() {
            for from in 0..clients.len() {
                if waits[from] >> through & 1 == 1 {
                    waits[from] |= waits[through];
                }
            }
        }

        let together = |one: usize, other: usize| {
            one != other && waits[one] >> other & 1 == 1 && waits[other] >> one & 1 == 1
        };
        let mut found: Vec<Deadlock> = Vec::new();
        for one in 0..clients.len() {
            let in_it = |entry: &Entry| bit(entry) == one || together(one, bit(entry));
            let mut between = 0u128;
            for (from, waiter) in entries.iter().enumerate().skip(held).filter(|w| in_it(w.1)) {
                for (to, holder) in entries.iter().enumerate().take(held).filter(|h| in_it(h.1)) {
                    if bit(waiter) != bit(holder) {
                        let is_between =
                            |&via: &usize| reach[from] >> via & 1 == 1 && reach[via] >> to & 1 == 1;
                        let via = (0..entries.len()).filter(is_between);
                        via.for_each(|via| between |= 1 << via);
                    }
                }
            }
            let component: Vec<&Entry> = (0..entries.len())
                .filter(|&via| between >> via & 1 == 1)
                .map(|via| entries[via])
                .collect();
            if !component.is_empty() {
                found.push(of_entries(&component));
            }
        }
        // Each client found the same component.
        found.sort_unstable();
        found.dedup();
        found
    }
}

fn of_entries(entries: &[&Entry]) -> Deadlock {
    let mut requests: Vec<_> = entries.iter().map(|entry| entry.request).collect();
    requests.sort_unstable();
    let mut clients: Vec<_> = entries.iter().map(|entry| entry.client).collect();
    clients.sort_unstable();
    clients.dedup();
    Deadlock { requests, clients }
}
