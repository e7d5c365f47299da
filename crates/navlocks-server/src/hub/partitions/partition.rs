//! A partition: one lock space, and the inputs of its engine.

mod address;
mod answers;
mod new_request;
mod outboxes;
mod waiters;

use std::num::NonZero;
use std::rc::Rc;
use std::time::Instant;

use navlocks_core::kit::{About, Space, SpaceError};
use navlocks_core::{
    Answer, ClientId, Deadlock, DeadlockPolicy, FencingToken, HashKey, LockManager, Mode, Name,
    RequestId, RequestInfo, Scope, Wait,
};
use navlocks_wire::{
    self as wire, ClientKey, Fault, FaultCode, Over, Pending, QueuePlace, Refused, RequestKey,
    ToClient, Why,
};

use super::subscribers::Subscribers;
use super::{PartitionIndex, PartitionKey};
use crate::hub::backlog::{Unfinished, WORK_PER_TURN};
use crate::hub::sessions::{Known, Sessions};
use crate::hub::shares::Share;
use crate::hub::{Noted, Recorder};
use address::{Address, Label, Owner, Served, Thief, address, noted, process_of};
pub(crate) use answers::{Looks, TooMany};
pub(crate) use new_request::NewRequest;
pub(crate) use outboxes::HubContext;
use outboxes::Outboxes;
use waiters::Waiters;

/// Returns the address of a request that is about to enter an engine.
#[inline]
/// Returns the tag of a request that has texts.
fn tag_of(label: Option<&Label>) -> Option<&Name> {
    label?.tag.as_ref()
}

fn address_of(new_request: &NewRequest, sessions: &Sessions) -> Address {
    let &NewRequest { client: ClientKey { session, client }, number, slot, max_hold_ms, .. } =
        new_request;
    let pid = sessions.pid(session).and_then(NonZero::new);
    let (bytes, place) = (new_request.bytes() as u32, QueuePlace::default());
    Address { session, bytes, slot, pid, client, number, max_hold_ms, place }
}

/// One lock space.
#[derive(Debug)]
pub(crate) struct Partition {
    pub(crate) key: PartitionKey,
    space: Space<Served>,
    /// The owners of clients, by [`ClientId::slot`].
    clients: Vec<Owner>,
    subscribers: Subscribers,
    /// How many requests are on their way to it, in the room.
    guests: usize,
    /// Bytes of names and tags of live requests, and of those in the room.
    bytes: usize,
    /// The share in which the partition counts: of the tenant that opened it.
    pub(crate) share: Rc<Share>,
    /// Its position, by which the hub finds it again when effects are left.
    pub(super) index: PartitionIndex,
    /// Whether effects of an input are not sent yet.
    pub(super) behind: bool,
    /// Counts the inputs.
    pub(crate) changes: u64,
    /// Counts the messages of its effects, once for each subscriber.
    pub(crate) messages: usize,
    pub(crate) recorder: Option<Box<dyn Recorder>>,
    /// The thief of the last theft: some of its victims may not be told yet.
    thief: Option<Thief>,
    /// The key of the hashes of its names in the registry.
    table_key: HashKey,
    waiters: Waiters,
}

impl Partition {
    pub(crate) fn new(
        key: PartitionKey,
        manager: LockManager,
        deadlocks: DeadlockPolicy,
        share: Rc<Share>,
        table_key: HashKey,
    ) -> Self {
        Self {
            table_key,
            waiters: Waiters::default(),
            key,
            space: Space::new(manager, deadlocks),
            clients: Vec::new(),
            subscribers: Subscribers::default(),
            guests: 0,
            bytes: 0,
            share,
            index: PartitionIndex::default(),
            behind: false,
            changes: 0,
            messages: 0,
            recorder: None,
            thief: None,
        }
    }

    /// Returns the engine, for questions.
    #[inline]
    pub(crate) fn manager(&self) -> &LockManager {
        self.space.manager()
    }

    /// Returns how many requests there are, held and pending.
    #[inline]
    pub(crate) fn requests(&self) -> usize {
        self.manager().held_count() + self.manager().pending_count() + self.guests
    }

    #[inline]
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Adds a client, with the process that it says to be.
    pub(crate) fn add_client(&mut self, key: ClientKey, process: Option<Rc<str>>) -> ClientId {
        let id = self.space.add_client();
        if id.slot() >= self.clients.len() {
            self.clients.resize(id.slot() + 1, Owner { key, process: None });
        }
        self.clients[id.slot()] = Owner { key, process };
        id
    }

    /// Bounds the search of the deadlock policy for one request.
    pub(crate) fn bound_deadlock_search(&mut self, entries_max: usize) {
        self.space.bound_deadlock_search(entries_max);
    }

    /// Requests a lock and sends all that follows at once. Returns the id while the request lives.
    pub(crate) fn request(
        &mut self,
        mut new_request: NewRequest,
        context: &mut HubContext<'_>,
    ) -> Option<RequestId> {
        let place = new_request.queue_place(context.epoch);
        let address = self.address(&new_request, context);
        let outer = self.find_outer(&new_request, context.sessions);
        let label = new_request.take_label();
        let NewRequest { owner, request, since, .. } = new_request;
        if matches!(request.wait, Wait::Steal | Wait::StealAll) {
            context.metrics.steals.inc();
            context.audit_steal(address, &request.scope, label.as_ref());
            self.thief = Some(self.thief(owner, address, tag_of(label.as_ref())));
        }
        if let Some(recorder) = &mut self.recorder {
            let (scope, mode, tag) = (request.scope.clone(), request.mode, label.clone());
            let about = About { client: owner, scope, mode, tag };
            recorder.record_request(noted(about, address), context.now);
        }
        let note = (address, label);
        let made = self
            .with(context, |space, sink| space.request_within(outer, owner, &request, note, sink));
        match made {
            Ok((_, Answer::Unavailable)) => None,
            Ok((id, answer)) => {
                if answer == Answer::Pending {
                    if since < context.now {
                        self.space.set_since(id, since);
                    }
                    self.waiters.add(id, since, self.space.manager());
                }
                if let (Answer::Pending, Some(place)) = (answer, place) {
                    let pending = Pending { id: address.number, place };
                    context.sessions.say(address.session, &ToClient::Pending(pending));
                }
                Some(id)
            }
            Err(refusal) => {
                self.refuse(address, &refusal, context);
                None
            }
        }
    }

    /// Returns the place in the queue that the client of a pending request is to know.
    pub(crate) fn queue_place(&self, id: RequestId) -> Option<QueuePlace> {
        let place = address(self.space.notes(), id).place;
        Some(place).filter(|place| *place != QueuePlace::default())
    }

    /// Seats a request that held its lock under an earlier service. Returns none if an entry
    /// conflicts with it.
    pub(crate) fn restore(
        &mut self,
        new_request: &NewRequest,
        token: u64,
        context: &mut HubContext<'_>,
    ) -> Option<RequestId> {
        let address = self.address(new_request, context);
        let note = (address, new_request.label());
        let token = FencingToken::new(token);
        self.finish(context);
        let id = self.space.restore(
            new_request.owner,
            &new_request.request,
            token,
            note,
            new_request.since,
        );
        self.changes += 1;
        if let Some((inner, outer)) = id.zip(self.find_outer(new_request, context.sessions)) {
            self.space.nest(inner, outer);
        }
        match (id, &mut self.recorder) {
            (None, _) => self.bytes -= address.bytes as usize,
            (Some(_), Some(recorder)) => {
                let (client, tag) = (new_request.owner, new_request.label());
                let (scope, mode) = (new_request.request.scope.clone(), new_request.request.mode);
                let noted = noted(About { client, scope, mode, tag }, address);
                recorder.know(noted, new_request.since);
            }
            (Some(_), None) => {}
        }
        id
    }

    /// Returns the address of a request that is about to enter the engine, and counts its bytes.
    #[inline]
    fn address(&mut self, new_request: &NewRequest, context: &HubContext<'_>) -> Address {
        self.bytes += new_request.bytes();
        let place = new_request.place_in(context.epoch).unwrap_or_default();
        Address { place, ..address_of(new_request, context.sessions) }
    }

    /// Returns the live request within which a request was made: of its session, or of another one
    /// of its party.
    #[inline]
    fn find_outer(&self, new_request: &NewRequest, sessions: &Sessions) -> Option<RequestId> {
        let key = new_request.within?;
        let (outer, own) = (sessions.get(key.session)?, sessions.get(new_request.client.session)?);
        match outer.requests.get(key.request)? {
            Known::Live { partition, id }
                if partition == self.index && outer.peer.is_same_party(&own.peer) =>
            {
                Some(id)
            }
            _ => None,
        }
    }

    fn thief(&self, owner: ClientId, address: Address, tag: Option<&Name>) -> Thief {
        Thief::new(address, tag, process_of(owner, &self.clients))
    }

    /// Describes a request that is about to steal, in words for its victims.
    pub(crate) fn describe_thief(&self, new_request: &NewRequest, sessions: &Sessions) -> Rc<str> {
        self.thief(new_request.owner, address_of(new_request, sessions), new_request.tag.as_ref())
            .words
    }

    /// Describes a live request that has stolen, in words for its victims.
    pub(crate) fn describe_live_thief(&self, id: RequestId) -> Option<Rc<str>> {
        let owner = self.manager().info(id)?.client;
        Some(self.thief(owner, address(self.space.notes(), id), self.tag(id)).words)
    }

    fn refuse(&mut self, address: Address, refusal: &SpaceError, context: &mut HubContext<'_>) {
        let (code, cycle) = match refusal {
            SpaceError::Deadlock(deadlock) => (FaultCode::Deadlock, Some(self.cycle(deadlock))),
            SpaceError::Request(_) => {
                // The engine refused it before anything was attached.
                self.bytes -= address.bytes as usize;
                if let Some(recorder) = &mut self.recorder {
                    recorder.forget(RequestKey::new(address.session, address.number));
                }
                context.registry.end_request(address.slot);
                (FaultCode::ExclusiveOvertake, None)
            }
        };
        context.metrics.requests.refused.inc();
        let text = match cycle.as_ref().and_then(|cycle| cycle.outer) {
            Some(outer) => Deadlock::describe_own(outer),
            None => refusal.to_string(),
        };
        let fault = Fault::new(code, text);
        let why = Why::Refused(Refused { fault, cycle });
        context.sessions.say(address.session, &Over { id: address.number, why }.into());
    }

    /// Releases a lock, or takes a request out of the queue.
    #[inline]
    pub(crate) fn give_up(&mut self, id: RequestId, context: &mut HubContext<'_>) {
        self.with(context, |space, sink| space.release(id, sink) || space.abort(id, sink));
    }

    /// Gives a lock a mode that allows more holders, and answers with the mode that it has then.
    /// The loss of a lost one is on its way.
    pub(crate) fn downgrade(&mut self, id: RequestId, mode: Mode, context: &mut HubContext<'_>) {
        let refused = self.with(context, |space, sink| space.downgrade(id, mode, sink)).is_err();
        let held = self.manager().info(id).filter(|info| info.token.is_some());
        if let Some(RequestInfo { mode, .. }) = held {
            let Address { session, number, .. } = address(self.space.notes(), id);
            tracing::debug!(session, number, %mode, refused, "a lock is downgraded");
            let answer = ToClient::Downgraded(wire::Downgrade { id: number, mode });
            context.sessions.say(session, &answer);
        }
    }

    /// Takes away all held locks that have this name. Returns how many there were.
    pub(crate) fn force_release(&mut self, name: &Name, context: &mut HubContext<'_>) -> usize {
        self.with(context, |space, sink| space.force_release(name, sink))
    }

    /// Ends a client and all its requests. Returns the numbers of the requests that it had.
    pub(crate) fn end_client(
        &mut self,
        client: ClientId,
        context: &mut HubContext<'_>,
    ) -> Vec<u64> {
        let Some(&Owner { key, .. }) = self.clients.get(client.slot()) else { return Vec::new() };
        self.unsubscribe(key);
        let mut numbers = Vec::new();
        let requests = self.manager().requests_of(client);
        numbers.extend(requests.map(|id| address(self.space.notes(), id).number));
        self.with(context, |space, sink| space.end_client(client, sink));
        numbers
    }

    /// Notifies the holder of a lock, once, when a request waits for it.
    pub(crate) fn watch_contention(&mut self, id: RequestId, context: &mut HubContext<'_>) {
        self.with(context, |space, sink| space.watch_contention(id, sink));
    }

    pub(crate) fn subscribers(&self) -> usize {
        self.subscribers.len()
    }

    pub(crate) fn has_subscriber(&self, client: ClientKey) -> bool {
        self.subscribers.contains(client)
    }

    pub(crate) fn subscribe(&mut self, subscriber: ClientKey) {
        self.subscribers.add(subscriber);
        self.space.describe();
    }

    pub(crate) fn unsubscribe(&mut self, subscriber: ClientKey) {
        self.subscribers.remove(subscriber);
        if self.subscribers.is_empty() {
            self.space.stop_describing();
        }
    }

    /// Records what happens from now on.
    pub(crate) fn begin_recording(&mut self, mut recorder: Box<dyn Recorder>, now: Instant) {
        let snapshot = self.manager().snapshot();
        for info in snapshot.held.iter().chain(&snapshot.pending) {
            if let Some(noted) = self.noted(info.request) {
                recorder.know(noted, self.since(info.request));
            }
        }
        recorder.sample(snapshot.held.len(), snapshot.pending.len(), now);
        self.recorder = Some(recorder);
    }

    /// Records nothing any more.
    pub(crate) fn end_recording(&mut self) {
        self.recorder = None;
    }

    /// Returns since when the oldest pending request waits.
    pub(crate) fn oldest_wait(&mut self) -> Option<Instant> {
        self.waiters.oldest(self.space.manager())
    }

    /// Returns since when a live request is held or pending.
    pub(crate) fn since(&self, id: RequestId) -> Instant {
        self.space.notes().since(id)
    }

    /// Returns the tag of a live request.
    pub(crate) fn tag(&self, id: RequestId) -> Option<&Name> {
        tag_of(self.space.tag(id))
    }

    /// Returns the client of a live request, and its process where that is known.
    pub(crate) fn owner_of(&self, id: RequestId) -> (ClientKey, Option<u32>) {
        let Address { session, client, pid, .. } = address(self.space.notes(), id);
        (ClientKey::new(session, client), pid.map(NonZero::get))
    }

    /// Returns the key of a client.
    pub(crate) fn client_key(&self, client: ClientId) -> ClientKey {
        self.clients.get(client.slot()).map_or_else(|| ClientKey::new(0, 0), |owner| owner.key)
    }

    /// Returns the facts about a live request for a recorder.
    pub(crate) fn noted(&self, id: RequestId) -> Option<Noted> {
        let RequestInfo { client, scope, mode, .. } = self.manager().info(id)?;
        let about = About { client, scope, mode, tag: self.space.tag(id).cloned() };
        Some(noted(about, address(self.space.notes(), id)))
    }

    /// Takes the lock of one request away because its time is over.
    pub(crate) fn expire(&mut self, id: RequestId, context: &mut HubContext<'_>) -> bool {
        self.with(context, |space, sink| space.expire(id, sink))
    }

    /// Takes the lock of one request away. Returns false if it holds none.
    pub(crate) fn force_release_one(
        &mut self,
        id: RequestId,
        context: &mut HubContext<'_>,
    ) -> bool {
        self.with(context, |space, sink| space.force_release_one(id, sink))
    }

    /// Returns the hashes of the names of a scope, as the registry keeps them.
    #[inline]
    pub(crate) fn hashes<'s>(&self, scope: &'s Scope) -> impl Iterator<Item = u64> + use<'s> {
        let key = self.table_key;
        scope.names().iter().map(move |name| key.hash_name(name))
    }

    /// Counts a request that is on its way to it, in the room.
    pub(crate) fn take_guest(&mut self, new_request: &NewRequest) {
        self.changes += 1;
        self.guests += 1;
        self.bytes += new_request.bytes();
    }

    /// Counts a request in the room no more.
    pub(crate) fn lose_guest(&mut self, new_request: &NewRequest) {
        self.changes += 1;
        self.guests -= 1;
        self.bytes -= new_request.bytes();
    }

    /// Gives the space one input, whose notices go to the outboxes of sessions.
    #[inline]
    fn with<'a, T>(
        &mut self,
        context: &mut HubContext<'a>,
        input: impl FnOnce(&mut Space<Served>, &mut Outboxes<'_, 'a>) -> T,
    ) -> T {
        self.changes += 1;
        self.finish(context);
        let output = self.give(context, WORK_PER_TURN, input);
        if self.space.has_effects() {
            self.fall_behind(context);
        }
        output
    }

    #[inline]
    fn give<'a, T>(
        &mut self,
        context: &mut HubContext<'a>,
        room: usize,
        input: impl FnOnce(&mut Space<Served>, &mut Outboxes<'_, 'a>) -> T,
    ) -> T {
        let Self { space, clients, subscribers, bytes, share, recorder, messages, thief, .. } =
            self;
        let now = context.now;
        let thief = thief.as_ref();
        let outboxes = &mut Outboxes {
            context,
            clients,
            subscribers,
            bytes,
            share,
            thief,
            room,
            recorder: recorder.as_deref_mut(),
        };
        let outcome = input(space, outboxes);
        *messages += room - outboxes.room;
        if let Some(recorder) = recorder {
            let manager = space.manager();
            recorder.sample(manager.held_count(), manager.pending_count(), now);
        }
        outcome
    }

    /// Returns its position.
    pub(crate) fn index(&self) -> PartitionIndex {
        self.index
    }

    /// Returns true if effects of an input are not sent yet.
    pub(crate) fn is_behind(&self) -> bool {
        self.behind
    }

    #[cold]
    fn fall_behind(&mut self, context: &mut HubContext<'_>) {
        if !self.behind {
            self.behind = true;
            self.share.fall_behind();
            context.unfinished.push_back(Unfinished::Effects(self.index));
        }
    }

    /// Sends the next of the effects that an input left.
    pub(crate) fn go_on(&mut self, context: &mut HubContext<'_>) {
        self.give(context, WORK_PER_TURN, |space, sink| space.go_on(sink));
        if self.space.has_effects() {
            context.unfinished.push_back(Unfinished::Effects(self.index));
        } else if self.behind {
            self.behind = false;
            self.share.catch_up();
        }
    }

    /// Sends all effects that an earlier input left. Connections wait for that before they give
    /// another input; few others come in between.
    #[inline]
    fn finish(&mut self, context: &mut HubContext<'_>) {
        if self.space.has_effects() {
            self.give(context, usize::MAX, |space, sink| space.go_on(sink));
        }
    }
}
