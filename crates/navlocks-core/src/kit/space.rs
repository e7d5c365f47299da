//! A space: one partition, with what its embedder attaches to each request.

mod effects;
mod error;
mod contents;

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use core::fmt;

use super::contention::Contention;
use super::ids::IdMap;
use super::{Embedder, Notes, Notice, Sink};
use crate::{
    Answer, ClientId, DeadlockPolicy, DowngradeError, FencingToken, LockManager, Mode, Name,
    Request, RequestId, Scope, Snapshot, State, SuspendPolicy,
};
pub use error::SpaceError;

/// One lock space around a [`LockManager`].
///
/// Each verb gives the engine one input and passes its events to the sink, in engine order.
pub struct Space<E: Embedder> {
    manager: LockManager,
    notes: Notes<E>,
    tags: IdMap<E::Tag>,
    contention: Contention,
    /// Holders that are to be notified that a request waits for their lock. Empty between inputs,
    /// unless a sink had enough.
    contended: VecDeque<RequestId>,
    /// The facts of each live request for its events, while there are subscribers.
    described: Option<IdMap<About<E::Tag>>>,
    /// Ends of requests until the description is dropped that no subscriber needs any more.
    forgotten_in: Option<usize>,
    deadlocks: DeadlockPolicy,
    /// The most entries that the search of the policy reads for one request.
    deadlock_entries_max: usize,
    /// The requests of each suspended client, from when it was suspended.
    suspended: BTreeMap<ClientId, Vec<RequestId>>,
}

/// The facts that every event of a request repeats.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct About<Tag> {
    /// The client of the request.
    pub client: ClientId,
    /// The names it asks for.
    pub scope: Scope,
    /// Exclusive, shared, or shared up to a limit.
    pub mode: Mode,
    /// The text of the client.
    pub tag: Option<Tag>,
}

impl<E: Embedder> Space<E> {
    /// Bytes that each name of a live request takes, the text of a long name aside.
    ///
    /// A name has a seat, a note and, where no other request wants it, a queue. Their tables grow
    /// by doubling.
    pub const BYTES_PER_NAME: usize = LockManager::BYTES_PER_NAME + Notes::<E>::BYTES_PER_NAME;

    /// Makes a space around an engine.
    pub fn new(manager: LockManager, deadlocks: DeadlockPolicy) -> Self {
        Self {
            notes: Notes::new(manager.shard()),
            manager,
            tags: IdMap::default(),
            contention: Contention::default(),
            contended: VecDeque::new(),
            described: None,
            forgotten_in: None,
            suspended: BTreeMap::new(),
            deadlocks,
            deadlock_entries_max: usize::MAX,
        }
    }

    /// Bounds the search of the deadlock policy: a request that has to wait behind more entries
    /// than this waits without a search.
    pub fn bound_deadlock_search(&mut self, entries_max: usize) {
        self.deadlock_entries_max = entries_max;
    }

    /// Returns true if the last input has effects that its sink had no room for. No other input
    /// may come before [`go_on`](Self::go_on) has passed them on.
    #[inline]
    pub fn has_effects(&self) -> bool {
        self.manager.has_events() || !self.contended.is_empty()
    }

    /// Passes on what an earlier input left, until the sink has enough again.
    pub fn go_on(&mut self, sink: &mut impl Sink<E>) {
        self.drain(sink);
    }

    /// Returns the engine, for questions.
    #[inline]
    pub fn manager(&self) -> &LockManager {
        &self.manager
    }

    /// Adds a client, known until it is [ended](Self::end_client).
    pub fn add_client(&mut self) -> ClientId {
        self.manager.add_client()
    }

    /// As [`LockManager::advance_token`].
    ///
    /// # Errors
    ///
    /// The token leaves too few numbers.
    pub fn advance_token(&mut self, at_least: FencingToken) -> Result<(), crate::TokenTooLarge> {
        self.manager.advance_token(at_least)
    }

    /// Requests a lock, attaches `note` and `tag` to it, and returns the outcome of this moment.
    ///
    /// # Errors
    ///
    /// The request was refused. Nothing of it is left.
    #[inline]
    pub fn request<S: Sink<E>>(
        &mut self,
        client: ClientId,
        request: &Request,
        (note, tag): (E::Note, Option<E::Tag>),
        sink: &mut S,
    ) -> Result<(RequestId, Answer), SpaceError> {
        let now = sink.now();
        let (id, answer) = self.manager.request(client, request)?;
        self.notes.attach(id, note, now);
        if let Some(tag) = tag {
            self.attach_tag(id, tag);
        }
        match answer {
            Answer::Granted(token) if self.is_quiet() => {
                if S::NOTIFIES_OWN {
                    self.notify(id, &Notice::Granted { token, since: now }, sink);
                }
            }
            Answer::Pending if self.is_quiet() && self.waits_unnoticed() => {}
            _ => self.follow_request(client, request, (id, answer), sink)?,
        }
        Ok((id, answer))
    }

    /// Requests a lock within the held lock `outer`, as [`LockManager::nest`]; otherwise as
    /// [`request`](Self::request). A lock that is over is no outer one.
    ///
    /// # Errors
    ///
    /// The request was refused, also because it would wait for its own outer lock. Nothing of it is
    /// left.
    pub fn request_within<S: Sink<E>>(
        &mut self,
        outer: Option<RequestId>,
        client: ClientId,
        request: &Request,
        (note, tag): (E::Note, Option<E::Tag>),
        sink: &mut S,
    ) -> Result<(RequestId, Answer), SpaceError> {
        let Some(outer) = outer else { return self.request(client, request, (note, tag), sink) };
        let now = sink.now();
        let (id, answer) = self.manager.request(client, request)?;
        self.manager.nest(id, outer);
        self.notes.attach(id, note, now);
        if let Some(tag) = tag {
            self.attach_tag(id, tag);
        }
        self.follow_request(client, request, (id, answer), sink)?;
        Ok((id, answer))
    }

    /// As [`LockManager::nest`], for a request that was [restored](Self::restore).
    pub fn nest(&mut self, inner: RequestId, outer: RequestId) -> bool {
        self.manager.nest(inner, outer)
    }

    /// Seats a request that held its lock in an earlier space, as [`LockManager::restore`]. No
    /// notice follows.
    pub fn restore(
        &mut self,
        client: ClientId,
        request: &Request,
        token: FencingToken,
        (note, tag): (E::Note, Option<E::Tag>),
        now: E::Time,
    ) -> Option<RequestId> {
        let id = self.manager.restore(client, request, token)?;
        self.notes.attach(id, note, now);
        if let Some(described) = &mut self.described {
            let (scope, tag) = (request.scope.clone(), tag.clone());
            described.insert(id, About { client, scope, mode: request.mode, tag });
        }
        if let Some(tag) = tag {
            self.attach_tag(id, tag);
        }
        Some(id)
    }

    /// Notes that a pending request has been pending since this moment.
    pub fn set_since(&mut self, id: RequestId, since: E::Time) {
        self.notes.grant(id, since);
    }

    /// Releases a lock. Returns false, and nothing happens, when the request holds none.
    #[inline]
    pub fn release<S: Sink<E>>(&mut self, id: RequestId, sink: &mut S) -> bool {
        let Some(heir) = self.manager.release_with_heir::<false>(id) else { return false };
        if self.is_unobserved() && self.tags.is_empty() {
            if S::NOTIFIES_OWN {
                let since = self.notes.since(id);
                self.notify(id, &Notice::Released { since }, sink);
            }
            self.pass_to(heir, sink);
        } else {
            if let Some(heir) = heir {
                self.manager.send_grant(heir);
            }
            let since = self.notes.since(id);
            self.follow_release(id, &Notice::Released { since }, sink);
        }
        true
    }

    /// Gives a held lock a larger limit in place, as [`LockManager::downgrade`].
    ///
    /// # Errors
    ///
    /// Nothing has changed: the request holds no lock, or the limit would become smaller.
    pub fn downgrade(
        &mut self,
        id: RequestId,
        mode: Mode,
        sink: &mut impl Sink<E>,
    ) -> Result<(), DowngradeError> {
        self.manager.downgrade(id, mode)?;
        if let Some(about) = self.described.as_mut().and_then(|described| described.get_mut(&id)) {
            about.mode = mode;
        }
        let notice = Notice::Downgraded(mode);
        self.notify(id, &notice, sink);
        self.publish(id, &notice, sink);
        self.drain(sink);
        Ok(())
    }

    /// Takes a pending request out of the queue. Returns false, and nothing happens, when it is not
    /// pending.
    pub fn abort(&mut self, id: RequestId, sink: &mut impl Sink<E>) -> bool {
        let aborted = self.manager.abort(id);
        if aborted {
            self.follow_release(id, &Notice::Withdrawn, sink);
        }
        aborted
    }

    /// Takes away all locks held on a name. Returns how many there were.
    pub fn force_release(&mut self, name: &Name, sink: &mut impl Sink<E>) -> usize {
        let count = self.manager.force_release(name);
        self.drain(sink);
        count
    }

    /// Takes away the lock of one request. Returns false, and nothing happens, when it holds none.
    pub fn force_release_one(&mut self, id: RequestId, sink: &mut impl Sink<E>) -> bool {
        let released = self.manager.force_release_one(id);
        self.drain(sink);
        released
    }

    /// Takes away the lock of one request because its time is over, as [`LockManager::expire`].
    pub fn expire(&mut self, id: RequestId, sink: &mut impl Sink<E>) -> bool {
        let expired = self.manager.expire(id);
        self.drain(sink);
        expired
    }

    /// Suspends a client, as [`LockManager::suspend`]. Returns false when it is not known or
    /// already suspended.
    pub fn suspend(
        &mut self,
        client: ClientId,
        policy: SuspendPolicy,
        sink: &mut impl Sink<E>,
    ) -> bool {
        let requests: Vec<RequestId> = self.manager.requests_of(client).collect();
        let suspended = self.manager.suspend(client, policy);
        if suspended && !requests.is_empty() {
            requests.iter().for_each(|&id| self.notes.set_aside(id));
            self.suspended.insert(client, requests);
        }
        self.drain(sink);
        suspended
    }

    /// Resumes a client, as [`LockManager::resume`]: the sink receives its events of the meantime.
    /// Returns false when it is not known or not suspended.
    pub fn resume(&mut self, client: ClientId, sink: &mut impl Sink<E>) -> bool {
        let resumed = self.manager.resume(client);
        self.drain(sink);
        self.put_notes_back(client);
        resumed
    }

    /// Returns the lock state as a client sees it, as [`LockManager::query`], which evicts
    /// suspended clients.
    pub fn query(&mut self, sink: &mut impl Sink<E>) -> Snapshot {
        let snapshot = self.manager.query();
        self.drain(sink);
        snapshot
    }

    /// Ends a client and all its requests. Returns false when it is not known.
    pub fn end_client(&mut self, client: ClientId, sink: &mut impl Sink<E>) -> bool {
        self.end_clients(&[client], sink) == 1
    }

    /// Ends several clients in one input: none of them is granted a lock of another. Returns how
    /// many of them were known.
    pub fn end_clients(&mut self, clients: &[ClientId], sink: &mut impl Sink<E>) -> usize {
        let requests = clients.iter().flat_map(|&client| self.manager.requests_of(client));
        let requests: Vec<RequestId> = requests.collect();
        for id in requests {
            let held = matches!(self.manager.state(id), Some(State::Held(_)));
            let held_since = held.then(|| self.notes.since(id));
            self.end(id, &Notice::ClientEnded { held_since }, sink);
        }
        let known = self.manager.terminate_all(clients);
        self.drain(sink);
        for &client in clients {
            self.put_notes_back(client);
        }
        known
    }

    /// Ends what [`suspend`](Self::suspend) began for the notes of a client.
    fn put_notes_back(&mut self, client: ClientId) {
        for id in self.suspended.remove(&client).into_iter().flatten() {
            self.notes.put_back(id, self.manager.state(id).is_some());
        }
    }

    /// Notifies the holder of a lock, once, when a request waits for it: at once if one does
    /// already.
    pub fn watch_contention(&mut self, id: RequestId, sink: &mut impl Sink<E>) {
        if self.manager.is_contended(id) {
            self.notify(id, &Notice::Contended, sink);
        } else if let Some(info) = self.manager.info(id) {
            self.contention.watch(id, info.scope);
        }
    }

    /// Ends a [watch](Self::watch_contention).
    pub fn unwatch_contention(&mut self, id: RequestId) {
        self.contention.unwatch(id);
    }

    /// Begins to publish: from now on the sink receives every notice for subscribers.
    pub fn describe(&mut self) {
        self.forgotten_in = None;
        if self.described.is_some() {
            return;
        }
        let now = self.manager.snapshot();
        let live = now.held.into_iter().chain(now.pending).map(|info| {
            let tag = self.tags.get(&info.request).cloned();
            let (client, scope, mode) = (info.client, info.scope, info.mode);
            (info.request, About { client, scope, mode, tag })
        });
        self.described = Some(live.collect());
    }

    /// Ends publishing. Its facts about requests are dropped after as many requests have ended, so
    /// that starting and stopping repeatedly does not copy the space each time.
    pub fn stop_describing(&mut self) {
        if let Some(described) = &self.described {
            self.forgotten_in.get_or_insert(described.len());
            self.forget_description();
        }
    }

    fn forget_description(&mut self) {
        if self.forgotten_in == Some(0) {
            self.described = None;
            self.forgotten_in = None;
        }
    }

    /// Moves everything from the shards of a divided space into this one, which is the whole.
    #[cfg(target_has_atomic = "64")]
    pub fn gather<'a, const COUNT: usize>(&mut self, mut shards: [&'a mut Self; COUNT])
    where
        E: 'a,
    {
        let managers: Vec<&LockManager> = shards.iter().map(|shard| &shard.manager).collect();
        self.manager = LockManager::whole(&managers);
        for (number, shard) in shards.iter_mut().enumerate() {
            shard.manager.forget_requests();
            self.notes.absorb(&mut shard.notes, number, COUNT);
            self.tags.extend(core::mem::take(&mut shard.tags));
            self.contention.absorb(core::mem::take(&mut shard.contention));
        }
    }
}

impl<E> fmt::Debug for Space<E>
where
    E: Embedder<Note: fmt::Debug, Time: fmt::Debug, Tag: fmt::Debug>,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { manager, notes, tags, contention, described, deadlocks, .. } = self;
        f.debug_struct("Space")
            .field("manager", manager)
            .field("notes", notes)
            .field("tags", tags)
            .field("contention", contention)
            .field("described", described)
            .field("deadlocks", deadlocks)
            .finish_non_exhaustive()
    }
}
