//! Subscribers: clients that receive every event of a partition.

use std::collections::HashMap;

use navlocks_core::RequestId;
use navlocks_wire::{About, ClientKey, Event, ToClient, What};

use crate::hub::sessions::Sessions;

/// The subscribers of a partition. While there is none, events cost nothing.
#[derive(Debug, Default)]
pub(crate) struct Subscribers {
    subscribers: Vec<ClientKey>,
    /// What to say of each live request; empty without a subscriber.
    requests: HashMap<RequestId, About>,
}

impl Subscribers {
    /// Adds a subscriber. The first one makes all live requests be described.
    pub(crate) fn add(
        &mut self,
        subscriber: ClientKey,
        living: impl FnOnce() -> Vec<(RequestId, About)>,
    ) {
        if self.subscribers.is_empty() {
            self.requests.extend(living());
        }
        if !self.subscribers.contains(&subscriber) {
            self.subscribers.push(subscriber);
        }
    }

    pub(crate) fn remove(&mut self, subscriber: ClientKey) {
        self.subscribers.retain(|&other| other != subscriber);
        if self.subscribers.is_empty() {
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
        if !self.subscribers.is_empty() {
            let about = about(sessions);
            self.requests.insert(id, about);
            self.tell(id, sessions, || What::Requested);
        }
    }

    /// Sends an event to all subscribers.
    #[inline]
    pub(crate) fn tell(&self, id: RequestId, sessions: &mut Sessions, what: impl FnOnce() -> What) {
        if self.subscribers.is_empty() {
            return;
        }
        let Some(about) = self.requests.get(&id) else { return };
        let what = what();
        for subscriber in &self.subscribers {
            let (about, what) = (about.clone(), what.clone());
            let event = Event { client: subscriber.client, about, what };
            sessions.say(subscriber.session, &ToClient::Event(event));
        }
    }

    /// Sends all subscribers the last that happens to a request.
    #[inline]
    pub(crate) fn end(
        &mut self,
        id: RequestId,
        sessions: &mut Sessions,
        what: impl FnOnce() -> What,
    ) {
        if !self.subscribers.is_empty() {
            self.tell(id, sessions, what);
            self.requests.remove(&id);
        }
    }
}
