//! The events of a partition that a subscriber has yet to take.

use std::collections::VecDeque;
use std::sync::Arc;

use navlocks_core::kit::{About, Address};
use navlocks_core::{LossCause, Name, RequestId};

use crate::News;

/// Something that happened to a request, for all subscribers of its partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// The request: its client, number and id.
    pub address: Address,
    /// The scope, mode and tag of the request.
    pub about: About<Name>,
    /// The name of the request's client in queries.
    pub client: Name,
    /// The event.
    pub news: News,
}

impl Event {
    /// Returns the request that stole the lock, if that is the event.
    pub fn thief(&self) -> Option<RequestId> {
        match self.news {
            News::Aborted(Some(LossCause::Stolen { by }))
            | News::Lost(Some(LossCause::Stolen { by })) => Some(by),
            _ => None,
        }
    }
}

/// The events of one subscriber, up to a capacity: the oldest are dropped.
#[derive(Debug)]
pub(crate) struct Inbox {
    events: VecDeque<Arc<Event>>,
    capacity: usize,
    missed: u64,
}

impl Inbox {
    pub(crate) fn new(capacity: usize) -> Self {
        Self { events: VecDeque::new(), capacity, missed: 0 }
    }

    pub(crate) fn set_capacity(&mut self, capacity: usize) {
        self.capacity = capacity;
    }

    /// Adds an event. Returns true if it is the first one since the last were taken.
    pub(crate) fn push(&mut self, event: Arc<Event>) -> bool {
        let first = self.events.is_empty();
        while self.events.len() >= self.capacity.max(1) {
            self.events.pop_front();
            self.missed += 1;
        }
        self.events.push_back(event);
        first
    }

    /// Takes all events, and how many are missing before them.
    pub(crate) fn take(&mut self) -> (u64, VecDeque<Arc<Event>>) {
        (std::mem::take(&mut self.missed), std::mem::take(&mut self.events))
    }
}
