//! Suspended clients that others wait for are evicted.

use super::super::words::{ClientNo, Event, LossCause, Policy, Wait};
use super::{Entry, Presence, Scopes, in_the_way};

/// Eviction: no client ever waits for a suspended one under this policy.
impl Scopes {
    pub(super) fn evictable(&self) -> Vec<ClientNo> {
        let evict = |presence: &Presence| {
            matches!(presence, Presence::Suspended { policy: Policy::EvictOnContention, .. })
        };
        self.clients
            .iter()
            .filter(|(_, presence)| evict(presence))
            .map(|(&client, _)| client)
            .collect()
    }

    /// Returns true if an entry of another client waits for an entry of this one.
    pub(super) fn somebody_waits_for(&self, client: ClientNo) -> bool {
        let order: Vec<&Entry> = self.live().collect();
        order.iter().enumerate().any(|(place, later)| {
            later.client != client
                && in_the_way(&order[..place], later).iter().any(|entry| entry.client == client)
        })
    }

    pub(super) fn evict_those_it_would_wait_for(&mut self, entry: &Entry, wait: Wait) {
        let before: Vec<&Entry> = match wait {
            Wait::Queue | Wait::IfAvailable => self.live().collect(),
            // Other pending ones stand behind it.
            Wait::Overtake => self.live().filter(|it| it.is_held() || it.overtakes).collect(),
            Wait::Steal | Wait::StealAll => Vec::new(),
        };
        let in_the_way = in_the_way(&before, entry);
        let evicted: Vec<ClientNo> = self
            .evictable()
            .into_iter()
            .filter(|&client| in_the_way.iter().any(|other| other.client == client))
            .collect();
        self.evict(&evicted);
    }

    /// A request that came before others may make them wait for a suspended client.
    pub(super) fn evict_those_waited_for(&mut self) {
        let evicted: Vec<ClientNo> = self
            .evictable()
            .into_iter()
            .filter(|&client| self.somebody_waits_for(client))
            .collect();
        self.evict(&evicted);
    }

    /// Removes all entries of the clients in one step, then processes the queue. They stay
    /// suspended.
    pub(super) fn evict(&mut self, clients: &[ClientNo]) {
        for &client in clients {
            // To the embedder, at once.
            self.events.push_back(Event::Evicted { client });
            self.lose(LossCause::Evicted, |lock| lock.client == client);
            self.drop_pending(LossCause::Evicted, |pending| pending.client == client);
        }
        self.process_queue();
    }
}
