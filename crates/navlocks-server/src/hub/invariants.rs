//! Invariants that hold between two messages.

use super::Hub;
use super::backlog::Unfinished;
use super::partitions::Partition;
use super::sessions::{Client, Known};
use crate::store::SlotLog;

/// Counts of all that a hub keeps for its clients: zeros, once all of them have left.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "counts of what the names say")]
pub struct Contents {
    pub sessions: usize,
    pub partitions: usize,
    pub requests: usize,
    pub unclaimed_sessions: usize,
    pub absent_requests: usize,
    pub maximum_holds: usize,
    pub questions: usize,
    pub unfinished: usize,
    pub bytes: usize,
    pub logged: usize,
}

impl Hub {
    /// Counts all that it keeps. The cost is all there is.
    pub fn contents(&self) -> Contents {
        let shares = self.common.shares.borrow();
        let bytes = shares.all().map(|(.., share)| share.bytes.get() + share.claimed.get());
        Contents {
            sessions: self.sessions.len(),
            partitions: self.partitions.len(),
            requests: self.partitions.iter().map(Partition::requests).sum(),
            unclaimed_sessions: self.found.unclaimed(),
            absent_requests: usize::from(!self.room.is_empty()),
            maximum_holds: self.holds.len(),
            questions: self.questions.len(),
            unfinished: self.unfinished.len(),
            bytes: bytes.sum(),
            logged: self.registry.log().map_or(0, SlotLog::len),
        }
    }

    /// Checks that the books of sessions and those of the engines agree. For tests and fuzzing; the
    /// cost is all there is.
    ///
    /// # Panics
    ///
    /// They do not agree.
    pub fn check_invariants(&self) {
        let mut clients = 0;
        let mut requests = 0;
        for number in self.sessions.numbers() {
            let Some(session) = self.sessions.get(number) else { continue };
            clients += session.clients.len();
            assert!(session.requests.len() <= self.limits.requests_per_session_max);
            for (request, known) in session.requests.iter() {
                match known {
                    Known::Live { partition, id } => {
                        let manager = self.partitions[partition].manager();
                        assert!(manager.state(id).is_some(), "{number}.{request} is over");
                        requests += 1;
                    }
                    Known::Guest { .. } => requests += 1,
                    Known::Lost { client, .. } => {
                        let owner = session.clients.get(&client);
                        assert!(owner.is_some_and(|owner| owner.lost.contains_key(&request)));
                    }
                }
            }
            let lost: usize = session.clients.values().map(|client| client.lost.len()).sum();
            let known = |(_, known): &(u64, Known)| matches!(known, Known::Lost { .. });
            assert_eq!(lost, session.requests.iter().filter(known).count());
            for client in session.clients.values() {
                assert!(self.partitions[client.partition].manager().knows(client.id));
            }
        }
        for ending in self.unfinished.iter() {
            let Unfinished::Ending(ending) = ending else { continue };
            let (session, ended) = ending.clients();
            clients += ended.len();
            if self.sessions.get(session).is_none() {
                requests += ended.iter().map(|client| self.requests_of(client)).sum::<usize>();
            }
        }
        let managers = || self.partitions.iter().map(Partition::manager);
        assert_eq!(clients, managers().map(|manager| manager.client_count()).sum::<usize>());
        assert_eq!(requests, self.partitions.iter().map(Partition::requests).sum::<usize>());
        let used =
            self.partitions.iter().filter(|partition| partition.manager().client_count() > 0);
        assert_eq!(self.partitions.len(), used.count());
    }

    /// Returns how many requests a client has, those in the room included.
    fn requests_of(&self, client: &Client) -> usize {
        let partition = &self.partitions[client.partition];
        let guests = self.room.guests_of(client.partition, client.id).len();
        partition.manager().requests_of(client.id).count() + guests
    }
}
