//! Claims: how a session goes on over a new connection, of this service or of an earlier one.
//!
//! The client proves that the session is its own, then names all that it still has, and ends with
//! `claimed`. A request that this service has is judged at once. Those of a found session are
//! judged together, because only a whole claim counts. Requests that a claim does not name are
//! released.

use std::rc::Rc;
use std::time::{Duration, Instant};

use navlocks_core::{Mode, Request, State};
use navlocks_wire::{
    self as wire, ClientKey, Fault, FaultCode, LossCause, Over, Pending, RequestKey, Resume,
    ToClient,
};

use super::Hub;
use super::backlog::Ending;
use super::metrics::Reason;
use super::partitions::{NewRequest, PartitionIndex};
use super::sessions::{Client, Known, Peer, Secret};
use super::verdict::{Verdict, judge};
use crate::store::{RequestRecord, RequestState, Slot};

/// The largest age of a request that a client can claim: a year.
const AGE_MAX: Duration = Duration::from_secs(365 * 24 * 60 * 60);

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
        if !self.is_own(peer, resume) {
            return Err(unknown_session());
        }
        if resume.epoch > self.store.epoch() {
            return Err(self.outdated(resume));
        }
        // The timer may be late, but what a client can rely on is not.
        self.check_lease(number, now);
        let session = self.sessions.get_mut(number).ok_or_else(unknown_session)?;
        if let Some(earlier) = session.outbox.take() {
            let text = "the session goes on over another connection";
            earlier.end(Fault::new(FaultCode::Replaced, text));
        }
        if session.absent.is_none() {
            self.metrics.resumed_sessions.inc();
            session.begin_naming();
            return Ok(number);
        }
        // An earlier claim may have got lost with a connection, and begins anew.
        self.abandon_claim(number, now);
        self.begin_claim(peer, number, now);
        Ok(number)
    }

    /// Returns true if the peer proves that a session is its own. Nothing changes before that,
    /// whatever a stranger sends.
    fn is_own(&self, peer: &Peer, resume: &Resume) -> bool {
        let (session, shown) = (self.sessions.get(resume.session), Secret::read(&resume.secret));
        session.zip(shown).is_some_and(|(session, shown)| {
            session.owner.is(&shown, &peer.party(), self.party(peer))
        })
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
        let state = match known {
            Known::Live { partition, id } => match self.partitions[partition].manager().state(id) {
                Some(State::Held(token)) => RequestState::Held(token.get()),
                _ => RequestState::Pending(0),
            },
            Known::Guest { .. } => RequestState::Pending(0),
            Known::Lost { cause, .. } => RequestState::Lost(cause),
        };
        match judge(Some(state), None, named.token) {
            Verdict::Tell(token) => {
                let age = Duration::from_millis(named.ms.unwrap_or_default()).min(AGE_MAX);
                let since = now.checked_sub(age).unwrap_or(now);
                let max = Duration::from_millis(named.max_hold_ms.unwrap_or_default());
                let key = RequestKey::new(number, id);
                let granted = self.holds.granted_again(key, (since, max), token);
                self.sessions.say(number, &ToClient::Granted(granted));
            }
            Verdict::Lost(cause) => {
                if !matches!(known, Known::Lost { .. }) {
                    tracing::error!(session = number, id, "a token is claimed that was not given");
                    self.give_up(number, id, Reason::Aborted, now);
                }
                let session = self.sessions.get(number);
                let thief = session.and_then(|session| session.thief_of(id));
                let thief = thief.as_deref().map(Into::into);
                self.sessions.say(number, &Over::lost_to(id, cause, thief).into());
            }
            // It may have been downgraded meanwhile, in words that got lost.
            Verdict::Keep(_) if self.mode_of(known) != Some(named.mode) => {
                self.downgrade(number, wire::Downgrade { id, mode: named.mode }, now);
            }
            // The message with its place was lost with a connection.
            Verdict::Queue(_) if named.place.is_none() => self.tell_place(number, id, known),
            Verdict::Keep(_) | Verdict::Queue(_) | Verdict::New => {}
        }
    }

    /// Sends a pending request its place, if there are places.
    fn tell_place(&mut self, number: u32, id: u64, known: Known) {
        let epoch = self.registry.log().map(|log| log.epoch());
        let place = match known {
            Known::Live { partition, id } => self.partitions[partition].queue_place(id),
            Known::Guest { .. } => {
                let guest = self.room.guest_mut(RequestKey::new(number, id));
                guest.and_then(|guest| guest.place_in(epoch))
            }
            Known::Lost { .. } => None,
        };
        if let Some(place) = place {
            self.sessions.say(number, &ToClient::Pending(Pending { id, place }));
        }
    }

    fn mode_of(&self, known: Known) -> Option<Mode> {
        let Known::Live { partition, id } = known else { return None };
        self.partitions[partition].manager().info(id).map(|info| info.mode)
    }

    /// Returns a hash of the party that a peer belongs to, as the registry keeps it.
    pub(super) fn party(&self, peer: &Peer) -> u64 {
        self.store.key.hash_bytes(peer.party().as_bytes())
    }

    /// Takes up a session of an earlier service whose client has proven that it is its own.
    fn begin_claim(&mut self, peer: &Rc<Peer>, number: u32, now: Instant) {
        let Some(session) = self.sessions.get_mut(number) else { return };
        session.begin_claim(peer, self.common.shares.borrow_mut().of(peer), now);
        // From now on its client may count its lease anew.
        self.registry.set_until(session.slot, 0);
    }

    /// Takes one request of a claim that is not whole yet. One for which there is no room is lost
    /// or refused alone.
    pub(super) fn claim(&mut self, number: u32, request: wire::Request) -> Result<(), Fault> {
        let (max, bytes_max) =
            (self.limits.requests_per_session_max, self.limits.bytes_per_tenant_max);
        let Some(session) = self.sessions.get_mut(number) else { return Ok(()) };
        session.take_request_number(request.id)?;
        let Some(claim) = &mut session.claim else { return Ok(()) };
        let (id, is_held) = (request.id, request.token.is_some());
        let text = if claim.len() >= max {
            format!("a session has at most {max} requests, held and pending together")
        } else if !claim.insert(request, bytes_max) {
            claim.remove(id);
            format!("the claims of the tenant take {bytes_max} bytes, and no more")
        } else {
            return Ok(());
        };
        self.refuse_claimed(number, id, is_held, Fault::new(FaultCode::Limit, text));
        Ok(())
    }

    /// Refuses a claimed request. A held one is lost, because its client believes in it.
    fn refuse_claimed(&mut self, number: u32, id: u64, is_held: bool, fault: Fault) {
        if is_held {
            tracing::error!(session = number, id, %fault, "a held lock cannot be claimed");
            self.metrics.losses.not_reclaimed.inc();
            self.sessions.say(number, &Over::lost(id, LossCause::NotReclaimed).into());
        } else {
            self.refuse(number, id, fault);
        }
    }

    /// The claim of a session is whole: seats what it held, queues what it waits for, releases the
    /// rest. A session that lives here has its requests already.
    pub(super) fn claimed(&mut self, number: u32, now: Instant) -> Result<(), Fault> {
        let Some(session) = self.sessions.get_mut(number) else { return Ok(()) };
        if self.found.whole
            && let Some(claim) = session.claim.as_mut().filter(|it| !it.is_whole)
        {
            claim.is_whole = true;
            self.found.claimed += 1;
            self.check_grace(now);
            return Ok(());
        }
        let Some((claim, absent)) = self.take_claim(number) else {
            return self.end_unnamed(number, now);
        };
        let mut records = absent.requests;
        for request in claim.into_values(now) {
            let record = records.remove(&request.id);
            let thief = absent.thieves.get(&request.id).cloned();
            self.claim_one(number, request, (record, thief), now);
        }
        self.end_records(records.into_values());
        self.admit(now);
        Ok(())
    }

    /// Judges one claimed request by its record.
    fn claim_one(
        &mut self,
        number: u32,
        claimed: wire::Request,
        (record, thief): (Option<RequestRecord>, Option<Rc<str>>),
        now: Instant,
    ) {
        let (id, mode, token) = (claimed.id, claimed.mode, claimed.token);
        let slot = record.as_ref().map_or(0, |record| record.slot);
        let found = self.claimed_request(number, claimed, slot, now);
        let Some((partition, mut new_request)) = found else {
            record.iter().for_each(|record| self.dismiss(record));
            return;
        };
        let hashes = self.hashes_of(partition, &new_request);
        // A record of other names or another mode is of another request. A lock may have been
        // downgraded meanwhile, in words that got lost.
        let known = record.as_ref().filter(|record| match record.state {
            RequestState::Lost(_) => true,
            RequestState::Held(_) => record.hashes == hashes && record.mode.downgrades_to(mode),
            RequestState::Pending(_) => record.hashes == hashes && record.mode == mode,
        });
        let verdict = judge(known.map(|record| record.state), None, token);
        if !matches!(verdict, Verdict::Queue(_)) {
            record.iter().for_each(|record| self.room.dismiss(record));
        }
        if !matches!(verdict, Verdict::Keep(_) | Verdict::Tell(_)) {
            self.holds.end(new_request.key());
        }
        match verdict {
            Verdict::Lost(cause) => self.lose_claimed(&new_request, cause, thief),
            Verdict::Keep(held) => {
                self.registry.set_mode(slot, mode);
                self.restore(partition, &new_request, (held, false), now);
            }
            Verdict::Tell(held) => self.restore(partition, &new_request, (held, true), now),
            Verdict::Queue(place) => {
                new_request.place = place;
                let key = new_request.key();
                match self.room.adopt(partition, new_request) {
                    None => self.note_guest(partition, key),
                    Some(new_request) => {
                        self.wait_for_admission(partition, new_request, &hashes, now)
                    }
                }
            }
            Verdict::New => {
                self.registry.end_request(slot);
                match self.register(partition, &mut new_request) {
                    // It goes on when the whole claim was judged.
                    Ok(()) => self.wait_for_admission(partition, new_request, &hashes, now),
                    Err(fault) => self.refuse(number, id, fault),
                }
            }
        }
    }

    /// Ends requests that an earlier service left.
    pub(super) fn end_records(&mut self, records: impl Iterator<Item = RequestRecord>) {
        for record in records {
            self.dismiss(&record);
            self.registry.end_request(record.slot);
        }
    }

    /// Makes a claimed request one that can enter the engine. One of a closed client is refused or
    /// lost.
    pub(super) fn claimed_request(
        &mut self,
        number: u32,
        claimed: wire::Request,
        slot: Slot,
        now: Instant,
    ) -> Option<(PartitionIndex, NewRequest)> {
        let is_held = claimed.token.is_some();
        let age = Duration::from_millis(claimed.ms.unwrap_or_default()).min(AGE_MAX);
        let max_hold_ms = claimed.max_hold_ms.unwrap_or_default();
        let within = claimed.within.map(|within| within.key(number));
        let wire::Request {
            id,
            client,
            names: wire::Names(scope),
            mode,
            wait,
            tag,
            traceparent,
            ..
        } = claimed;
        let session = self.sessions.get_mut(number)?;
        let Some(&Client { partition, id: owner, .. }) = session.client(client).ok().flatten()
        else {
            let fault = session.closed(client, &self.limits);
            self.registry.end_request(slot);
            self.refuse_claimed(number, id, is_held, fault);
            return None;
        };
        let new_request = NewRequest {
            owner,
            client: ClientKey::new(number, client),
            number: id,
            request: Request { scope, mode, wait },
            tag,
            traceparent,
            since: now.checked_sub(age).unwrap_or(now),
            place: 0,
            is_placed: false,
            slot,
            max_hold_ms,
            within,
        };
        Some((partition, new_request))
    }

    /// Seats a lock that its client still holds. Sends the grant if that is news.
    pub(super) fn restore(
        &mut self,
        partition: PartitionIndex,
        new_request: &NewRequest,
        (token, is_news): (u64, bool),
        now: Instant,
    ) {
        let (number, request) = (new_request.client.session, new_request.number);
        let (partitions, mut context) = self.context(now);
        let Some(id) = partitions[partition].restore(new_request, token, &mut context) else {
            tracing::error!(session = number, request, token, "two sessions claim one lock");
            self.holds.end(new_request.key());
            self.lose_claimed(new_request, LossCause::NotReclaimed, None);
            return;
        };
        if let Some(session) = self.sessions.get_mut(number) {
            let known = Known::Live { partition, id };
            session.requests.insert(request, known, new_request.memory() as u32);
        }
        let max = Duration::from_millis(new_request.max_hold_ms);
        if !max.is_zero() {
            // A client that did not receive the grant has not begun to hold.
            let granted = if is_news { now } else { new_request.since };
            self.holds.begin_restored(new_request.key(), granted + max);
        }
        if is_news {
            let granted =
                self.holds.granted_again(new_request.key(), (new_request.since, max), token);
            self.sessions.say(number, &ToClient::Granted(granted));
        }
    }

    /// Tells a client that a request which it claims was taken away, and describes the thief.
    pub(super) fn lose_claimed(
        &mut self,
        new_request: &NewRequest,
        cause: LossCause,
        thief: Option<Rc<str>>,
    ) {
        let &NewRequest { client: ClientKey { session: number, client }, number: id, slot, .. } =
            new_request;
        self.registry.lose(RequestKey::new(number, id), slot, cause);
        let thief = thief.or_else(|| self.describe_thief(cause));
        let words = thief.as_deref().map(Into::into);
        let session = self.sessions.get_mut(number);
        if !session.is_some_and(|session| session.lose(id, client, cause, thief, slot)) {
            self.registry.end_lost(RequestKey::new(number, id), slot);
        }
        self.sessions.say(number, &Over::lost_to(id, cause, words).into());
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
        let hello = wire::Hello::default();
        let (session, _) = hub.hello(&peer, &hello, &outbox, Instant::now()).expect("welcome");
        let secret = hub.sessions.get(session).expect("a session").owner.tell().expect("a secret");
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
        let text = r#"{"hello":{"resume":{"session":1,"secret":"","epoch":18446744073709551615}}}"#;
        let fault = wire::read::<wire::ToService>(text).expect_err("no epoch");
        assert_eq!(fault.code, FaultCode::BadMessage);
    }
}
