//! Subscribers: clients that receive every event of a partition.

use std::collections::BTreeSet;
use std::rc::Rc;

use navlocks_wire::{self as wire, About, ClientKey, What};

use crate::hub::frame::{Frame, Text};
use crate::hub::sessions::Sessions;
use crate::hub::shares::Share;

/// The subscribers of a partition. While there is none, events cost nothing.
#[derive(Debug, Default)]
pub(crate) struct Subscribers {
    subscribers: BTreeSet<ClientKey>,
}

impl Subscribers {
    pub(crate) fn is_empty(&self) -> bool {
        self.subscribers.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.subscribers.len()
    }

    pub(crate) fn contains(&self, client: ClientKey) -> bool {
        self.subscribers.contains(&client)
    }

    pub(crate) fn add(&mut self, subscriber: ClientKey) {
        self.subscribers.insert(subscriber);
    }

    pub(crate) fn remove(&mut self, subscriber: ClientKey) {
        self.subscribers.remove(&subscriber);
    }

    /// Sends an event to all subscribers. It is written once; only the number of the client
    /// differs. A slow reader gets no further one.
    pub(crate) fn send(
        &mut self,
        about: About,
        what: What,
        share: &Rc<Share>,
        sessions: &mut Sessions,
    ) {
        let event = wire::EventText::new(about, what);
        let text = Text::new(event.text, share.clone());
        self.subscribers.retain(|subscriber| {
            let head = wire::EventText::head(subscriber.client);
            let frame = Frame::shared(head, &text, event.rest);
            sessions.say_frame(subscriber.session, frame)
        });
    }
}
