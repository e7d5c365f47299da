//! Changes of the connection, for its watches and for event streams.

use std::task::Waker;

use super::session::{LinkState, State};
use crate::connection::Connection;

/// The last published state of the link.
#[derive(Debug)]
pub(super) struct Changes {
    link: LinkState,
    count: u64,
    watchers: Vec<Waker>,
}

impl Changes {
    /// Begins before the first connection, which is no change.
    pub(super) fn new() -> Self {
        Self { link: LinkState::Down, count: 0, watchers: Vec::new() }
    }
}

impl State {
    /// Publishes a change of the link. Called at the end of every input.
    pub(super) fn note_link(&mut self) {
        if self.link == self.changes.link {
            return;
        }
        let before = std::mem::replace(&mut self.changes.link, self.link.clone());
        self.changes.count += 1;
        let Self { clients, changes, wakes, .. } = self;
        wakes.add_all(changes.watchers.drain(..));
        if before == LinkState::Up && changes.link == LinkState::Down {
            clients.values_mut().for_each(|client| client.inboxes.lose_connection(wakes));
        }
    }

    /// Returns the state of the connection, and how often it has changed.
    pub(super) fn connection(&self) -> (Connection, u64) {
        let now = match &self.link {
            LinkState::Up => Connection::Up,
            LinkState::Down => Connection::Down,
            LinkState::Hopeless => Connection::Unreachable,
            LinkState::Refused(refusal) => Connection::Refused(refusal.clone()),
            LinkState::Leaving | LinkState::Gone => Connection::Closed,
        };
        (now, self.changes.count)
    }

    /// Wakes `waker` when the connection has changed more often than `changes`.
    pub(super) fn watch_connection(&mut self, changes: u64, waker: Waker) {
        let known = |known: &Waker| known.will_wake(&waker);
        if self.changes.count > changes || self.changes.watchers.iter().any(known) {
            self.wakes.discard(waker);
        } else {
            self.changes.watchers.push(waker);
        }
    }
}
