//! Clients that hear of everything that happens in a partition.

use std::collections::HashMap;

use navlocks::wire::{About, ClientKey, Event, ToClient, What};
use navlocks_core::RequestId;

use super::sessions::Sessions;

/// The listeners of a partition. While there is none, events cost nothing.
#[derive(Debug, Default)]
pub(crate) struct Listeners {
    listeners: Vec<ClientKey>,
    /// What to say of each live request; empty while nobody listens.
    requests: HashMap<RequestId, About>,
}

impl Listeners {
    /// Adds a listener. To the first one, all that live already are described.
    pub(crate) fn add(
        &mut self,
        listener: ClientKey,
        living: impl FnOnce() -> Vec<(RequestId, About)>,
    ) {
        if self.listeners.is_empty() {
            self.requests.extend(living());
        }
        if !self.listeners.contains(&listener) {
            self.listeners.push(listener);
        }
    }

    pub(crate) fn remove(&mut self, listener: ClientKey) {
        self.listeners.retain(|&other| other != listener);
        if self.listeners.is_empty() {
            self.requests = HashMap::new();
        }
    }

    /// A request was made.
    #[inline]
    pub(crate) fn requested(
        &mut self,
        id: RequestId,
        sessions: &mut Sessions,
        about: impl FnOnce(&Sessions) -> About,
    ) {
        if !self.listeners.is_empty() {
            let about = about(sessions);
            self.requests.insert(id, about);
            self.tell(id, sessions, || What::Requested);
        }
    }

    /// Tells all listeners.
    #[inline]
    pub(crate) fn tell(&self, id: RequestId, sessions: &mut Sessions, what: impl FnOnce() -> What) {
        if self.listeners.is_empty() {
            return;
        }
        let Some(about) = self.requests.get(&id) else { return };
        let what = what();
        for listener in &self.listeners {
            let (about, what) = (about.clone(), what.clone());
            let event = Event { client: listener.client, about, what };
            sessions.say(listener.session, &ToClient::Event(event));
        }
    }

    /// Tells all listeners the last that happens to a request.
    #[inline]
    pub(crate) fn end(
        &mut self,
        id: RequestId,
        sessions: &mut Sessions,
        what: impl FnOnce() -> What,
    ) {
        if !self.listeners.is_empty() {
            self.tell(id, sessions, what);
            self.requests.remove(&id);
        }
    }
}
