//! Suspend and resume: clients that sleep with locks in their hands.

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::client::Suspension;
use crate::id::Index;
use crate::manager::LockManager;
use crate::{Cause, ClientId, Event, Request, Wait};

/// What becomes of the locks of a client that is suspended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SuspendPolicy {
    /// It keeps them as long as nobody minds: nobody ever waits for a suspended client. As soon as the request
    /// of another would have to wait behind one of its entries, held or pending, or somebody
    /// [queries](LockManager::query), it is [evicted](Event::Evicted) and has nothing any more. The default.
    #[default]
    EvictOnContention,
    /// It loses them at once. Its requests keep their places in the queue; the turn of one that comes
    /// while the client sleeps passes.
    ReleaseAtOnce,
}

impl LockManager {
    /// Suspends a client: from now on its events are kept for it until it is [resumed](Self::resume), and its
    /// locks are subject to `policy`. False when it is not known or already suspended.
    pub fn suspend(&mut self, client: ClientId, policy: SuspendPolicy) -> bool {
        let Some(index) = self.clients.find(client) else { return false };
        if self.clients[index].suspension.is_some() {
            return false;
        }
        let suspension = Suspension { policy, deferred: self.recall_events(client) };
        self.clients[index].suspension = Some(Box::new(suspension));
        match policy {
            SuspendPolicy::EvictOnContention => {
                self.clients.sleeping.insert(client);
                self.count_sleeper(index, |sleepers| *sleepers += 1);
                if self.is_waited_for(index) {
                    self.evict(&[index]);
                }
            }
            SuspendPolicy::ReleaseAtOnce => {
                let mut held: Vec<Index> = self.entries_of(index).collect();
                held.retain(|&entry| self.entries[entry].life.is_held());
                self.sort(&mut held);
                self.take_away(&held, Cause::Suspended);
                self.process_the_lock_request_queue();
            }
        }
        self.settle();
        true
    }

    /// Wakes a client: it is told now all that happened to it meanwhile, in order. False when it is not known or not
    /// suspended.
    pub fn resume(&mut self, client: ClientId) -> bool {
        let Some(index) = self.clients.find(client) else { return false };
        let Some(suspension) = self.clients[index].suspension.take() else { return false };
        if suspension.policy == SuspendPolicy::EvictOnContention {
            self.clients.sleeping.remove(&client);
            self.count_sleeper(index, |sleepers| *sleepers -= 1);
        }
        for event in suspension.deferred {
            self.tell(index, event);
        }
        self.settle();
        true
    }

    /// Adjusts the sleepers of every queue in which the client has a seat, once for each seat.
    fn count_sleeper(&mut self, client: Index, adjust: impl Fn(&mut u32)) {
        let seats = self.entries_of(client).flat_map(|entry| self.entries.seats(entry));
        let queues: Vec<Index> = seats.map(|seat| self.entries[seat].seat.queue).collect();
        for queue in queues {
            adjust(&mut self.queues[queue].sleepers);
        }
    }

    /// Whether an entry of another client stands behind one of this client's and conflicts with it.
    pub(crate) fn is_waited_for(&self, client: Index) -> bool {
        let mut seats = self.entries_of(client).flat_map(|entry| self.entries.seats(entry));
        seats.any(|seat| {
            self.seats_from(self.entries[seat].seat.next)
                .any(|later| self.owner(later) != client && self.conflict(seat, later))
        })
    }

    /// Evicts every sleeping client behind which `request` of `owner` would have to wait.
    pub(crate) fn evict_sleeping_in_the_way(&mut self, owner: Index, request: &Request) {
        let in_the_way = |life: &crate::entry::Life| match request.wait {
            Wait::Queue | Wait::IfAvailable => true,
            Wait::Overtake => life.is_held(),
            Wait::Steal | Wait::StealAll => false,
        };
        let mut clients = Vec::new();
        for name in request.scope.names() {
            let Some(queue) = self.queues.find(name) else { continue };
            if self.queues[queue].sleepers == 0 || self.admits(queue, request.mode) {
                continue;
            }
            for seat in self.seats_from(self.queues[queue].first) {
                let slot = &self.entries[seat].seat;
                let client = self.owner(seat);
                if slot.mode.conflicts_with(request.mode)
                    && client != owner
                    && self.clients[client].sleeps_under(SuspendPolicy::EvictOnContention)
                    && in_the_way(&self.entries[slot.entry].life)
                {
                    clients.push(client);
                }
            }
        }
        clients.sort_unstable_by_key(|&client| self.clients.id(client));
        clients.dedup();
        self.evict(&clients);
    }

    /// Evicts every sleeping client that has any entry.
    pub(crate) fn evict_all_sleeping(&mut self) {
        let clients = self.clients.sleeping.iter().map(|client| client.slot() as Index);
        let clients: Vec<Index> =
            clients.filter(|&client| self.entries_of(client).next().is_some()).collect();
        self.evict(&clients);
    }

    /// Takes everything from clients that sleep until contention; they stay known, and asleep.
    fn evict(&mut self, clients: &[Index]) {
        for &client in clients {
            self.tell_now(Event::Evicted { client: self.clients.id(client) });
            let mut entries: Vec<Index> = self.entries_of(client).collect();
            self.sort(&mut entries);
            self.take_away(&entries, Cause::Evicted);
        }
        self.process_the_lock_request_queue();
    }
}
