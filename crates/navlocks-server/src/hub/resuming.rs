//! How a session goes on over a new connection.
//!
//! The client proves that the session is its own, and then names everything that it still has, as
//! in a claim after a restart. `claimed` ends the rest.

use std::rc::Rc;
use std::time::Instant;

use navlocks_core::{Mode, State};
use navlocks_wire::{self as wire, Fault, FaultCode, Granted, Lost, Resume, ToClient};

use crate::hub::Hub;
use crate::hub::Peer;
use crate::hub::backlog::Ending;
use crate::hub::sessions::{Known, Secret};
use crate::hub::verdict::{Verdict, judge};
use crate::store::Standing;

/// A client that reports a larger epoch is wrong: no owner of a slot had it. Epochs stay below the
/// numbers that JavaScript knows exactly.
const EPOCH_MAX: u64 = 1 << 52;

impl Hub {
    /// Returns the session that a peer wants to go on with, and tells an older connection.
    pub(crate) fn find_resumed(
        &mut self,
        peer: &Rc<Peer>,
        resume: &Resume,
        now: Instant,
    ) -> Result<u32, Fault> {
        let number = resume.session;
        let secret = self.prove(peer, resume).ok_or_else(unknown_session)?;
        if resume.epoch > self.store.epoch() {
            return Err(self.outdated(resume));
        }
        // The timer may be late, but what a client can rely on is not.
        if self.end_if_lapsed(number, now) {
            return Err(unknown_session());
        }
        let session = self.sessions.get_mut(number);
        if let Some(earlier) = session.and_then(|session| session.outbox.take()) {
            let text = "the session goes on over another connection";
            earlier.end(Fault::new(FaultCode::Replaced, text));
        }
        if self.sessions.get(number).is_some_and(|session| session.claim.is_some()) {
            // Its claim got lost with a connection, and begins anew.
            self.abandon_claim(number, now);
        }
        match self.sessions.get_mut(number) {
            Some(session) => {
                self.metrics.resumed_sessions.inc();
                session.begin_naming();
            }
            None => self.begin_claim(peer, number, secret, now),
        }
        Ok(number)
    }

    /// Returns the secret of a session if the peer proves that the session is its own. Nothing
    /// changes before that, whatever a stranger sends.
    fn prove(&self, peer: &Peer, resume: &Resume) -> Option<Secret> {
        let shown = Secret::read(&resume.secret)?;
        let is_own = if let Some(session) = self.sessions.get(resume.session) {
            session.secret.is(&resume.secret) && session.peer.is_same_party(peer)
        } else {
            let record = &self.recovery.get(resume.session)?.record;
            match record.proof.is_empty() {
                true => {
                    let secret = Secret::from_bytes(record.secret);
                    secret.is(&resume.secret) && record.party == self.party(peer)
                }
                // The registry of a slot has no secrets.
                false => shown.proves(&peer.party(), &record.proof),
            }
        };
        is_own.then_some(shown)
    }

    /// A client has proven its session and knows a later service than this one.
    fn outdated(&self, resume: &Resume) -> Fault {
        let Resume { session, epoch, .. } = *resume;
        if self.slot.is_some() && epoch < EPOCH_MAX {
            self.common.epochs.raise(epoch);
            return Fault::moved(None);
        }
        tracing::error!(session, epoch, "a client knows a later service: was old state put back?");
        unknown_session()
    }

    /// Ends a session whose lease has passed. Returns false if it has not.
    fn end_if_lapsed(&mut self, number: u32, now: Instant) -> bool {
        if let Some(session) = self.sessions.get(number) {
            let heard = now.saturating_duration_since(session.heard);
            let is_over = session.lease.is_some_and(|lease| heard > lease);
            if is_over {
                self.lapse(number, now);
            }
            return is_over;
        }
        let is_over = self.recovery.get(number).is_some_and(|unclaimed| unclaimed.is_lapsed(now));
        if is_over {
            self.end_unclaimed(number, now);
        }
        is_over
    }

    /// Ends the clients and requests that the client of a living session has not named.
    pub(super) fn end_unnamed(&mut self, number: u32, now: Instant) -> Result<(), Fault> {
        let Some(session) = self.sessions.get_mut(number) else { return Ok(()) };
        let Some((clients, requests)) = session.take_unnamed() else {
            let text = "there is nothing to claim: the session is not resumed";
            return Err(Fault::new(FaultCode::BadState, text));
        };
        let share = session.share.clone();
        let mut closed = Vec::new();
        for client in clients {
            closed.extend(self.remove_client(number, client)?.map(|(_, client)| client));
        }
        self.end_in_turns(Ending::of_clients(number, share.clone(), closed), now);
        self.end_in_turns(Ending::of_requests(number, share, requests), now);
        Ok(())
    }

    /// The client of a resumed session names a request that the service had: sends what became of
    /// it, if that is news.
    pub(super) fn answer_again(&mut self, number: u32, named: &wire::Request, now: Instant) {
        let id = named.id;
        let known = self.sessions.get(number).and_then(|session| session.requests.get(id));
        // Its answer was sent over this connection.
        let Some(known) = known else { return };
        let standing = match known {
            Known::Live { partition, id } => match self.partitions[partition].manager().state(id) {
                Some(State::Held(token)) => Standing::Held(token.get()),
                _ => Standing::Pending(0),
            },
            Known::Guest { .. } => Standing::Pending(0),
            Known::Lost { cause, .. } => Standing::Lost(cause),
        };
        match judge(Some(standing), None, named.token) {
            Verdict::Tell(token) => {
                self.sessions.say(number, &ToClient::Granted(Granted { id, token }));
            }
            Verdict::Lost(cause) => {
                if !matches!(known, Known::Lost { .. }) {
                    tracing::error!(session = number, id, "a token is claimed that was not given");
                    self.give_up(number, id, now);
                }
                let session = self.sessions.get(number);
                let thief = session.and_then(|session| session.thief_of(id));
                let thief = thief.as_deref().map(Into::into);
                self.sessions.say(number, &ToClient::Lost(Lost { id, cause, thief }));
            }
            // It may have been downgraded meanwhile, in words that got lost.
            Verdict::Keep(_) if self.mode_of(known) != Some(named.mode) => {
                self.downgrade(number, wire::Downgrade { id, mode: named.mode }, now);
            }
            Verdict::Keep(_) | Verdict::Queue(_) | Verdict::New => {}
        }
    }

    fn mode_of(&self, known: Known) -> Option<Mode> {
        let Known::Live { partition, id } = known else { return None };
        self.partitions[partition].manager().info(id).map(|info| info.mode)
    }
}

pub(crate) fn unknown_session() -> Fault {
    let text = "the session is over, or was never here: begin a new one";
    Fault::new(FaultCode::UnknownSession, text)
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;
    use navlocks_core::DeadlockPolicy;

    use super::*;
    use crate::config::Limits;
    use crate::hub::{Outbox, Slot};

    #[test]
    fn epoch_of_a_client_counts_after_its_proof_and_within_bounds() {
        let mut hub =
            Hub::without_store(Limits::default(), DeadlockPolicy::Ignore).expect("a clock");
        hub.slot = Some(Slot { number: 0, slots: 1 });
        let (peer, outbox) = (Rc::new(Peer::remote("tenant", "")), Outbox::new(1 << 20));
        let hello = wire::Hello { version: wire::VERSION, ..wire::Hello::default() };
        let (session, _) = hub.hello(&peer, &hello, &outbox, Instant::now()).expect("welcome");
        let secret = hub.sessions.get(session).expect("a session").secret.tell();
        let wrong = Secret::new().expect("randomness").tell();
        let later = hub.store.epoch() + 1;
        let mut resume = |secret: &str, epoch: u64| {
            let resume = Resume { session, secret: secret.into(), epoch };
            let found = hub.find_resumed(&peer, &resume, Instant::now());
            (found.err().map(|fault| fault.code), hub.common.epochs.raised().now_or_never())
        };
        let unknown = (Some(FaultCode::UnknownSession), None);
        for epoch in [later, EPOCH_MAX, (1 << 53) - 1, u64::MAX] {
            assert_eq!(resume(&wrong, epoch), unknown, "{epoch}");
        }
        for epoch in [EPOCH_MAX, (1 << 53) - 1, u64::MAX] {
            assert_eq!(resume(&secret, epoch), unknown, "{epoch}");
        }
        assert_eq!(resume(&secret, later), (Some(FaultCode::Moved), Some(later)));
        // The session was not touched.
        assert_eq!(resume(&secret, 0), (None, None));
        let text = r#"{"hello":{"version":1,"resume":{"session":1,"secret":"","epoch":18446744073709551615}}}"#;
        let fault = wire::read::<wire::ToService>(text).expect_err("no epoch");
        assert_eq!(fault.code, FaultCode::BadMessage);
    }
}
