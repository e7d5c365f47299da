//! The events of a lock space that a client has yet to take.

use std::collections::VecDeque;
use std::sync::Arc;

use navlocks_core::kit::{About, Notice};
use navlocks_core::{Cause, Name, RequestId};

/// Something that happened to a request, for all subscribers.
pub(crate) struct Event {
    /// See `EVENTS` in `js/native.js`.
    pub(crate) kind: u8,
    pub(crate) request: RequestId,
    pub(crate) about: About<Name>,
    /// The name of the request's client in queries.
    pub(crate) client: Name,
    /// The token of a grant, or the cause of a loss.
    pub(crate) value: f64,
    /// The request that stole the lock.
    pub(crate) thief: Option<RequestId>,
}

// The kinds of events and of mail.
const REQUESTED: u8 = 0;
pub(crate) const GRANTED: u8 = 1;
pub(crate) const UNAVAILABLE: u8 = 2;
const RELEASED: u8 = 3;
const WITHDRAWN: u8 = 4;
pub(crate) const ABORTED: u8 = 5;
pub(crate) const LOST: u8 = 6;
const DOWNGRADED: u8 = 7;
/// For mail alone.
pub(crate) const CONTENDED: u8 = 8;
/// There are events to take; for mail alone, and of no request.
pub(crate) const EVENTS: u8 = 9;

impl Event {
    /// Makes an event of a notice. Returns none for a notice that is not for subscribers.
    pub(crate) fn new(
        request: RequestId,
        about: &About<Name>,
        client: Name,
        notice: &Notice<'_, u64>,
    ) -> Option<Self> {
        let (kind, value, cause) = match *notice {
            Notice::Requested => (REQUESTED, 0.0, None),
            Notice::Granted { token, .. } => (GRANTED, token.get() as f64, None),
            Notice::Unavailable => (UNAVAILABLE, 0.0, None),
            Notice::Released { .. } => (RELEASED, 0.0, None),
            Notice::Withdrawn => (WITHDRAWN, 0.0, None),
            Notice::Aborted(cause) => (ABORTED, number(cause), Some(cause)),
            Notice::Lost { cause, .. } => (LOST, number(cause), Some(cause)),
            Notice::ClientEnded { held_since: Some(_) } => (LOST, CLIENT_ENDED, None),
            Notice::ClientEnded { held_since: None } => (ABORTED, CLIENT_ENDED, None),
            Notice::Downgraded(_) => (DOWNGRADED, 0.0, None),
            Notice::Contended | Notice::Deadlock(_) => return None,
        };
        let thief = match cause {
            Some(Cause::Stolen { by }) => Some(by),
            _ => None,
        };
        Some(Self { kind, request, about: about.clone(), client, value, thief })
    }
}

/// Returns the number of a cause in JavaScript, see `CAUSES` in `js/native.js`.
pub(crate) fn number(cause: Cause) -> f64 {
    match cause {
        Cause::Stolen { .. } => 0.0,
        Cause::ForceReleased => 1.0,
        Cause::Evicted => 2.0,
        Cause::Suspended => 3.0,
    }
}

const CLIENT_ENDED: f64 = 4.0;

/// The events that a subscriber has yet to take, up to a capacity: the oldest are dropped.
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
