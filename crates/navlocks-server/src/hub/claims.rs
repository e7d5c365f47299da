//! Claims: how a session of an earlier service goes on with its locks and its places.
//!
//! The client sends all its requests again and then `claimed`. Only then does the claim count, as a
//! whole: what it does not name is released.

use std::io;
use std::rc::Rc;
use std::time::{Duration, Instant};

use navlocks_core::Request;
use navlocks_wire::{
    self as wire, Cause, ClientKey, Fault, FaultCode, Granted, Lost, RequestKey, ToClient,
};

use super::Hub;
use super::backlog::{Ending, WORK_PER_TURN};
use super::partitions::{Asking, PartitionIndex};
use super::resuming::unknown_session;
use super::sessions::{Claim, Client, Known, Peer, Secret, Session};
use super::verdict::{Verdict, judge};
use crate::store::{RequestRecord, SessionRecord, Slot, Standing};

/// The largest age of a request that a client can claim: a year.
const AGE_MAX: Duration = Duration::from_secs(365 * 24 * 60 * 60);

impl Hub {
    /// Returns a hash of the party that a peer belongs to, as the registry keeps it.
    pub(super) fn party(&self, peer: &Peer) -> u64 {
        self.store.key.hash_bytes(peer.party().as_bytes())
    }

    /// Takes up a session of an earlier service whose client has proven that it is its own.
    pub(super) fn begin_claim(
        &mut self,
        peer: &Rc<Peer>,
        number: u32,
        secret: Secret,
        now: Instant,
    ) {
        let Some(unclaimed) = self.recovery.get(number) else { return };
        let SessionRecord { slot, lease, present, .. } = unclaimed.record;
        let share = self.common.shares.borrow_mut().of(peer);
        let mut session = Session::new(peer.clone(), share.clone(), secret, lease, now);
        (session.slot, session.present) = (slot, present);
        session.claim = Some(Claim::new(share));
        self.sessions.insert_claimed(number, session);
        self.recovery.begin_claim(number, &mut self.registry);
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
            let lost = Lost::new(id, Cause::NotReclaimed);
            self.sessions.say(number, &ToClient::Lost(lost));
        } else {
            self.refuse(number, id, fault);
        }
    }

    /// The claim of a session is whole: seats what it held, queues what it waits for, releases the
    /// rest. A session that lives here has its requests already.
    pub(super) fn claimed(&mut self, number: u32, now: Instant) -> Result<(), Fault> {
        let Some(session) = self.sessions.get_mut(number) else { return Ok(()) };
        if self.recovery.whole && session.is_claiming() {
            session.claim_is_whole = true;
            self.recovery.end_claim(number);
            self.check_grace(now);
            return Ok(());
        }
        let Some(claim) = session.claim.take() else { return self.end_unnamed(number, now) };
        let Some(unclaimed) = self.recovery.take(number) else { return Err(unknown_session()) };
        self.sessions.unreserve(number);
        self.metrics.reclaimed_sessions.inc();
        let mut records = unclaimed.requests;
        for request in claim.into_values() {
            let record = records.remove(&request.id);
            let thief = unclaimed.thieves.get(&request.id).cloned();
            self.claim_one(number, request, (record, thief), now);
        }
        self.end_records(records.into_values());
        self.admit(now);
        self.add_family(number);
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
        let found = self.claimed_asking(number, claimed, slot, now);
        let Some((partition, mut asking)) = found else {
            record.iter().for_each(|record| self.room.dismiss(record));
            return;
        };
        let hashes = self.hashes_of(partition, &asking);
        // A record of other names or another mode is of another request. A lock may have been
        // downgraded meanwhile, in words that got lost.
        let known = record.as_ref().filter(|record| match record.standing {
            Standing::Lost(_) => true,
            Standing::Held(_) => record.hashes == hashes && record.mode.downgrades_to(mode),
            Standing::Pending(_) => record.hashes == hashes && record.mode == mode,
        });
        let verdict = judge(known.map(|record| record.standing), None, token);
        if !matches!(verdict, Verdict::Queue(_)) {
            record.iter().for_each(|record| self.room.dismiss(record));
        }
        match verdict {
            Verdict::Lost(cause) => self.lose_claimed(&asking, cause, thief),
            Verdict::Keep(held) => {
                self.registry.set_mode(slot, mode);
                self.restore(partition, &asking, (held, false), now);
            }
            Verdict::Tell(held) => self.restore(partition, &asking, (held, true), now),
            Verdict::Queue(place) => {
                asking.place = place;
                let key = asking.key();
                match self.room.adopt(partition, asking) {
                    None => self.note_guest(partition, key),
                    Some(asking) => self.wait_for_admission(partition, asking, &hashes, now),
                }
            }
            Verdict::New => {
                self.registry.end_request(slot);
                match self.register(partition, &mut asking) {
                    // It goes on when the whole claim was judged.
                    Ok(()) => self.wait_for_admission(partition, asking, &hashes, now),
                    Err(fault) => self.refuse(number, id, fault),
                }
            }
        }
    }

    /// Ends requests that an earlier service left.
    fn end_records(&mut self, records: impl Iterator<Item = RequestRecord>) {
        for record in records {
            self.room.dismiss(&record);
            self.registry.end_request(record.slot);
        }
    }

    /// Makes a claimed request one that can enter the engine. One of a closed client is refused or
    /// lost.
    pub(super) fn claimed_asking(
        &mut self,
        number: u32,
        claimed: wire::Request,
        slot: Slot,
        now: Instant,
    ) -> Option<(PartitionIndex, Asking)> {
        let is_held = claimed.token.is_some();
        let age = Duration::from_millis(claimed.ms.unwrap_or_default()).min(AGE_MAX);
        let wire::Request { id, client, names: wire::Names(scope), mode, wait, tag, .. } = claimed;
        let session = self.sessions.get_mut(number)?;
        let Some(&Client { partition, id: owner, .. }) = session.client(client).ok().flatten()
        else {
            let fault = session.closed(client, &self.limits);
            self.registry.end_request(slot);
            self.refuse_claimed(number, id, is_held, fault);
            return None;
        };
        let asking = Asking {
            owner,
            client: ClientKey::new(number, client),
            number: id,
            request: Request { scope, mode, wait },
            tag,
            since: now.checked_sub(age).unwrap_or(now),
            place: 0,
            is_placed: false,
            slot,
        };
        Some((partition, asking))
    }

    /// Seats a lock that its client still holds. Sends the grant if that is news.
    pub(super) fn restore(
        &mut self,
        partition: PartitionIndex,
        asking: &Asking,
        (token, is_news): (u64, bool),
        now: Instant,
    ) {
        let (number, request) = (asking.client.session, asking.number);
        let (partitions, mut around) = self.around(now);
        let Some(id) = partitions[partition].restore(asking, token, &mut around) else {
            tracing::error!(session = number, request, token, "two sessions claim one lock");
            self.lose_claimed(asking, Cause::NotReclaimed, None);
            return;
        };
        if let Some(session) = self.sessions.get_mut(number) {
            let known = Known::Live { partition, id };
            session.requests.insert(request, known, asking.memory() as u32);
        }
        if is_news {
            self.sessions.say(number, &ToClient::Granted(Granted { id: request, token }));
        }
    }

    /// Tells a client that a request which it claims was taken away, and describes the thief.
    pub(super) fn lose_claimed(&mut self, asking: &Asking, cause: Cause, thief: Option<Rc<str>>) {
        let &Asking { client: ClientKey { session: number, client }, number: id, slot, .. } =
            asking;
        self.registry.lose(RequestKey::new(number, id), slot, cause);
        let thief = thief.or_else(|| self.describe_thief(cause));
        let words = thief.as_deref().map(Into::into);
        let session = self.sessions.get_mut(number);
        if !session.is_some_and(|session| session.lose(id, client, cause, thief, slot)) {
            self.registry.end_lost(RequestKey::new(number, id), slot);
        }
        self.sessions.say(number, &ToClient::Lost(Lost { id, cause, thief: words }));
    }

    /// Describes a thief whose theft an earlier service carried out, as far as it is known now: its
    /// request, or the process of its session.
    fn describe_thief(&self, cause: Cause) -> Option<Rc<str>> {
        let Cause::Stolen(thief) = cause else { return None };
        let Some(session) = self.sessions.get(thief.session) else {
            let process = self.recovery.get(thief.session)?.record.process?;
            return Some(process.to_string().into());
        };
        match session.requests.get(thief.request) {
            Some(Known::Live { partition, id }) => {
                self.partitions[partition].describe_live_thief(id)
            }
            _ => Some(session.peer.process?.to_string().into()),
        }
    }

    /// Makes the registry again where it was removed.
    pub(crate) fn keep_registry(&mut self) -> io::Result<()> {
        if self.registry.keep()? {
            self.sessions.forget_presence();
            self.recovery.forget_presence();
        }
        Ok(())
    }

    /// Ends a session of an earlier service whose client is gone and has not claimed it. A session
    /// that was claimed goes on.
    pub fn end_unclaimed(&mut self, number: u32, now: Instant) {
        if self.recovery.get(number).is_none() {
            return;
        }
        if self.sessions.get(number).is_some() {
            // Its claim is under way, and counts as the session's end.
            self.end(number, None, now);
            return;
        }
        self.forget_unclaimed(number, now);
        self.settle(now);
    }

    /// Removes a session of an earlier service, and admits what it held back.
    pub(super) fn forget_unclaimed(&mut self, number: u32, now: Instant) {
        let Some(unclaimed) = self.recovery.take(number) else { return };
        self.sessions.unreserve(number);
        self.registry.end_session(unclaimed.record.slot, false);
        self.end_records(unclaimed.requests.into_values());
        self.admit(now);
        self.check_grace(now);
    }

    /// Drops a claim that is not whole because its connection broke. The session can be claimed
    /// again.
    pub(super) fn abandon_claim(&mut self, number: u32, now: Instant) {
        let Some(mut session) = self.sessions.remove(number) else { return };
        self.recovery.abandon_claim(number, session.heard, &mut self.registry);
        let clients = std::mem::take(&mut session.clients).into_values().collect();
        self.end_in_turns(Ending::of_clients(number, session.share.clone(), clients), now);
    }

    /// Ends the sessions of an earlier service whose leases have passed, as many as one turn takes.
    /// Returns how long it takes until the next one has: no time at all if more have passed.
    pub fn check_unclaimed(&mut self, now: Instant) -> Option<Duration> {
        let before = self.admitted;
        for (ended, number) in self.recovery.lapsed(now).into_iter().enumerate() {
            if ended + self.admitted - before >= WORK_PER_TURN {
                return Some(Duration::ZERO);
            }
            self.metrics.lapsed_leases.inc();
            self.end_unclaimed(number, now);
        }
        self.recovery.next_lapse(now)
    }

    /// Links a session with the clients under whose locks it runs, or which run under its locks.
    pub(super) fn add_family(&mut self, number: u32) {
        if let Some(parent) = self.sessions.get(number).and_then(|session| session.parent) {
            self.add_child(parent, number);
        }
        for (child, parent) in self.sessions.children_of(number) {
            self.add_child(parent, child);
        }
    }
}
