//! The state of the model: its live entries, and questions about them.

use super::super::waits::Live;
use super::super::words::{Blockers, ClientNo, Deadlock, Info, RequestNo, Snapshot, State};
use super::{Entry, Presence, Scopes};

/// The questions.
impl Scopes {
    pub(super) fn live(&self) -> impl Iterator<Item = &Entry> {
        self.held.iter().chain(&self.queue)
    }

    /// Returns all live entries, in order; evicts no client.
    pub fn snapshot(&self) -> Snapshot {
        let infos = |entries: &[Entry]| {
            entries
                .iter()
                .map(|entry| Info {
                    request: entry.request,
                    client: entry.client,
                    scope: entry.scope.clone(),
                    mode: entry.mode,
                    token: entry.token,
                })
                .collect()
        };
        Snapshot { held: infos(&self.held), pending: infos(&self.queue) }
    }

    /// Returns the state of the request, if it is live.
    pub fn state(&self, request: RequestNo) -> Option<State> {
        let entry = self.live().find(|entry| entry.request == request)?;
        Some(entry.token.map_or(State::Pending, |token| State::Held { token }))
    }

    /// Returns the blockers of the request.
    pub fn blockers(&self, request: RequestNo) -> Blockers {
        self.waits().blockers(request)
    }

    pub(super) fn waits(&self) -> Live<'_> {
        Live { held: &self.held, queue: &self.queue, outers: &self.outers }
    }

    /// Returns each deadlock once, in the order of their first requests.
    pub fn deadlocks(&self) -> Vec<Deadlock> {
        self.waits().deadlocks()
    }

    /// Returns the same for requests of which none was made within another one.
    pub fn cycles_of_clients(&self) -> Vec<Deadlock> {
        self.waits().cycles_of_clients()
    }

    /// Returns each cycle that is possible and not certain once, in the order of their first
    /// requests.
    pub fn possible_deadlocks(&self) -> Vec<Deadlock> {
        self.waits().possible_deadlocks()
    }

    /// Returns how many requests were ever made; their numbers are below this.
    pub fn requests_made(&self) -> usize {
        self.requests_made
    }

    /// Returns the number of clients, suspended ones included.
    pub fn client_count(&self) -> usize {
        self.clients.len()
    }

    /// Returns true if the client joined and was not terminated.
    pub fn has_client(&self, client: ClientNo) -> bool {
        self.clients.contains_key(&client)
    }

    /// Returns true if the client is known and suspended.
    pub fn is_suspended(&self, client: ClientNo) -> bool {
        matches!(self.clients.get(&client), Some(Presence::Suspended { .. }))
    }

    /// Returns how many names have a live entry.
    pub fn name_count(&self) -> usize {
        self.live().flat_map(|entry| &entry.scope).collect::<std::collections::BTreeSet<_>>().len()
    }
}
