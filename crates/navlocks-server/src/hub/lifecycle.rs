//! How a session begins and ends.

use std::path::PathBuf;
use std::rc::Rc;
use std::time::{Duration, Instant};

use navlocks_wire::{Fault, FaultCode, Hello, RequestKey, ToClient, Welcome};

use super::backlog::Ending;
use super::claim::unknown_session;
use super::sessions::{Known, Owner, Secret, Session};
use super::{Hub, Metrics, Outbox, Peer};
use crate::config::Limits;
use crate::store::SessionRecord;

impl Hub {
    /// Begins a session, or goes on with one. Returns the numbers of the session and of the
    /// connection.
    pub fn hello(
        &mut self,
        peer: &Rc<Peer>,
        hello: &Hello,
        outbox: &Outbox,
        now: Instant,
    ) -> Result<(u32, u64), Fault> {
        if self.is_retired() {
            return Err(Fault::moved(None));
        }
        if !self.open {
            return Err(shutting_down());
        }
        let connection = self.next_connection;
        self.next_connection += 1;
        let number = match &hello.resume {
            Some(resume) => self.find_resumed(peer, resume, now)?,
            None => self.begin(peer, hello, now)?,
        };
        let session = self.sessions.get_mut(number).ok_or_else(unknown_session)?;
        if let Some(log) = self.registry.log() {
            outbox.pass_through(&log.gate, session.begun);
        }
        session.outbox = Some(outbox.clone());
        session.connection = connection;
        session.heard = now;
        // It may have shown another token of its tenant.
        session.peer = peer.clone();
        session.note_process(hello.process.as_deref());
        let survives = session.lease.is_some() || self.registry.is_durable();
        let shown = hello.resume.as_ref().map(|resume| resume.secret.clone());
        let secret = shown.or_else(|| session.owner.tell()).filter(|_| survives);
        let welcome = Welcome {
            service: concat!("navlocks ", env!("CARGO_PKG_VERSION")).into(),
            session: number,
            secret: secret.unwrap_or_default(),
            epoch: self.store.epoch(),
            timed_out: true,
            cluster: self.slot.is_some(),
            presence: self.registry.presence(number).filter(|_| peer.local).map(presence_text),
            lease_ms: session.lease.map(|lease| lease.as_millis() as u64),
            resumed: hello.resume.is_some(),
            origin: peer.origin.to_string(),
            limits: self.limits.of_a_session(),
        };
        self.sessions.say(number, &ToClient::Welcome(welcome));
        self.settle(now);
        Ok((number, connection))
    }

    fn begin(&mut self, peer: &Rc<Peer>, hello: &Hello, now: Instant) -> Result<u32, Fault> {
        let max = self.limits.partition_name_bytes_max;
        if hello.partition.len() > max {
            // Not a limit that a later hello would keep.
            let text = format!("the name of a partition has at most {max} bytes");
            return Err(Fault::new(FaultCode::BadMessage, text));
        }
        let share = self.room_for_session(peer)?;
        let secret = match &hello.secret {
            Some(chosen) => self.chosen_secret(peer, chosen, now)?,
            None => Secret::new().ok_or_else(no_randomness)?,
        };
        // In a cluster the next owner may be on another machine, where no process can be asked.
        let has_lease = !peer.local || self.slot.is_some();
        let lease = has_lease.then(|| self.limits.lease(hello.lease_ms));
        if let Some(lease) = lease
            && let Err(error) = self.store.lease_given(lease, &self.limits)
        {
            return Err(cannot_remember(&error));
        }
        let (bytes, party) = (secret.bytes(), self.party(peer));
        let proof = match self.registry.log() {
            Some(_) => secret.proof(&peer.party()),
            None => String::new(),
        };
        let owner = Owner::Secret { party, secret };
        let number = self.sessions.insert(Session::new(peer.clone(), share, owner, lease, now));
        let record = SessionRecord {
            slot: 0,
            number,
            secret: bytes,
            lease,
            process: peer.process.filter(|_| peer.local),
            party,
            present: false,
            until_ms: 0,
            proof,
        };
        match (self.registry.begin_session(&record), self.sessions.get_mut(number)) {
            (Ok((slot, begun)), Some(session)) => {
                (session.slot, session.begun) = (slot, begun);
            }
            (Err(error), _) => {
                self.sessions.remove(number);
                return Err(cannot_remember(&error));
            }
            (Ok(_), None) => {}
        }
        if let Some(session) = self.sessions.get_mut(number) {
            session.take_client_number(0)?;
            session.note_process(hello.process.as_deref());
        }
        if let Err(fault) = self.open(number, 0, &hello.partition) {
            self.end(number, None, now);
            return Err(fault);
        }
        Ok(number)
    }

    /// Returns the secret that a client has chosen. A session of the same secret was begun by a
    /// hello whose answer the client did not receive, so it is ended.
    fn chosen_secret(&mut self, peer: &Peer, chosen: &str, now: Instant) -> Result<Secret, Fault> {
        let Some(secret) = Secret::read(chosen) else {
            let text = "a secret has 16 bytes, in the alphabet of URLs without padding";
            return Err(Fault::new(FaultCode::BadMessage, text));
        };
        if self.found.whole {
            let proof = secret.proof(&peer.party());
            let is_it = |it: &Session| matches!(&it.owner, Owner::Proof(own) if *own == proof);
            let mut absent = self.sessions.absent();
            let found = absent.find(|(_, it)| it.is_unclaimed() && is_it(it)).map(|(it, _)| it);
            drop(absent);
            if let Some(number) = found {
                self.end(number, None, now);
            }
        }
        Ok(secret)
    }

    /// The connection of a session broke. Whether the session waits for another one.
    pub fn detach(&mut self, number: u32, connection: u64, now: Instant) -> bool {
        let Some(session) = self.sessions.get_mut(number) else { return false };
        if session.connection != connection {
            return false;
        }
        if session.absent.is_some() {
            self.abandon_claim(number, now);
            return false;
        }
        if session.lease.is_none() && !session.present {
            self.end(number, None, now);
            return false;
        }
        session.outbox = None;
        session.take_unnamed();
        true
    }

    /// Returns where a session without a connection and without a lease shows that it lives.
    pub(crate) fn presence_of(&self, number: u32) -> Option<PathBuf> {
        let session = self.sessions.get(number)?;
        self.registry.presence(number).filter(|_| session.lease.is_none() && session.present)
    }

    /// The client of a session left over this connection.
    pub fn leave(&mut self, number: u32, connection: u64, now: Instant) {
        if self.sessions.get(number).is_some_and(|session| session.connection == connection) {
            self.end(number, None, now);
        }
    }

    /// Ends a session because nothing was heard of it for its lease.
    pub(crate) fn lapse(&mut self, number: u32, now: Instant) {
        self.metrics.lapsed_leases.inc();
        let text = "nothing was heard of the client for the length of its lease: all its locks are released";
        self.end(number, Some(Fault::new(FaultCode::LeaseLapsed, text)), now);
    }

    /// Ends a session: all it has is released, and its connection told why, if there is something
    /// to tell.
    pub(crate) fn end(&mut self, number: u32, fault: Option<Fault>, now: Instant) {
        self.end_without_slow(number, fault, now);
        self.settle(now);
    }

    /// Ends a session, and leaves those that became slow by it. Returns how much work that was.
    pub(super) fn end_without_slow(
        &mut self,
        number: u32,
        fault: Option<Fault>,
        now: Instant,
    ) -> usize {
        let Some(mut session) = self.sessions.remove(number) else { return 0 };
        if let (Some(outbox), Some(fault)) = (&session.outbox, fault) {
            outbox.end(fault);
        }
        // First, so that a kill from here on leaves no session that could claim.
        self.registry.end_session(session.slot, session.took_leave);
        for (request, known) in session.requests.iter() {
            if let Known::Lost { slot, .. } = known {
                self.registry.end_lost(RequestKey::new(number, request), slot);
            }
        }
        self.questions.retain(|(asker, _)| *asker != number);
        if let Some(absent) = session.absent.take() {
            self.found.ended(session.claim.take().is_some_and(|claim| claim.is_whole));
            self.end_records(absent.requests.into_values());
            self.admit(now);
            self.check_grace(now);
        }
        let clients = std::mem::take(&mut session.clients).into_values().collect();
        self.end_in_turns(Ending::of_clients(number, session.share.clone(), clients), now)
    }

    /// Ends the service's part in all sessions, whose connections are told. Sessions in a registry
    /// go on with the next service; the others end. Returns the longest lease of those that end and
    /// could not be told.
    pub(crate) fn shut_down(&mut self, now: Instant) -> Option<Duration> {
        self.open = false;
        let durable = self.registry.is_durable();
        let mut untold = None;
        let numbers = self.sessions.numbers();
        // First all are told, so that no request is granted what another one loses by this.
        for session in numbers.iter().filter_map(|&number| self.sessions.get(number)) {
            match &session.outbox {
                Some(outbox) => outbox.end(shutting_down()),
                None => untold = untold.max(session.lease),
            }
        }
        if durable {
            return self.longest_lease();
        }
        for number in numbers {
            self.end(number, None, now);
        }
        untold
    }

    /// Returns the longest lease of all sessions, those of an earlier service included, known or
    /// not. A session over a Unix socket counts too, with no time at all.
    fn longest_lease(&self) -> Option<Duration> {
        let unknown = self.found.blind.then(|| self.store.unknown_lease());
        let known = self.sessions.numbers();
        let known = known.iter().filter_map(|&number| self.sessions.get(number));
        known.map(|it| it.lease.unwrap_or_default()).chain(unknown).max()
    }
}

/// Counts a peer that does not read, and returns the fault that ends its connection.
pub(crate) fn slow_reader(metrics: &Metrics, limits: &Limits) -> Fault {
    metrics.slow_readers.inc();
    let max = limits.outbox_bytes_max;
    let text = format!("more than {max} bytes lie unread: read faster, or ask for less");
    Fault::new(FaultCode::SlowReader, text)
}

fn shutting_down() -> Fault {
    let text = "the service is shutting down: sessions that outlive it go on with the next one";
    Fault::new(FaultCode::ShuttingDown, text)
}

fn no_randomness() -> Fault {
    let text = "the service's system has no randomness to give: try again";
    Fault::new(FaultCode::Internal, text)
}

fn cannot_remember(error: &std::io::Error) -> Fault {
    tracing::error!(%error, "a session cannot be remembered");
    let text = "the service cannot write its state, and takes no session that could outlive it";
    Fault::new(FaultCode::Internal, text)
}

fn presence_text(path: PathBuf) -> String {
    path.to_string_lossy().into_owned()
}
