//! Suspend and resume clients that hold locks.

use alloc::vec::Vec;

use super::LockManager;
use crate::client::{SuspendPolicy, Suspension};
use crate::id::Index;
use crate::seating::Waits;
use crate::{ClientId, Event, LossCause, Mode, Request, Wait};

impl LockManager {
    /// Suspends a client: its events are kept for it until it is [resumed](Self::resume), and its
    /// locks are subject to `policy`. Returns false when it is not known or already suspended.
    pub fn suspend(&mut self, client: ClientId, policy: SuspendPolicy) -> bool {
        let Some(index) = self.clients.find(client) else { return false };
        if self.clients[index].suspension.is_some() {
            return false;
        }
        let suspension = Suspension { policy, deferred: self.recall_events(client) };
        self.clients.suspend(index, suspension);
        match policy {
            SuspendPolicy::EvictOnContention => {
                self.count_sleeper(index, |sleepers| *sleepers += 1);
                if self.is_waited_for(index) {
                    self.evict(&[index]);
                }
            }
            SuspendPolicy::ReleaseAtOnce => {
                let mut held: Vec<Index> = self.entries_of(index).collect();
                held.retain(|&entry| self.seating.is_held(entry));
                self.seating.sort(&mut held);
                self.take_away(&held, LossCause::Suspended);
                self.process_the_lock_request_queue();
            }
        }
        self.settle();
        true
    }

    /// Resumes a client: it now receives all events since its suspension, in order. Returns false
    /// when it is not known or not suspended.
    pub fn resume(&mut self, client: ClientId) -> bool {
        let Some(index) = self.clients.find(client) else { return false };
        let Some(suspension) = self.clients.resume(index) else { return false };
        if suspension.policy == SuspendPolicy::EvictOnContention {
            self.count_sleeper(index, |sleepers| *sleepers -= 1);
        }
        for event in suspension.deferred {
            self.send(index, event);
        }
        self.settle();
        true
    }

    /// Adjusts the count of sleepers in every queue where the client has a seat, once for each
    /// seat.
    fn count_sleeper(&mut self, client: Index, adjust: impl Fn(&mut u32)) {
        let entries: Vec<Index> = self.entries_of(client).collect();
        for entry in entries {
            self.seating.count_sleeper(entry, &adjust);
        }
    }

    /// Returns true if an entry of another client waits for one of this client's.
    pub(super) fn is_waited_for(&self, client: Index) -> bool {
        let mut behind =
            self.entries_of(client).flat_map(|entry| self.seating.waiters_behind(entry));
        behind.any(|later| self.owner(later) != client)
    }

    /// Evicts every sleeping client behind which `request` of `owner` would have to wait.
    pub(super) fn evict_sleeping_in_the_way(&mut self, owner: Index, request: &Request) {
        let stands_before = |entry: &Index| match request.wait {
            Wait::Queue | Wait::IfAvailable => true,
            Wait::Overtake => self.seating.is_held(*entry) || self.seating.overtakes(*entry),
            Wait::Steal | Wait::StealAll => false,
        };
        let mut clients = Vec::new();
        for name in request.scope.names() {
            if !self.seating.has_sleepers(name) || self.seating.admits(name, request.mode) {
                continue;
            }
            let before: Vec<Index> = self.seating.entries_on(name).filter(stands_before).collect();
            let mut waits = Waits::new();
            for &entry in &before {
                waits.pass(self.seating.mode(entry).into());
            }
            let for_all = waits.pass(request.mode.into());
            for entry in before {
                let client = self.owner(entry);
                if (for_all || self.seating.mode(entry) == Mode::Exclusive)
                    && client != owner
                    && self.clients[client].sleeps_under(SuspendPolicy::EvictOnContention)
                {
                    clients.push(client);
                }
            }
        }
        clients.sort_unstable_by_key(|&client| self.clients.id(client));
        clients.dedup();
        self.evict(&clients);
    }

    /// Evicts every sleeping client that an entry waits for, after a request came before both, or a
    /// holder made room for one of them: then a limit may be exceeded that was not before.
    pub(super) fn evict_sleeping_with_waiters(&mut self) {
        let clients = self.clients.sleeping().iter().map(|client| client.slot() as Index);
        let clients: Vec<Index> = clients.filter(|&client| self.is_waited_for(client)).collect();
        self.evict(&clients);
    }

    /// Evicts every sleeping client that has any entry.
    pub(super) fn evict_all_sleeping(&mut self) {
        let clients = self.clients.sleeping().iter().map(|client| client.slot() as Index);
        let clients: Vec<Index> =
            clients.filter(|&client| self.entries_of(client).next().is_some()).collect();
        self.evict(&clients);
    }

    /// Takes all entries from clients that are suspended until contention; they stay known, and
    /// suspended.
    fn evict(&mut self, clients: &[Index]) {
        for &client in clients {
            self.send_now(Event::Evicted { client: self.clients.id(client) });
            let mut entries: Vec<Index> = self.entries_of(client).collect();
            self.seating.sort(&mut entries);
            self.take_away(&entries, LossCause::Evicted);
        }
        self.process_the_lock_request_queue();
    }
}
