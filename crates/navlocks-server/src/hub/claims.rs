//! Claims: how a session of an earlier service goes on with its locks and its places.
//!
//! The client sends all its requests again and then `claimed`. Only then does the claim count, as a
//! whole: what it does not name is released.

use std::collections::BTreeMap;
use std::io;
use std::rc::Rc;
use std::time::{Duration, Instant};

use navlocks_core::{Name, Request, Wait};
use navlocks_wire::{
    self as wire, Cause, ClientKey, Fault, FaultCode, Granted, Lost, RequestKey, ToClient,
};

use super::Hub;
use super::backlog::{Ending, Unfinished, WORK_PER_TURN};
use super::partitions::{Around, Asking, PartitionIndex, Walks};
use super::resuming::unknown_session;
use super::sessions::{Claim, Client, Known, Peer, Secret, Session};
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
        let Some((unclaimed, mut freed)) = self.recovery.take(number) else {
            return Err(unknown_session());
        };
        self.sessions.unreserve(number);
        self.metrics.reclaimed_sessions.inc();
        let mut records = unclaimed.requests;
        let mut waiting: BTreeMap<PartitionIndex, Walks> = BTreeMap::new();
        for request in claim.into_values() {
            let record = records.remove(&request.id);
            if let Some((partition, place)) = self.claim_one(number, request, record, now) {
                let walks = self.partitions[partition].early.walks_from(place);
                waiting.entry(partition).or_default().extend(walks);
            }
        }
        for record in records.into_values() {
            self.registry.end_request(record.slot);
        }
        freed.sort_unstable();
        freed.dedup();
        for (partition, walks) in waiting {
            self.admit_places(partition, walks, now);
        }
        self.admit(&freed, now);
        self.add_family(number);
        Ok(())
    }

    /// Judges one claimed request by its record. Returns where it stands if it is to be queued.
    fn claim_one(
        &mut self,
        number: u32,
        claimed: wire::Request,
        record: Option<RequestRecord>,
        now: Instant,
    ) -> Option<(PartitionIndex, u64)> {
        let (id, mode, token) = (claimed.id, claimed.mode, claimed.token);
        let slot = record.as_ref().map_or(0, |record| record.slot);
        let (partition, mut asking) = self.claimed_asking(number, claimed, slot, now)?;
        let hashes: Vec<u64> = self.partitions[partition].hashes(&asking.request.scope).collect();
        // A record of other names or another mode is of another request.
        let known = record.filter(|record| match record.standing {
            Standing::Lost(_) => true,
            _ => record.hashes == hashes && record.mode == mode,
        });
        match (known.map(|record| record.standing), token) {
            (Some(Standing::Lost(cause)), _) => self.lose_claimed(&asking, cause),
            (Some(Standing::Held(held)), _) if token.is_none_or(|token| token == held) => {
                self.restore(partition, &asking, (held, token.is_none()), now);
            }
            (Some(Standing::Pending(place)), None) => {
                asking.place = place;
                return Some(self.hold_back(partition, asking, hashes));
            }
            (_, Some(_)) => self.lose_claimed(&asking, Cause::NotReclaimed),
            (_, None) => {
                self.registry.end_request(slot);
                return match self.register(partition, &mut asking) {
                    Ok(()) => Some(self.hold_back(partition, asking, hashes)),
                    Err(fault) => {
                        self.refuse(number, id, fault);
                        None
                    }
                };
            }
        }
        None
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
            self.lose_claimed(asking, Cause::NotReclaimed);
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

    /// Tells a client that a request which it claims was taken away.
    pub(super) fn lose_claimed(&mut self, asking: &Asking, cause: Cause) {
        let &Asking { client: ClientKey { session: number, client }, number: id, slot, .. } =
            asking;
        self.registry.lose(RequestKey::new(number, id), slot, cause);
        let session = self.sessions.get_mut(number);
        if !session.is_some_and(|session| session.lose(id, client, cause, slot)) {
            self.registry.end_lost(RequestKey::new(number, id), slot);
        }
        self.sessions.say(number, &ToClient::Lost(Lost::new(id, cause)));
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
        let Some((unclaimed, freed)) = self.recovery.take(number) else { return };
        self.sessions.unreserve(number);
        self.registry.end_session(unclaimed.record.slot, false);
        for record in unclaimed.requests.into_values() {
            self.registry.end_request(record.slot);
        }
        self.admit(&freed, now);
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
        let before = self.admission_steps;
        for (ended, number) in self.recovery.lapsed(now).into_iter().enumerate() {
            if ended + self.admission_steps - before >= WORK_PER_TURN {
                return Some(Duration::ZERO);
            }
            self.metrics.lapsed_leases.inc();
            self.end_unclaimed(number, now);
        }
        self.recovery.next_lapse(now)
    }

    /// Holds a request back. Returns where it stands.
    pub(super) fn hold_back(
        &mut self,
        partition: PartitionIndex,
        asking: Asking,
        hashes: Vec<u64>,
    ) -> (PartitionIndex, u64) {
        let (number, place, memory) = (asking.number, asking.place, asking.memory());
        let asking = self.tell_place(asking);
        if let Some(session) = self.sessions.get_mut(asking.client.session) {
            session.requests.insert(number, Known::Early { partition, place }, memory as u32);
        }
        self.partitions.holding_back.insert(partition);
        let partition_of = &mut self.partitions[partition];
        partition_of.changes += 1;
        partition_of.early.push(asking, hashes);
        (partition, place)
    }

    /// Admits held-back requests that want one of these names, unless something else holds them
    /// back.
    pub(super) fn admit(&mut self, freed: &[u64], now: Instant) {
        for partition in self.partitions.holding_back.clone() {
            let walks = self.partitions[partition].early.walks(freed);
            self.admit_places(partition, walks, now);
        }
    }

    /// Admits the held-back requests on these walks that nothing else holds back: at once as many
    /// as one turn takes, and the others in turns.
    pub(super) fn admit_places(
        &mut self,
        partition: PartitionIndex,
        mut walks: Walks,
        now: Instant,
    ) {
        let mut room = WORK_PER_TURN;
        if !walks.is_empty() {
            let Self {
                sessions, partitions, tokens, metrics, registry, recovery, unfinished, ..
            } = self;
            let epoch = registry.log.as_ref().map(|log| log.epoch());
            let mut around = Around { sessions, tokens, metrics, registry, unfinished, epoch, now };
            partitions[partition].admit_early(&mut walks, recovery, &mut room, &mut around);
            self.admission_steps += WORK_PER_TURN - room;
        }
        if !walks.is_empty() {
            self.unfinished.push_back(Unfinished::Admission(partition, walks));
        } else if self.partitions[partition].early.len() == 0 {
            self.partitions.holding_back.remove(&partition);
        }
    }

    /// Removes a held-back request that its client gives up.
    pub(super) fn remove_held_back(&mut self, partition: PartitionIndex, place: u64, now: Instant) {
        self.partitions[partition].changes += 1;
        let Some((asking, hashes)) = self.partitions[partition].early.remove(place) else { return };
        self.registry.end_request(asking.slot);
        let walks = self.partitions[partition].early.walks(&hashes);
        self.admit_places(partition, walks, now);
    }

    /// Steals from unclaimed sessions, then from those that the engine knows.
    pub(super) fn rob_unclaimed(
        &mut self,
        partition: PartitionIndex,
        thief: Asking,
        hashes: &[u64],
        now: Instant,
    ) {
        let (number, request, memory) = (thief.client.session, thief.number, thief.memory());
        let cause = Cause::Stolen(RequestKey::new(number, request));
        let all = thief.request.wait == Wait::StealAll;
        let (_, mut freed) = self.recovery.rob(hashes, all, cause, &mut self.registry);
        if all {
            freed.extend(self.lose_held_back(partition, hashes, cause));
        }
        let (partitions, mut around) = self.around(now);
        let id = partitions[partition].request(thief, &mut around);
        if let (Some(id), Some(session)) = (id, self.sessions.get_mut(number)) {
            session.requests.insert(request, Known::Live { partition, id }, memory as u32);
        }
        self.admit(&freed, now);
    }

    /// Takes away all held-back requests that want one of these names. Returns the hashes of all
    /// names that they no longer hold back.
    fn lose_held_back(
        &mut self,
        partition: PartitionIndex,
        hashes: &[u64],
        cause: Cause,
    ) -> Vec<u64> {
        let mut freed = Vec::new();
        for place in self.partitions[partition].early.places(hashes) {
            if let Some((asking, hashes)) = self.partitions[partition].early.remove(place) {
                self.lose_claimed(&asking, cause);
                freed.extend(hashes);
            }
        }
        freed
    }

    /// Takes away what unclaimed sessions hold on a name. Returns how many locks there were.
    pub(super) fn force_release_unclaimed(
        &mut self,
        partition: PartitionIndex,
        name: &Name,
        now: Instant,
    ) -> usize {
        let hashes: Vec<u64> = self.partitions[partition].hashes(&name.clone().into()).collect();
        let cause = Cause::ForceReleased;
        let (count, freed) = self.recovery.rob(&hashes, false, cause, &mut self.registry);
        self.admit(&freed, now);
        count
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
