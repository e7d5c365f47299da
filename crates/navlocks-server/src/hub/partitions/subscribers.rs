//! Subscribers: clients that receive every event of a partition.

use navlocks_wire::{About, ClientKey, Event, ToClient, What};

use crate::hub::sessions::Sessions;

/// The subscribers of a partition. While there is none, events cost nothing.
#[derive(Debug, Default)]
pub(crate) struct Subscribers {
    subscribers: Vec<ClientKey>,
}

impl Subscribers {
    pub(crate) fn is_empty(&self) -> bool {
        self.subscribers.is_empty()
    }

    pub(crate) fn add(&mut self, subscriber: ClientKey) {
        if !self.subscribers.contains(&subscriber) {
            self.subscribers.push(subscriber);
        }
    }

    pub(crate) fn remove(&mut self, subscriber: ClientKey) {
        self.subscribers.retain(|&other| other != subscriber);
    }

    /// Sends an event to all subscribers.
    pub(crate) fn send(&self, about: &About, what: &What, sessions: &mut Sessions) {
        for subscriber in &self.subscribers {
            let (about, what) = (about.clone(), what.clone());
            let event = Event { client: subscriber.client, about, what };
            sessions.say(subscriber.session, &ToClient::Event(event));
        }
    }
}
