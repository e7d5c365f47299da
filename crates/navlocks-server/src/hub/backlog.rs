//! The backlog: the rest of large inputs, done in parts so that other clients have their turns.

use std::rc::Rc;
use std::time::Instant;
use std::vec;

use navlocks_wire::{Cause, Lost, ToClient};

use super::Hub;
use super::partitions::PartitionIndex;
use super::sessions::{Client, Known};
use super::shares::Share;

/// The most messages that one turn sends, and the most requests that it ends. The rest follows
/// after other clients had their turns.
pub(crate) const WORK_PER_TURN: usize = 1_000;

/// Work that an input left.
#[derive(Debug)]
pub(crate) enum Unfinished {
    /// A partition has effects that are not sent yet.
    Effects(PartitionIndex),
    /// A session gives up clients or requests.
    Ending(Ending),
}

/// The clients or requests that a session gives up. Its tenant is behind meanwhile.
#[derive(Debug)]
pub(crate) struct Ending {
    session: u32,
    share: Rc<Share>,
    clients: vec::IntoIter<Client>,
    requests: vec::IntoIter<(u64, Resumed)>,
}

/// A resumed session's request that its client has to be told of, or has given up.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Resumed {
    Lost(Cause),
    GivenUp,
}

impl Ending {
    pub(crate) fn of_clients(session: u32, share: Rc<Share>, clients: Vec<Client>) -> Self {
        Self { session, share, clients: clients.into_iter(), requests: Vec::new().into_iter() }
    }

    pub(crate) fn of_requests(
        session: u32,
        share: Rc<Share>,
        requests: Vec<(u64, Resumed)>,
    ) -> Self {
        Self { session, share, clients: Vec::new().into_iter(), requests: requests.into_iter() }
    }

    /// Returns the clients that its session no longer has, and the session.
    pub(crate) fn clients(&self) -> (u32, &[Client]) {
        (self.session, self.clients.as_slice())
    }

    fn is_over(&self) -> bool {
        self.clients.as_slice().is_empty() && self.requests.as_slice().is_empty()
    }
}

impl Hub {
    /// Ends these clients and requests: at once as many as one turn takes, and the others in turns.
    pub(super) fn end_in_turns(&mut self, ending: Ending, now: Instant) {
        if ending.is_over() {
            return;
        }
        let is_behind = ending.share.is_behind();
        ending.share.fall_behind();
        if is_behind {
            self.unfinished.push_back(Unfinished::Ending(ending));
        } else {
            self.end_some(ending, now);
        }
    }

    /// Does one turn of the work that an earlier input left: one that grants a lock to thousands of
    /// waiters, for example. Returns true if more is left; no other input should come before that.
    pub fn go_on(&mut self, now: Instant) -> bool {
        match self.unfinished.pop_front() {
            Some(Unfinished::Effects(index)) => {
                let (partitions, mut around) = self.around(now);
                partitions[index].go_on(&mut around);
                self.settle(now);
            }
            Some(Unfinished::Ending(ending)) => {
                self.end_some(ending, now);
                self.settle(now);
            }
            None => {}
        }
        !self.unfinished.is_empty()
    }

    /// Ends as many of these clients and requests as one turn takes.
    fn end_some(&mut self, mut ending: Ending, now: Instant) {
        let mut work = 0;
        while work < WORK_PER_TURN
            && let Some(done) = self.end_next(&mut ending, now)
        {
            work += done;
        }
        if ending.is_over() {
            ending.share.catch_up();
        } else {
            self.unfinished.push_back(Unfinished::Ending(ending));
        }
    }

    /// Ends the next client or request. Returns how much work that was; none if nothing is left, or
    /// if its partition must first send the effects of an earlier one.
    fn end_next(&mut self, ending: &mut Ending, now: Instant) -> Option<usize> {
        let number = ending.session;
        if let Some(client) = ending.clients.as_slice().first() {
            let messages = self.messages_unless_behind(client.partition)?;
            let client = ending.clients.next()?;
            let ended = self.end_client(&client, now);
            if let Some(session) = self.sessions.get_mut(number) {
                for request in &ended {
                    session.requests.remove(*request);
                }
            }
            let sent = self.partitions[client.partition].messages.saturating_sub(messages);
            return Some(1 + ended.len() + sent);
        }
        let &(request, resumed) = ending.requests.as_slice().first()?;
        let known = self.sessions.get(number).and_then(|session| session.requests.get(request));
        let mut work = 1;
        match (resumed, known) {
            (Resumed::Lost(cause), Some(Known::Lost { .. })) => {
                self.sessions.say(number, &ToClient::Lost(Lost { id: request, cause }));
            }
            (Resumed::Lost(_), _) => {}
            (Resumed::GivenUp, Some(Known::Live { partition, .. })) => {
                let messages = self.messages_unless_behind(partition)?;
                self.give_up(number, request, now);
                work += self.partitions[partition].messages - messages;
            }
            (Resumed::GivenUp, _) => self.give_up(number, request, now),
        }
        ending.requests.next();
        Some(work)
    }

    /// Returns how many messages a partition has sent, unless more wait to be sent.
    fn messages_unless_behind(&self, index: PartitionIndex) -> Option<usize> {
        let partition = &self.partitions[index];
        (!partition.is_behind()).then_some(partition.messages)
    }
}
