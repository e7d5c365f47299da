//! All sessions, by their numbers.

mod peer;
mod requests;
mod secret;
mod session;

use std::collections::HashMap;

use navlocks_wire::ToClient;

use crate::hub::Frame;

pub use peer::Peer;
pub(crate) use peer::Viewing;
pub(crate) use requests::Requests;
pub(crate) use secret::Secret;
pub(crate) use session::{CLIENT_BYTES, Client, Known, Session};

/// Numbers stay below this, because ids of other processes' things have a bit less than 32.
const NUMBERS_END: u32 = 1 << 31;

/// All sessions, and which of them do not read what they are told.
#[derive(Debug)]
pub(crate) struct Sessions {
    living: HashMap<u32, Session>,
    next: u32,
    slow: Vec<u32>,
}

impl Sessions {
    pub(crate) fn new() -> Self {
        Self { living: HashMap::new(), next: 1, slow: Vec::new() }
    }

    pub(crate) fn len(&self) -> usize {
        self.living.len()
    }

    /// Adds a session and gives it a number that no living one has.
    pub(crate) fn insert(&mut self, session: Session) -> u32 {
        while self.living.contains_key(&self.next) {
            self.advance();
        }
        let number = self.next;
        self.advance();
        self.living.insert(number, session);
        number
    }

    fn advance(&mut self) {
        self.next = if self.next + 1 < NUMBERS_END { self.next + 1 } else { 1 };
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

    /// Returns the process of a session, where the service knows it.
    pub(crate) fn pid(&self, number: u32) -> Option<u32> {
        self.get(number).and_then(|session| session.peer.pid)
    }

    /// Says something to a session. One without a connection asks again when it has one.
    #[inline]
    pub(crate) fn say(&mut self, number: u32, message: &ToClient) {
        let outbox = self.living.get(&number).and_then(|session| session.outbox.as_ref());
        if outbox.is_some_and(|outbox| outbox.push(message).is_err()) {
            self.slow.push(number);
        }
    }

    /// Says something that is written already.
    pub(crate) fn say_frame(&mut self, number: u32, frame: Frame) {
        let outbox = self.living.get(&number).and_then(|session| session.outbox.as_ref());
        if outbox.is_some_and(|outbox| outbox.push_frame(frame).is_err()) {
            self.slow.push(number);
        }
    }

    /// A session that does not read what it is told, if there is one.
    #[inline]
    pub(crate) fn take_slow(&mut self) -> Option<u32> {
        self.slow.pop()
    }
}
