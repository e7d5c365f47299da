//! The lock manager: its inputs, and the events they cause.

mod events;
mod fast;
mod requesting;
mod processing;
mod suspending;
#[cfg(target_has_atomic = "64")]
mod shards;
mod snapshot;
mod blockers;
mod deadlock;
mod graph;
mod cycle;
mod explain;
mod survey;
mod invariants;

#[cfg(test)]
mod cost;

use alloc::vec::Vec;
use core::borrow::Borrow;

pub use blockers::Blockers;
pub use deadlock::{Deadlock, DeadlockPolicy, Step};
pub use explain::{BlockedBy, ExplainBounds, Explained, Explanation};
pub use snapshot::{RequestInfo, Snapshot, State};
pub use survey::{QueueView, Queued, Waiter};

use self::events::Events;
use crate::client::{Clients, SuspendPolicy};
use crate::hash::HashKey;
use crate::id::{Index, Shard};
use crate::numbers::Numbers;
use crate::queue::Queues;
use crate::seating::Seating;
use crate::{Answer, ClientId, Event, FencingToken, Mode, Name, Request, RequestError, RequestId};
use crate::{DowngradeError, TokenTooLarge, Wait};

/// One lock space: the standard's lock manager, one for each storage bucket (or tenant, or
/// program).
///
/// # Grammar
///
/// *Inputs* are the standard's verbs and take `&mut self`: [`request`](Self::request),
/// [`release`](Self::release), [`downgrade`](Self::downgrade), [`abort`](Self::abort),
/// [`terminate`](Self::terminate), [`force_release`](Self::force_release),
/// [`suspend`](Self::suspend), [`resume`](Self::resume), [`query`](Self::query). Each input has one
/// form: it returns its own outcome. An input that names something finished does nothing and says
/// so.
///
/// *Events* are what an input causes for other requests: after each input call
/// [`poll_event`](Self::poll_event) until it returns `None` and send each event to its client, in
/// this order. A request that is granted at once comes after the losses that it caused, and before
/// every grant with a larger token.
///
/// *Questions* take `&self` and change nothing: [`state`](Self::state),
/// [`snapshot`](Self::snapshot), [`blockers`](Self::blockers), [`deadlocks`](Self::deadlocks).
///
/// # Policy
///
/// Every request that is not finished is an *entry*; entries stand in one order, that of arrival.
/// An entry is clear on a name when the entries up to it in the queue of that name are no more than
/// the smallest limit among them; it is held exactly when it is clear on all its names. Exclusive
/// entries have the limit 1, and shared ones have none. So each name is first come, first served;
/// neighbouring shared requests hold together; a shared request waits behind an earlier exclusive
/// one, even if that one is still pending; requests with a [limit](Mode::Limited) are a semaphore;
/// and a request for several names gets all of them at once and keeps its place on each meanwhile.
/// A steal, and a shared request that [overtakes](Wait::Overtake), stand before all pending
/// entries.
///
/// When an entry leaves, all entries that waited only for it are granted in the same step, in queue
/// order.
///
/// # Cost
///
/// `request`, `release` and `abort` cost O(names of the scope), however many other entries there
/// are; `terminate` O(entries of the client); `snapshot` O(n log n) in what it returns. A steal
/// also passes once over the holders it robs and the compatible requests at the head of the queue.
/// An idle manager drops its memory.
#[derive(Debug)]
pub struct LockManager {
    seating: Seating,
    clients: Clients,
    numbers: Numbers,
    events: Events,
    #[cfg(debug_assertions)]
    inputs_since_check: usize,
}

impl LockManager {
    /// Makes a manager without clients. The first grant gets token 1.
    pub fn new(key: HashKey) -> Self {
        let seating = Seating::new(Queues::new(key), Shard::WHOLE);
        Self::with(seating, Clients::new(), Numbers::own())
    }

    fn with(seating: Seating, clients: Clients, numbers: Numbers) -> Self {
        Self {
            seating,
            clients,
            numbers,
            events: Events::default(),
            #[cfg(debug_assertions)]
            inputs_since_check: 0,
        }
    }

    /// Makes the tokens of all later grants at least this, for a manager that continues where an
    /// earlier one ended. Never makes them smaller.
    ///
    /// # Errors
    ///
    /// [`TokenTooLarge`], and nothing has changed: the number is beyond
    /// [`FencingToken::START_MAX`], which no honest count of grants reaches.
    pub fn advance_token(&mut self, at_least: FencingToken) -> Result<(), TokenTooLarge> {
        if at_least > FencingToken::START_MAX {
            return Err(TokenTooLarge(at_least));
        }
        self.numbers.advance_token(at_least.get());
        Ok(())
    }

    /// Returns a token that is larger than those of all grants so far.
    pub(crate) fn next_token(&self) -> FencingToken {
        FencingToken::new(self.numbers.next_token())
    }

    /// Adds a client, known until it is [terminated](Self::terminate).
    pub fn add_client(&mut self) -> ClientId {
        self.clients.insert()
    }

    /// Requests a lock for `client` and returns the outcome of this moment. An event follows only
    /// if the answer is [`Answer::Pending`], or when the lock is lost.
    ///
    /// # Errors
    ///
    /// The request was refused, and nothing has changed.
    #[inline]
    pub fn request(
        &mut self,
        client: ClientId,
        request: impl Borrow<Request>,
    ) -> Result<(RequestId, Answer), RequestError> {
        let request = request.borrow();
        let owner = self.admit(client, request)?;
        Ok(match self.grant_uncontended(owner, request) {
            Ok((id, token)) => {
                self.check_in_turn();
                (id, Answer::Granted(token))
            }
            Err(queue) => self.request_contended(owner, request, queue),
        })
    }

    /// Requests a lock on names that other entries want, or on several names.
    #[inline(never)]
    fn request_contended(
        &mut self,
        owner: Index,
        request: &Request,
        queue: Option<Index>,
    ) -> (RequestId, Answer) {
        let appended = queue.and_then(|queue| self.enqueue_last(owner, request, queue));
        let answered = appended.unwrap_or_else(|| self.request_a_lock(owner, request));
        self.settle();
        answered
    }

    /// Returns the client of a request, if it may request.
    #[inline]
    fn admit(&self, client: ClientId, request: &Request) -> Result<Index, RequestError> {
        let owner = self.clients.find(client).ok_or(RequestError::UnknownClient)?;
        if self.clients[owner].suspension.is_some() {
            return Err(RequestError::ClientSuspended);
        }
        if request.wait == Wait::Overtake && request.mode != Mode::Shared {
            return Err(RequestError::ExclusiveOvertake);
        }
        Ok(owner)
    }

    /// Releases the lock that `request` holds. Returns false, and nothing happens, when it holds
    /// none: because it is still pending, was released before, or was lost.
    #[inline]
    pub fn release(&mut self, request: RequestId) -> bool {
        self.release_with_heir::<true>(request).is_some()
    }

    /// Releases a lock, as [`release`](Self::release). Without `SEND`, and if the only effect is
    /// one grant, returns that entry instead of an event: the kit notifies it without the queue.
    #[inline]
    pub(crate) fn release_with_heir<const SEND: bool>(
        &mut self,
        request: RequestId,
    ) -> Option<Option<Index>> {
        let entry = self.seating.find(request).filter(|&entry| self.seating.is_held(entry))?;
        let alone = self.release_uncontended(entry);
        let heir = if alone { None } else { self.release_contended::<SEND>(entry) };
        self.settle();
        Some(heir)
    }

    /// Releases a lock that other entries want.
    #[inline(never)]
    fn release_contended<const SEND: bool>(&mut self, entry: Index) -> Option<Index> {
        let heir = self.release_to_heir::<SEND>(entry);
        if heir.is_none() {
            self.release_the_lock(entry);
        }
        if SEND { None } else { heir }
    }

    /// Returns the request of a held entry and its token.
    #[inline]
    pub(crate) fn grant_of(&self, entry: Index) -> (RequestId, FencingToken) {
        (self.seating.id(entry), FencingToken::new(self.seating.life(entry).token))
    }

    /// Sends the event of an entry that was just granted.
    #[inline]
    pub(crate) fn send_grant(&mut self, entry: Index) {
        let (request, token) = self.grant_of(entry);
        let client = self.clients.id(self.owner(entry));
        self.events.push(Event::Granted { request, client, token });
    }

    /// Gives the lock that `request` holds another mode with a larger limit, or none: exclusive to
    /// limited or shared. The lock keeps its token, no other request comes between, and waiters
    /// that fit now are granted.
    ///
    /// # Errors
    ///
    /// Nothing has changed: the request holds no lock, or the limit would become smaller.
    pub fn downgrade(&mut self, request: RequestId, mode: Mode) -> Result<(), DowngradeError> {
        let held = self.seating.find(request).filter(|&entry| self.seating.is_held(entry));
        let entry = held.ok_or(DowngradeError::NotHeld)?;
        if !self.seating.mode(entry).downgrades_to(mode) {
            return Err(DowngradeError::Upgrade);
        }
        self.raise_limit(entry, mode);
        self.settle();
        Ok(())
    }

    /// Takes the pending `request` out of the queue. Returns false, and nothing happens, when it is
    /// not pending: because it was granted already, or is over.
    pub fn abort(&mut self, request: RequestId) -> bool {
        let Some(entry) = self.seating.find(request) else { return false };
        let pending = !self.seating.is_held(entry);
        if pending {
            self.abort_the_request(entry);
            self.settle();
        }
        pending
    }

    /// Ends a client: all its locks are released and all its pending requests aborted, in one step.
    /// It receives no event any more, not even an earlier one that was not polled yet. Returns
    /// false when the client is not known.
    pub fn terminate(&mut self, client: ClientId) -> bool {
        self.terminate_all(&[client]) == 1
    }

    /// Ends several clients as [`terminate`](Self::terminate) does, in one step: none of them is
    /// granted a lock of another. Returns how many of them were known.
    pub fn terminate_all(&mut self, clients: &[ClientId]) -> usize {
        let mut known: Vec<Index> =
            clients.iter().filter_map(|&id| self.clients.find(id)).collect();
        known.sort_unstable();
        known.dedup();
        if !known.is_empty() {
            self.terminate_remaining_locks_and_requests(&known);
            // A terminated client receives no events.
            if self.has_events() {
                let Self { events, clients, .. } = self;
                drop(events.extract(|event| clients.find(event.client()).is_none()));
            }
            self.settle();
        }
        known.len()
    }

    /// Takes away all held locks that have `name` in their scope, in one step, and lets the queue
    /// go on. Returns how many there were.
    pub fn force_release(&mut self, name: &Name) -> usize {
        let count = self.force_release_locks(name);
        self.settle();
        count
    }

    /// Returns the locks held and requests pending now, as a client sees them: the question evicts
    /// every client that is suspended until contention and has any.
    ///
    /// [`snapshot`](Self::snapshot) shows the same and evicts no client.
    pub fn query(&mut self) -> Snapshot {
        self.evict_all_sleeping();
        self.settle();
        self.snapshot()
    }

    /// Returns the next event, or `None` when all were polled.
    #[inline]
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop()
    }

    /// Returns the next event and keeps it, so that its fields are read where they were written:
    /// moving a struct right after it was written costs a store-forwarding stall.
    #[inline]
    pub(crate) fn first_event(&self) -> Option<Event> {
        self.events.first()
    }

    /// Drops the [first event](Self::first_event).
    #[inline]
    pub(crate) fn drop_first_event(&mut self) {
        self.events.drop_first();
    }

    /// Puts the grant of a request that was just made among the events, in its place.
    pub(crate) fn insert_grant(
        &mut self,
        request: RequestId,
        client: ClientId,
        token: FencingToken,
    ) {
        self.events.insert_grant(Event::Granted { request, client, token }, token);
    }

    /// Returns true if [`poll_event`](Self::poll_event) has an event to return.
    #[inline]
    pub fn has_events(&self) -> bool {
        !self.events.is_empty()
    }

    /// Returns how many locks are held.
    pub fn held_count(&self) -> usize {
        self.seating.held()
    }

    /// Returns how many requests are pending.
    pub fn pending_count(&self) -> usize {
        self.seating.live() - self.seating.held()
    }

    /// Returns true if this client was added here and not terminated.
    pub fn knows(&self, client: ClientId) -> bool {
        self.clients.find(client).is_some()
    }

    /// Returns how many clients are known.
    pub fn client_count(&self) -> usize {
        self.clients.len()
    }

    /// Returns how many names have a lock held or pending. Of all others, only the short ones among
    /// the last eight in use take memory.
    pub fn name_count(&self) -> usize {
        self.seating.name_count()
    }

    /// Bytes that each name of a live request takes at most, those of a name longer than 23 bytes
    /// aside.
    pub(crate) const BYTES_PER_NAME: usize = Seating::BYTES_PER_NAME;

    /// Returns how many bytes the manager takes, names longer than 23 bytes aside.
    pub fn memory(&self) -> usize {
        self.seating.memory() + self.events.memory()
    }

    /// Returns how many reads of entries were counted.
    #[cfg(test)]
    pub(crate) fn reads(&self) -> usize {
        self.seating.reads()
    }

    pub(crate) fn shard(&self) -> Shard {
        self.seating.shard()
    }

    /// Sends an event to the client that it is for: now, or when it is resumed.
    #[inline]
    fn send(&mut self, owner: Index, event: Event) {
        match &mut self.clients[owner].suspension {
            None => self.events.push(event),
            Some(suspension) => suspension.deferred.push(event),
        }
    }

    /// Sends an event to the embedder, even if the client is suspended.
    fn send_now(&mut self, event: Event) {
        self.events.push(event);
    }

    /// Takes back the events of a client that were not polled yet.
    fn recall_events(&mut self, client: ClientId) -> Vec<Event> {
        let own =
            |event: &Event| event.client() == client && !matches!(event, Event::Evicted { .. });
        self.events.extract(own)
    }

    /// Ends an entry, for whatever reason: it leaves its client and all its queues.
    #[inline]
    fn depart(&mut self, entry: Index) {
        let client = self.owner(entry);
        let sleeps = self.clients[client].sleeps_under(SuspendPolicy::EvictOnContention);
        self.clients.delist(entry, &mut self.seating);
        self.seating.depart(entry, sleeps);
    }

    /// Returns the client of an entry.
    #[inline]
    fn owner(&self, entry: Index) -> Index {
        self.seating.life(entry).member.client
    }

    /// Returns the entries of a client, in order of arrival.
    fn entries_of(&self, client: Index) -> impl Iterator<Item = Index> + '_ {
        self.clients.entries(client, &self.seating)
    }

    /// Ends every input that changes something.
    #[inline]
    fn settle(&mut self) {
        self.seating.clear_if_idle();
        self.check_in_turn();
    }
}
