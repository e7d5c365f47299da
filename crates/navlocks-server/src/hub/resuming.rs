//! How a session goes on over a new connection.

use std::collections::HashSet;
use std::rc::Rc;
use std::time::Instant;

use navlocks_core::State;
use navlocks_wire::{self as wire, Fault, FaultCode, Lost, Open, Resume, ToClient};

use crate::hub::Hub;
use crate::hub::Peer;
use crate::hub::backlog::{Ending, Resumed};
use crate::hub::sessions::{Client, Known};

impl Hub {
    /// The session that a peer wants to go on with, if that is its own.
    pub(crate) fn find_resumed(
        &mut self,
        peer: &Rc<Peer>,
        resume: &Resume,
        now: Instant,
    ) -> Result<u32, Fault> {
        let number = resume.session;
        if resume.epoch > self.store.epoch() && self.slot.is_some() {
            self.common.epochs.raise(resume.epoch);
            return Err(Fault::moved(None));
        }
        if resume.epoch > self.store.epoch() {
            tracing::error!(
                session = number,
                "a client knows a later service: was old state put back?"
            );
            return Err(unknown_session());
        }
        if self.sessions.get(number).is_some_and(|session| session.claim.is_some()) {
            // Its claim got lost with a connection, and begins anew.
            self.abandon_claim(number, now);
        }
        if self.recovery.get(number).is_some() {
            return self.begin_claim(peer, resume, now);
        }
        let session = self.sessions.get(number).ok_or_else(unknown_session)?;
        if !session.secret.is(&resume.secret) || !session.peer.is_same_party(peer) {
            return Err(unknown_session());
        }
        // The timer may be late, but what a client can rely on is not.
        if session.lease.is_some_and(|lease| now.saturating_duration_since(session.heard) > lease) {
            self.lapse(number, now);
            return Err(unknown_session());
        }
        Ok(number)
    }

    /// Ends the clients and requests that a session does not have any more, opens the clients that
    /// got lost with a connection, and sends what the session lost.
    pub(crate) fn resume(
        &mut self,
        number: u32,
        resume: &Resume,
        now: Instant,
    ) -> Result<(), Fault> {
        self.metrics.resumed_sessions.inc();
        let Some(session) = self.sessions.get(number) else { return Ok(()) };
        let share = session.share.clone();
        let closed = self.remove_all_but(number, &resume.clients)?;
        self.end_in_turns(Ending::of_clients(number, share.clone(), closed), now);
        self.open_again(number, &resume.clients)?;
        let requests = self.resume_requests(number, &resume.alive);
        self.end_in_turns(Ending::of_requests(number, share, requests), now);
        Ok(())
    }

    /// Removes the clients that a session does not have any more. Returns them.
    fn remove_all_but(&mut self, number: u32, wanted: &[Open]) -> Result<Vec<Client>, Fault> {
        let Some(session) = self.sessions.get(number) else { return Ok(Vec::new()) };
        let numbers: HashSet<u64> = wanted.iter().map(|open| open.client).collect();
        let over: Vec<u64> =
            session.clients.keys().copied().filter(|client| !numbers.contains(client)).collect();
        let mut removed = Vec::new();
        for client in over {
            removed.extend(self.remove_client(number, client)?.map(|(_, client)| client));
        }
        Ok(removed)
    }

    /// Opens the clients that got lost with a connection.
    fn open_again(&mut self, number: u32, wanted: &[Open]) -> Result<(), Fault> {
        for Open { client, partition } in wanted {
            let Some(session) = self.sessions.get_mut(number) else { return Ok(()) };
            if !session.clients.contains_key(client) {
                // One that could not be opened may be tried again.
                if session.unopened.remove(client).is_none() {
                    session.take_client_number(*client)?;
                }
                self.open_or_refuse(number, *client, partition)?;
            }
        }
        Ok(())
    }

    /// Returns the requests that a session lost, then those that it does not have any more.
    fn resume_requests(&mut self, number: u32, alive: &[u64]) -> Vec<(u64, Resumed)> {
        let wanted: HashSet<u64> = alive.iter().copied().collect();
        let Some(session) = self.sessions.get_mut(number) else { return Vec::new() };
        session.expect_again(alive);
        let (mut lost, mut given_up) = (Vec::new(), Vec::new());
        for (request, known) in session.requests.iter() {
            match known {
                _ if !wanted.contains(&request) => given_up.push((request, Resumed::GivenUp)),
                Known::Lost { cause, .. } => lost.push((request, Resumed::Lost(cause))),
                Known::Live { .. } | Known::Early { .. } => {}
            }
        }
        lost.extend(given_up);
        lost
    }

    /// A request is sent again after a resume: what became of it.
    pub(crate) fn answer_again(&mut self, number: u32, request: u64, known: Known) {
        match known {
            Known::Live { partition, id } => {
                if let Some(State::Held(token)) = self.partitions[partition].manager().state(id) {
                    let granted = wire::Granted { id: request, token: token.get() };
                    self.sessions.say(number, &ToClient::Granted(granted));
                }
            }
            Known::Early { .. } => {}
            Known::Lost { cause, .. } => {
                self.sessions.say(number, &ToClient::Lost(Lost { id: request, cause }));
            }
        }
    }
}

pub(crate) fn unknown_session() -> Fault {
    let text = "the session is over, or was never here: begin a new one";
    Fault::new(FaultCode::UnknownSession, text)
}
