//! A partition: one lock space, and how its notices reach sessions and subscribers.

use std::collections::{BTreeSet, VecDeque};
use std::num::NonZero;
use std::rc::Rc;
use std::time::Instant;

use navlocks_core::kit::{About, Embedder, Notes, Notice, Refusal, Sink, Space};
use navlocks_core::{
    Answer, ClientId, Deadlock, DeadlockPolicy, FencingToken, HashKey, LockInfo, LockManager, Name,
    Request, RequestId, Scope, State, Wait,
};
use navlocks_wire::{
    self as wire, Cause, ClientKey, Cycle, Fault, FaultCode, Granted, Lost, Pending, QueuePlace,
    Refused, RequestKey, ToClient, What,
};

use super::early::Early;
use super::subscribers::Subscribers;
use super::{PartitionIndex, PartitionKey};
use crate::hub::Metrics;
use crate::hub::backlog::{Unfinished, WORK_PER_TURN};
use crate::hub::recovery::Recovery;
use crate::hub::sessions::{Known, Sessions};
use crate::hub::shares::Share;
use crate::hub::tokens::Tokens;
use crate::hub::views::{History, Noted};
use crate::store::{Registry, Slot};

/// Bytes of memory that a request takes besides its names and its tag: its session's books, and a
/// tag's.
const REQUEST_BYTES: usize = 160;

/// Bytes of the shortest description of a request, its names aside.
const INFO_BYTES_MIN: usize =
    r#"{"about":{"request":"1.1","client":"1.0","names":[""]},"ms":0}"#.len();

/// How many holders an answer about one request describes.
const HOLDERS_MAX: usize = 16;

/// One lock space.
#[derive(Debug)]
pub(crate) struct Partition {
    pub(crate) key: PartitionKey,
    space: Space<Served>,
    /// The key of each client, by [`ClientId::slot`].
    clients: Vec<ClientKey>,
    subscribers: Subscribers,
    /// Requests that came before anything may be granted.
    pub(crate) early: Early,
    /// Bytes of names and tags of live requests.
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
    /// The last minutes, while a dashboard wants to know.
    pub(crate) history: Option<Box<History>>,
    /// The key of the hashes of its names in the registry.
    table_key: HashKey,
}

/// More entries stand before a request than one question looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TooMany;

/// The types that the service attaches to a request.
struct Served;

impl Embedder for Served {
    type Note = Address;
    type Time = Instant;
    type Tag = Box<str>;
}

/// The names that a session gave its client and its request, its process, the bytes that the
/// request counts, and its slot in the registry.
#[derive(Clone, Copy, Debug, Default)]
struct Address {
    session: u32,
    bytes: u32,
    slot: Slot,
    /// Noted here because a session ends before its requests do.
    pid: Option<NonZero<u32>>,
    client: u64,
    number: u64,
}

/// A request on its way into the engine.
#[derive(Debug)]
pub(crate) struct Asking {
    pub(crate) owner: ClientId,
    pub(crate) client: ClientKey,
    pub(crate) number: u64,
    pub(crate) request: Request,
    pub(crate) tag: Option<Box<str>>,
    pub(crate) since: Instant,
    /// Its place among all requests of the service.
    pub(crate) place: u64,
    /// Its client knows its place, or need not know it.
    pub(crate) is_placed: bool,
    /// Its slot in the registry.
    pub(crate) slot: Slot,
}

/// The state outside a partition that a step in it needs.
pub(crate) struct Around<'a> {
    pub(crate) sessions: &'a mut Sessions,
    pub(crate) tokens: &'a mut Tokens,
    pub(crate) metrics: &'a Metrics,
    pub(crate) registry: &'a mut Registry,
    /// The work that inputs left, in turn.
    pub(crate) unfinished: &'a mut VecDeque<Unfinished>,
    /// In a cluster: clients are told their places, of this epoch.
    pub(crate) epoch: Option<u64>,
    pub(crate) now: Instant,
}

impl Asking {
    /// Returns the bytes of its names and tag.
    #[inline]
    pub(crate) fn bytes(&self) -> usize {
        let names = self.request.scope.names().iter().map(Name::len_bytes);
        names.sum::<usize>() + self.tag.as_ref().map_or(0, |tag| tag.len())
    }

    /// Returns the place that its client is to be told.
    #[inline]
    pub(crate) fn queue_place(&self, epoch: Option<u64>) -> Option<QueuePlace> {
        let epoch = epoch.filter(|_| !self.is_placed)?;
        // Requests that overtake count down through all epochs, before all others.
        let overtakes = self.request.wait == Wait::Overtake;
        Some(QueuePlace { epoch: if overtakes { 0 } else { epoch }, number: self.place })
    }

    /// Returns the bytes of memory that it takes, in the engine and around it.
    #[inline]
    pub(crate) fn memory(&self) -> usize {
        let names = self.request.scope.names().len();
        REQUEST_BYTES + names * Space::<Served>::BYTES_PER_NAME + self.bytes()
    }
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
            key,
            space: Space::new(manager, deadlocks),
            clients: Vec::new(),
            subscribers: Subscribers::default(),
            early: Early::default(),
            bytes: 0,
            share,
            index: PartitionIndex::default(),
            behind: false,
            changes: 0,
            messages: 0,
            history: None,
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
        self.manager().held_count() + self.manager().pending_count() + self.early.len()
    }

    #[inline]
    pub(crate) fn bytes(&self) -> usize {
        self.bytes + self.early.bytes()
    }

    pub(crate) fn add_client(&mut self, key: ClientKey) -> ClientId {
        let id = self.space.add_client();
        if id.slot() >= self.clients.len() {
            self.clients.resize(id.slot() + 1, key);
        }
        self.clients[id.slot()] = key;
        id
    }

    /// Bounds the search of the deadlock policy for one request.
    pub(crate) fn bound_deadlock_search(&mut self, entries_max: usize) {
        self.space.bound_deadlock_search(entries_max);
    }

    /// Notes that `parent` keeps its locks until `child` ends, for the search for deadlocks.
    pub(crate) fn add_child(&mut self, parent: ClientId, child: ClientId) {
        self.space.add_child(parent, child);
    }

    /// Requests a lock and sends all that follows at once. Returns the id while the request lives.
    pub(crate) fn request(&mut self, asking: Asking, around: &mut Around<'_>) -> Option<RequestId> {
        let address = self.address(&asking, around);
        let place = asking.queue_place(around.epoch);
        let Asking { owner, request, tag, .. } = asking;
        if matches!(request.wait, Wait::Steal | Wait::StealAll) {
            around.metrics.steals.inc();
        }
        if let Some(history) = &mut self.history {
            let (scope, mode, tag) = (request.scope.clone(), request.mode, tag.clone());
            let about = About { client: owner, scope, mode, tag };
            history.record_request(noted(about, address), around.now);
        }
        let made =
            self.with(around, |space, sink| space.request(owner, &request, (address, tag), sink));
        match made {
            Ok((_, Answer::Unavailable)) => None,
            Ok((id, answer)) => {
                if let (Answer::Pending, Some(place)) = (answer, place) {
                    let pending = Pending { id: address.number, place };
                    around.sessions.say(address.session, &ToClient::Pending(pending));
                }
                Some(id)
            }
            Err(refusal) => {
                self.refuse(address, &refusal, around);
                None
            }
        }
    }

    /// Seats a request that held its lock under an earlier service. Returns none if an entry
    /// conflicts with it.
    pub(crate) fn restore(
        &mut self,
        asking: &Asking,
        token: u64,
        around: &mut Around<'_>,
    ) -> Option<RequestId> {
        let address = self.address(asking, around);
        let note = (address, asking.tag.clone());
        let token = FencingToken::new(token);
        self.finish(around);
        let id = self.space.restore(asking.owner, &asking.request, token, note, asking.since);
        self.changes += 1;
        match (id, &mut self.history) {
            (None, _) => self.bytes -= address.bytes as usize,
            (Some(_), Some(history)) => {
                let (client, tag) = (asking.owner, asking.tag.clone());
                let (scope, mode) = (asking.request.scope.clone(), asking.request.mode);
                history.know(noted(About { client, scope, mode, tag }, address), asking.since);
            }
            (Some(_), None) => {}
        }
        id
    }

    /// Returns the address of a request that is about to enter the engine, and counts its bytes.
    #[inline]
    fn address(&mut self, asking: &Asking, around: &Around<'_>) -> Address {
        let bytes = asking.bytes();
        let &Asking { client: ClientKey { session, client }, number, slot, .. } = asking;
        let pid = around.sessions.pid(session).and_then(NonZero::new);
        self.bytes += bytes;
        Address { session, bytes: bytes as u32, slot, pid, client, number }
    }

    fn refuse(&mut self, address: Address, refusal: &Refusal, around: &mut Around<'_>) {
        let (code, cycle) = match refusal {
            Refusal::Deadlock(deadlock) => (FaultCode::Deadlock, Some(self.cycle(deadlock))),
            Refusal::Request(_) => {
                // The engine refused it before anything was attached.
                self.bytes -= address.bytes as usize;
                if let Some(history) = &mut self.history {
                    history.forget(RequestKey::new(address.session, address.number));
                }
                around.registry.end_request(address.slot);
                (FaultCode::ExclusiveOvertake, None)
            }
        };
        let fault = Fault::new(code, refusal.to_string());
        let refused = Refused { id: address.number, fault, cycle };
        around.sessions.say(address.session, &ToClient::Refused(refused));
    }

    /// Releases a lock, or takes a request out of the queue.
    #[inline]
    pub(crate) fn give_up(&mut self, id: RequestId, around: &mut Around<'_>) {
        self.with(around, |space, sink| space.release(id, sink) || space.abort(id, sink));
    }

    /// Takes away all held locks that have this name. Returns how many there were.
    pub(crate) fn force_release(&mut self, name: &Name, around: &mut Around<'_>) -> usize {
        self.with(around, |space, sink| space.force_release(name, sink))
    }

    /// Ends a client and all its requests. Returns the numbers of the requests that it had.
    pub(crate) fn end_client(&mut self, client: ClientId, around: &mut Around<'_>) -> Vec<u64> {
        let Some(&key) = self.clients.get(client.slot()) else { return Vec::new() };
        self.unsubscribe(key);
        let mut numbers = Vec::new();
        let requests = self.manager().requests_of(client);
        numbers.extend(requests.map(|id| address(self.space.notes(), id).number));
        self.with(around, |space, sink| space.end_client(client, sink));
        numbers
    }

    /// Notifies the holder of a lock, once, when a request waits for it.
    pub(crate) fn watch_contention(&mut self, id: RequestId, around: &mut Around<'_>) {
        self.with(around, |space, sink| space.watch_contention(id, sink));
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
    pub(crate) fn record(&mut self, mut history: Box<History>, now: Instant) {
        let snapshot = self.manager().snapshot();
        for info in snapshot.held.iter().chain(&snapshot.pending) {
            if let Some(noted) = self.noted(info.request) {
                history.know(noted, self.since(info.request));
            }
        }
        history.sample(snapshot.held.len(), snapshot.pending.len(), now);
        self.history = Some(history);
    }

    /// Records nothing any more.
    pub(crate) fn end_recording(&mut self) {
        self.history = None;
    }

    /// Returns since when a live request is held or pending.
    pub(crate) fn since(&self, id: RequestId) -> Instant {
        self.space.notes().since(id)
    }

    /// Returns the tag of a live request.
    pub(crate) fn tag(&self, id: RequestId) -> Option<&str> {
        self.space.tag(id).map(|tag| &**tag)
    }

    /// Returns the client of a live request, and its process where that is known.
    pub(crate) fn owner_of(&self, id: RequestId) -> (ClientKey, Option<u32>) {
        let Address { session, client, pid, .. } = address(self.space.notes(), id);
        (ClientKey::new(session, client), pid.map(NonZero::get))
    }

    /// Returns the key of a client.
    pub(crate) fn client_key(&self, client: ClientId) -> ClientKey {
        self.clients.get(client.slot()).copied().unwrap_or_else(|| ClientKey::new(0, 0))
    }

    /// Returns what a history notes of a live request.
    pub(crate) fn noted(&self, id: RequestId) -> Option<Noted> {
        let LockInfo { client, scope, mode, .. } = self.manager().info(id)?;
        let about = About { client, scope, mode, tag: self.space.tag(id).cloned() };
        Some(noted(about, address(self.space.notes(), id)))
    }

    /// Takes the lock of one request away. Returns false if it holds none.
    pub(crate) fn force_release_one(&mut self, id: RequestId, around: &mut Around<'_>) -> bool {
        self.with(around, |space, sink| space.force_release_one(id, sink))
    }

    /// Returns the locks held, and the requests pending; none if writing them takes more bytes than
    /// this for sure.
    pub(crate) fn snapshot(
        &self,
        sessions: &Sessions,
        now: Instant,
        bytes_max: usize,
    ) -> Option<(Vec<wire::Info>, Vec<wire::Info>)> {
        if self.requests() * INFO_BYTES_MIN + self.bytes() > bytes_max {
            return None;
        }
        let snapshot = self.manager().snapshot();
        let describe = |info: LockInfo| self.info(info, now);
        let early = self.early.iter().map(|asking| wire::Info {
            token: None,
            ms: age(asking.since, now),
            about: wire::About {
                request: RequestKey::new(asking.client.session, asking.number),
                client: asking.client,
                names: wire::Names(asking.request.scope.clone()),
                mode: asking.request.mode,
                tag: asking.tag.clone(),
                pid: sessions.pid(asking.client.session),
            },
        });
        let held = snapshot.held.into_iter().map(describe).collect();
        let pending = snapshot.pending.into_iter().map(describe).chain(early).collect();
        Some((held, pending))
    }

    pub(crate) fn info(&self, info: LockInfo, now: Instant) -> wire::Info {
        let id = info.request;
        let address = address(self.space.notes(), id);
        let LockInfo { client, scope, mode, token, .. } = info;
        let about = About { client, scope, mode, tag: self.space.tag(id).cloned() };
        wire::Info {
            token: token.map(|token| token.get()),
            ms: age(self.space.notes().since(id), now),
            about: told(&about, address),
        }
    }

    /// Returns where the first pending request of a client stands, if one is pending.
    pub(crate) fn place(
        &self,
        client: ClientId,
        now: Instant,
        entries_max: usize,
    ) -> Result<Option<wire::Place>, TooMany> {
        let manager = self.manager();
        let pending = |id: &RequestId| manager.state(*id) == Some(State::Pending);
        let Some(request) = manager.requests_of(client).find(pending) else {
            let early = self.early.iter().any(|asking| asking.owner == client);
            return Ok(early.then(|| wire::Place { before: 0, holders: 0, held: Vec::new() }));
        };
        self.place_of(request, now, entries_max).map(Some)
    }

    /// Returns where a pending request stands.
    pub(crate) fn place_of(
        &self,
        request: RequestId,
        now: Instant,
        entries_max: usize,
    ) -> Result<wire::Place, TooMany> {
        let manager = self.manager();
        let blockers = manager.blockers_within(request, entries_max).ok_or(TooMany)?;
        let held = blockers.hard.iter().take(HOLDERS_MAX).filter_map(|&id| manager.info(id));
        Ok(wire::Place {
            before: blockers.soft.len() as u64,
            holders: blockers.hard.len() as u64,
            held: held.map(|info| self.info(info, now)).collect(),
        })
    }

    /// Returns the names of requests for clients of other sessions.
    pub(crate) fn request_keys(&self, ids: &[RequestId]) -> Vec<RequestKey> {
        ids.iter().map(|&id| request_key(self.space.notes(), id)).collect()
    }

    pub(crate) fn cycle(&self, deadlock: &Deadlock) -> Cycle {
        cycle(deadlock, &self.clients, self.space.notes())
    }

    /// Returns the hashes of the names of a scope, as the registry keeps them.
    #[inline]
    pub(crate) fn hashes<'s>(&self, scope: &'s Scope) -> impl Iterator<Item = u64> + use<'s> {
        let key = self.table_key;
        scope.names().iter().map(move |name| key.hash_name(name))
    }

    /// Gives the engine those of these held-back requests that need not wait any more, in order of
    /// their places.
    pub(crate) fn admit_early(
        &mut self,
        index: PartitionIndex,
        mut candidates: BTreeSet<u64>,
        recovery: &Recovery,
        around: &mut Around<'_>,
    ) {
        while let Some(asking) = self.early.take_ready(&mut candidates, recovery) {
            let (session, number) = (asking.client.session, asking.number);
            let id = self.request(asking, around);
            let Some(owner) = around.sessions.get_mut(session) else { continue };
            match id {
                Some(id) => {
                    owner.requests.set(number, Known::Live { partition: index, id });
                }
                // Lost already, or refused.
                None if matches!(owner.requests.get(number), Some(Known::Early { .. })) => {
                    owner.requests.remove(number);
                }
                None => {}
            }
        }
    }

    /// Gives the space one input, whose notices go to the outboxes of sessions.
    #[inline]
    fn with<'a, T>(
        &mut self,
        around: &mut Around<'a>,
        input: impl FnOnce(&mut Space<Served>, &mut Outboxes<'_, 'a>) -> T,
    ) -> T {
        self.changes += 1;
        self.finish(around);
        let output = self.give(around, WORK_PER_TURN, input);
        if self.space.has_effects() {
            self.fall_behind(around);
        }
        output
    }

    #[inline]
    fn give<'a, T>(
        &mut self,
        around: &mut Around<'a>,
        room: usize,
        input: impl FnOnce(&mut Space<Served>, &mut Outboxes<'_, 'a>) -> T,
    ) -> T {
        let Self { space, clients, subscribers, bytes, share, history, messages, .. } = self;
        let now = around.now;
        let recorder = history.as_deref_mut();
        let outboxes = &mut Outboxes { around, clients, subscribers, bytes, share, room, recorder };
        let outcome = input(space, outboxes);
        *messages += room - outboxes.room;
        if let Some(history) = history {
            let manager = space.manager();
            history.sample(manager.held_count(), manager.pending_count(), now);
        }
        outcome
    }

    /// Returns true if effects of an input are not sent yet.
    pub(crate) fn is_behind(&self) -> bool {
        self.behind
    }

    #[cold]
    fn fall_behind(&mut self, around: &mut Around<'_>) {
        if !self.behind {
            self.behind = true;
            self.share.fall_behind();
            around.unfinished.push_back(Unfinished::Effects(self.index));
        }
    }

    /// Sends the next of the effects that an input left.
    pub(crate) fn go_on(&mut self, around: &mut Around<'_>) {
        self.give(around, WORK_PER_TURN, |space, sink| space.go_on(sink));
        if self.space.has_effects() {
            around.unfinished.push_back(Unfinished::Effects(self.index));
        } else if self.behind {
            self.behind = false;
            self.share.catch_up();
        }
    }

    /// Sends all effects that an earlier input left. Connections wait for that before they give
    /// another input; few others come in between.
    #[inline]
    fn finish(&mut self, around: &mut Around<'_>) {
        if self.space.has_effects() {
            self.give(around, usize::MAX, |space, sink| space.go_on(sink));
        }
    }
}

/// Where the notices of a partition go.
struct Outboxes<'p, 'a> {
    around: &'p mut Around<'a>,
    clients: &'p [ClientKey],
    subscribers: &'p mut Subscribers,
    bytes: &'p mut usize,
    share: &'p Rc<Share>,
    /// How many more messages are sent in this turn.
    room: usize,
    recorder: Option<&'p mut History>,
}

impl Sink<Served> for Outboxes<'_, '_> {
    #[inline]
    fn now(&self) -> Instant {
        self.around.now
    }

    #[inline]
    fn notify(&mut self, id: RequestId, notes: &mut Notes<Served>, notice: &Notice<'_, Instant>) {
        let Address { session, bytes, client, number, slot, .. } = address(notes, id);
        self.room = self.room.saturating_sub(1);
        let Around { sessions, tokens, metrics, registry, now, .. } = &mut *self.around;
        let age = |since| now.saturating_duration_since(since);
        match *notice {
            Notice::Granted { token, since } => {
                metrics.granted(age(since));
                tokens.given(token);
                registry.hold(slot, token.get());
                let granted = Granted { id: number, token: token.get() };
                sessions.say(session, &ToClient::Granted(granted));
            }
            Notice::Unavailable => sessions.say(session, &ToClient::Unavailable(number)),
            Notice::Contended => sessions.say(session, &ToClient::Contended(number)),
            Notice::Released { since } | Notice::ClientEnded { held_since: Some(since) } => {
                metrics.observe_hold(age(since));
            }
            Notice::Lost { cause, since } => {
                metrics.observe_hold(age(since));
                metrics.losses.inc();
                self.lose((session, client, number), slot, told_cause(cause, notes));
            }
            Notice::Aborted(cause) => {
                self.lose((session, client, number), slot, told_cause(cause, notes));
            }
            Notice::Deadlock(_) => {
                metrics.deadlocks.inc();
            }
            Notice::Requested | Notice::Withdrawn | Notice::ClientEnded { held_since: None } => {}
        }
        if notice.is_last() {
            *self.bytes -= bytes as usize;
            if !matches!(notice, Notice::Lost { .. } | Notice::Aborted(_)) {
                self.around.registry.end_request(slot);
            }
        }
        if let Some(history) = &mut self.recorder {
            history.record(RequestKey::new(session, number), notice, self.around.now);
        }
    }

    #[inline]
    fn has_enough(&self) -> bool {
        self.room == 0
    }

    fn publish(
        &mut self,
        id: RequestId,
        about: &About<Box<str>>,
        notes: &Notes<Served>,
        notice: &Notice<'_, Instant>,
    ) {
        let what = match *notice {
            Notice::Requested => What::Requested,
            Notice::Granted { token, .. } => What::Granted(token.get()),
            Notice::Unavailable => What::Unavailable,
            Notice::Released { .. } => What::Released,
            Notice::Withdrawn => What::Withdrawn,
            Notice::Aborted(cause) => What::Aborted(told_cause(cause, notes)),
            Notice::Lost { cause, .. } => What::Lost(told_cause(cause, notes)),
            Notice::ClientEnded { held_since: Some(_) } => What::Lost(Cause::ClientEnded),
            Notice::ClientEnded { held_since: None } => What::Aborted(Cause::ClientEnded),
            Notice::Deadlock(deadlock) => What::Deadlock(cycle(deadlock, self.clients, notes)),
            Notice::Contended => return,
        };
        let about = told(about, address(notes, id));
        self.room = self.room.saturating_sub(self.subscribers.len());
        self.subscribers.send(about, what, self.share, self.around.sessions);
    }
}

impl Outboxes<'_, '_> {
    /// Sends a loss, which session and registry remember until the client has taken note.
    fn lose(&mut self, (session, client, number): (u32, u64, u64), slot: Slot, cause: Cause) {
        let Around { sessions, registry, .. } = &mut *self.around;
        registry.lose(RequestKey::new(session, number), slot, cause);
        let owner = sessions.get_mut(session);
        if !owner.is_some_and(|owner| owner.lose(number, client, cause, slot)) {
            registry.end_lost(RequestKey::new(session, number), slot);
        }
        sessions.say(session, &ToClient::Lost(Lost { id: number, cause }));
    }
}

fn age(since: Instant, now: Instant) -> u64 {
    now.saturating_duration_since(since).as_millis() as u64
}

#[inline]
fn address(notes: &Notes<Served>, id: RequestId) -> Address {
    notes.get(id).copied().unwrap_or_default()
}

fn request_key(notes: &Notes<Served>, id: RequestId) -> RequestKey {
    let Address { session, number, .. } = address(notes, id);
    RequestKey::new(session, number)
}

fn cycle(deadlock: &Deadlock, clients: &[ClientKey], notes: &Notes<Served>) -> Cycle {
    Cycle {
        clients: deadlock.clients.iter().map(|client| clients[client.slot()]).collect(),
        requests: deadlock.requests.iter().map(|&id| request_key(notes, id)).collect(),
    }
}

fn told_cause(cause: navlocks_core::Cause, notes: &Notes<Served>) -> Cause {
    match cause {
        navlocks_core::Cause::Stolen { by } => Cause::Stolen(request_key(notes, by)),
        navlocks_core::Cause::ForceReleased => Cause::ForceReleased,
        navlocks_core::Cause::Evicted => Cause::Evicted,
        navlocks_core::Cause::Suspended => Cause::Suspended,
    }
}

/// Returns what a history notes of a request.
fn noted(about: About<Box<str>>, address: Address) -> Noted {
    let Address { session, client, number, pid, .. } = address;
    let (request, client) = (RequestKey::new(session, number), ClientKey::new(session, client));
    let About { scope, mode, tag, .. } = about;
    Noted { request, client, scope, mode, tag, pid: pid.map(NonZero::get) }
}

/// Returns a description of a request for clients of other sessions.
fn told(about: &About<Box<str>>, address: Address) -> wire::About {
    let Address { session, client, number, pid, .. } = address;
    wire::About {
        request: RequestKey::new(session, number),
        client: ClientKey::new(session, client),
        names: wire::Names(about.scope.clone()),
        mode: about.mode,
        tag: about.tag.clone(),
        pid: pid.map(NonZero::get),
    }
}
