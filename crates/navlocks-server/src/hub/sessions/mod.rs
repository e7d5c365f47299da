//! All sessions, by their numbers.

mod claim;
mod peer;
mod requests;
mod secret;
mod session;

use std::collections::HashMap;

use navlocks_wire::ToClient;

use crate::hub::Frame;
use crate::store::RequestRecord;

pub(crate) use claim::Claim;
pub use peer::Peer;
pub(crate) use requests::Requests;
pub(crate) use secret::{Owner, Secret};
pub(crate) use session::{Absent, CLIENT_BYTES, Client, Known, Session};

/// Numbers stay below this, because ids of other processes' things have a bit less than 32.
const NUMBERS_END: u32 = 1 << 31;

/// All sessions, and which of them do not read what they are told.
#[derive(Debug)]
pub(crate) struct Sessions {
    living: HashMap<u32, Session>,
    next: u32,
    /// The smallest number, the bound of all, and the distance between two.
    first: u32,
    end: u32,
    step: u32,
    slow: Vec<u32>,
}

impl Sessions {
    /// No sessions. Numbers begin after the largest one that an earlier service gave.
    pub(crate) fn after(largest: u32) -> Self {
        let next = ((largest + 1) % NUMBERS_END).max(1);
        let (living, slow) = (HashMap::new(), Vec::new());
        Self { living, next, first: 1, end: NUMBERS_END, step: 1, slow }
    }

    /// Gives only numbers that no other slot of the cluster gives.
    pub(crate) fn number_by(&mut self, slot: u32, slots: u32, largest: u32) {
        (self.first, self.step) = (slots + slot, slots);
        self.next = (largest / slots + 1) * slots + slot;
        if self.next >= NUMBERS_END {
            self.next = self.first;
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.living.len()
    }

    /// Returns how many sessions have a connection.
    pub(crate) fn connected(&self) -> usize {
        self.living.values().filter(|session| session.outbox.is_some()).count()
    }

    /// Returns how many sessions have neither a connection nor anything left to claim.
    pub(crate) fn detached(&self) -> usize {
        let is_detached = |it: &&Session| it.outbox.is_none() && it.absent.is_none();
        self.living.values().filter(is_detached).count()
    }

    /// Adds a session and gives it a number that no other one has.
    pub(crate) fn insert(&mut self, session: Session) -> u32 {
        while self.living.contains_key(&self.next) {
            self.advance();
        }
        let number = self.next;
        self.advance();
        self.living.insert(number, session);
        number
    }

    /// Adds a session of an earlier service, under the number that it has.
    pub(crate) fn insert_found(&mut self, number: u32, session: Session) {
        self.living.insert(number, session);
    }

    fn advance(&mut self) {
        let next = self.next + self.step;
        self.next = if next < self.end { next } else { self.first };
    }

    #[inline]
    pub(crate) fn get(&self, number: u32) -> Option<&Session> {
        self.living.get(&number)
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, number: u32) -> Option<&mut Session> {
        self.living.get_mut(&number)
    }

    pub(crate) fn remove(&mut self, number: u32) -> Option<Session> {
        self.living.remove(&number)
    }

    pub(crate) fn numbers(&self) -> Vec<u32> {
        self.living.keys().copied().collect()
    }

    /// Returns the sessions of an earlier service that no client has claimed, with their numbers.
    pub(crate) fn absent(&self) -> impl Iterator<Item = (u32, &Session)> {
        let all = self.living.iter().filter(|(_, session)| session.absent.is_some());
        all.map(|(&number, session)| (number, session))
    }

    /// Returns the requests of all sessions that are absent.
    pub(crate) fn absent_requests(&self) -> impl Iterator<Item = &RequestRecord> {
        let absent = self.living.values().filter_map(|session| session.absent.as_ref());
        absent.flat_map(|it| it.requests.values())
    }

    /// Returns the sessions for people: those with a client.
    pub(crate) fn present(&self) -> impl Iterator<Item = (u32, &Session)> {
        let is_present = |it: &Session| it.outbox.is_some() || it.absent.is_none();
        let all = self.living.iter().filter(move |(_, session)| is_present(session));
        all.map(|(&number, session)| (number, session))
    }

    /// Forgets which clients listen at their paths of presence: the paths are gone.
    pub(crate) fn forget_presence(&mut self) {
        self.living.values_mut().for_each(|session| session.present = false);
    }

    /// Returns the process of a session, where the service knows it.
    pub(crate) fn pid(&self, number: u32) -> Option<u32> {
        self.get(number).and_then(|session| session.peer.pid())
    }

    /// Returns true if the process of a session is known to be stopped.
    pub(crate) fn is_stopped(&self, number: u32) -> bool {
        let process = self.get(number).and_then(|session| session.peer.process);
        process.is_some_and(|process| process.is_stopped())
    }

    /// Says something to a session. One without a connection asks again when it has one.
    #[inline]
    pub(crate) fn say(&mut self, number: u32, message: &ToClient) {
        let outbox = self.living.get(&number).and_then(|session| session.outbox.as_ref());
        if outbox.is_some_and(|outbox| outbox.push(message).is_err()) {
            self.slow.push(number);
        }
    }

    /// Sends a message that is written already. Returns false if the session has become slow by
    /// it.
    pub(crate) fn say_frame(&mut self, number: u32, frame: Frame) -> bool {
        let outbox = self.living.get(&number).and_then(|session| session.outbox.as_ref());
        let is_slow = outbox.is_some_and(|outbox| outbox.push_frame(frame).is_err());
        if is_slow {
            self.slow.push(number);
        }
        !is_slow
    }

    /// Takes a session that does not read what it is sent, if there is one. Its end is an input, so
    /// that of a tenant that is behind has to wait.
    #[inline]
    pub(crate) fn take_slow(&mut self) -> Option<u32> {
        if self.slow.is_empty() {
            return None;
        }
        let may_end = |number: &u32| self.get(*number).is_none_or(|it| !it.share.is_behind());
        let place = self.slow.iter().rposition(may_end)?;
        Some(self.slow.swap_remove(place))
    }
}
