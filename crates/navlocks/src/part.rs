//! One part of a lock space: an engine, and who is to be woken.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Waker;
use std::time::Duration;

use navlocks_core::{Answer as Decided, ClientId, Event, LockManager, RequestId, State as Stage};

use crate::clock::Moment;
use crate::error::Loss;
use crate::events::Kind as What;
use crate::request::Request;
use crate::subscribers::{About, Inboxes, Subscribers as Listeners};
use crate::sync::AtomicU64;
use crate::wakes::Wakes;
use crate::watch::Watches;

/// What is behind one mutex.
#[derive(Debug)]
pub(crate) struct Part {
    pub(crate) manager: LockManager,
    /// What is known of each live request beyond the engine, by [`LockManager::slot_in_shard`].
    asked: Vec<Asked>,
    /// The tags of live requests that have one.
    tags: HashMap<RequestId, Arc<str>>,
    /// Requests that ended otherwise than by their owner, who has yet to hear of it or to let go.
    ended: HashMap<RequestId, Loss>,
    pub(crate) watches: Watches,
    pub(crate) listeners: Listeners,
    /// Whom this input concerns. Empty between inputs.
    pub(crate) wakes: Wakes,
    /// How often an input left no request here, if this is the whole. The space counts.
    pub(crate) idle_times: u32,
}

#[derive(Debug)]
struct Asked {
    waker: Option<Waker>,
    /// When it was requested, and once held when it was granted.
    since: Moment,
}

/// Above this many slots, an idle part gives memory back.
const IDLE_CAPACITY: usize = 1024;

impl Part {
    pub(crate) fn new(manager: LockManager) -> Self {
        Self {
            manager,
            asked: Vec::new(),
            tags: HashMap::new(),
            ended: HashMap::new(),
            watches: Watches::default(),
            listeners: Listeners::default(),
            wakes: Wakes::default(),
            idle_times: 0,
        }
    }

    /// Whether there is nothing here, not even something to hear of.
    pub(crate) fn is_idle(&self) -> bool {
        let Self { manager, ended, watches, listeners, .. } = self;
        manager.name_count() == 0 && ended.is_empty() && watches.is_empty() && listeners.is_empty()
    }

    /// Takes over what is noted in another part. `slot` says where, for each request of the other.
    pub(crate) fn absorb(&mut self, other: &mut Self, slot: impl Fn(usize) -> usize) {
        other.manager.forget_requests();
        for (own, asked) in std::mem::take(&mut other.asked).into_iter().enumerate() {
            let since = asked.since;
            *self.asked_at(slot(own), since) = asked;
        }
        self.tags.extend(std::mem::take(&mut other.tags));
        self.ended.extend(std::mem::take(&mut other.ended));
        self.watches.absorb(std::mem::take(&mut other.watches));
    }

    /// Whether an input concerned nobody but who made it, and leaves nothing to do.
    #[inline]
    pub(crate) fn is_settled(&self) -> bool {
        !self.manager.has_events() && self.wakes.is_empty() && !self.has_idle_memory()
    }

    #[inline]
    fn has_idle_memory(&self) -> bool {
        self.asked.capacity() > IDLE_CAPACITY && self.manager.name_count() == 0
    }

    /// Passes on what the engine says after an input.
    pub(crate) fn pass_all_on(&mut self, losses: &AtomicU64) {
        while let Some(event) = self.manager.poll_event() {
            self.pass_on(event, losses);
        }
        if self.has_idle_memory() {
            self.asked = Vec::new();
        }
    }

    /// Requests a lock. Subscribers receive the request and all that it causes, in order.
    #[inline]
    pub(crate) fn request(
        &mut self,
        request: &Request,
        since: Moment,
        losses: &AtomicU64,
    ) -> Result<(RequestId, Decided), navlocks_core::RequestError> {
        let (id, answer) = self.manager.request(request.owner.id, &request.asked)?;
        if answer != Decided::Unavailable {
            self.note(id, request.tag_of(), since);
        }
        if !self.listeners.is_empty() {
            self.announce(id, request, answer, losses);
        }
        Ok((id, answer))
    }

    /// Where the waker of a request that waits is kept.
    #[inline]
    pub(crate) fn waker(&mut self, id: RequestId) -> &mut Option<Waker> {
        &mut self.asked(id).waker
    }

    /// The tag of a live request, and how long it has been what it is.
    pub(crate) fn about(&self, id: RequestId) -> (Option<Arc<str>>, Duration) {
        let asked = &self.asked[self.manager.slot_in_shard(id)];
        (self.tags.get(&id).cloned(), asked.since.age())
    }

    /// Why a lock is no more, if it is.
    pub(crate) fn loss(&self, id: RequestId) -> Option<Loss> {
        self.ended.get(&id).copied()
    }

    /// Runs `work` on the event streams.
    pub(crate) fn listen<T>(&mut self, work: impl FnOnce(&mut Inboxes) -> T) -> T {
        let Self { listeners, manager, tags, .. } = self;
        listeners.change(work, manager, |id| tags.get(&id).cloned())
    }

    /// Ends a client. In the standard nobody is left to hear of it; here guards and futures of it may live on.
    pub(crate) fn end_client(&mut self, client: ClientId, losses: &AtomicU64) {
        let requests: Vec<RequestId> = self.manager.requests_of(client).collect();
        for id in requests {
            let pending = self.manager.state(id) == Some(Stage::Pending);
            let what = if pending { What::Aborted } else { What::Lost };
            self.end(id, Loss::ClientEnded, what);
            losses.fetch_add(1, Ordering::Release);
        }
        self.manager.terminate(client);
    }

    /// Notes what the engine does not know of a new request.
    #[inline]
    fn note(&mut self, id: RequestId, tag: Option<&Arc<str>>, since: Moment) {
        self.asked_at(self.manager.slot_in_shard(id), since).since = since;
        if let Some(tag) = tag {
            self.note_tag(id, tag);
        }
    }

    #[cold]
    fn note_tag(&mut self, id: RequestId, tag: &Arc<str>) {
        self.tags.insert(id, tag.clone());
    }

    /// What is noted at a slot, if need be from now on.
    #[inline]
    fn asked_at(&mut self, slot: usize, since: Moment) -> &mut Asked {
        // Slots of requests that are over were cleared; a scope takes one slot a name, so some are skipped.
        if slot >= self.asked.len() {
            self.make_room(slot + 1, since);
        }
        &mut self.asked[slot]
    }

    #[cold]
    fn make_room(&mut self, count: usize, since: Moment) {
        self.asked.resize_with(count, || Asked { waker: None, since });
    }

    /// What is noted of a live request.
    #[inline]
    fn asked(&mut self, id: RequestId) -> &mut Asked {
        &mut self.asked[self.manager.slot_in_shard(id)]
    }

    /// Sends subscribers a request, its outcome, and what it caused for others, in engine order.
    #[cold]
    fn announce(&mut self, id: RequestId, request: &Request, answer: Decided, losses: &AtomicU64) {
        let (client, tag) = (request.owner.id, request.tag_of().cloned());
        let navlocks_core::Request { scope, mode, .. } = &request.asked;
        let about = About { client, scope: scope.clone(), mode: *mode, tag };
        self.listeners.requested(id, about, &mut self.wakes);
        let mut own = Some(answer);
        while let Some(event) = self.manager.poll_event() {
            if let Event::Granted { .. } = event {
                self.announce_outcome(id, own.take());
            }
            self.pass_on(event, losses);
        }
        self.announce_outcome(id, own);
    }

    fn announce_outcome(&mut self, id: RequestId, answer: Option<Decided>) {
        match answer {
            Some(Decided::Granted(token)) => {
                self.listeners.tell(id, || What::Granted(token), &mut self.wakes);
            }
            Some(Decided::Unavailable) => {
                self.listeners.end(id, || What::Unavailable, &mut self.wakes);
            }
            Some(Decided::Pending) | None => {}
        }
    }

    pub(crate) fn abort(&mut self, id: RequestId) -> bool {
        let aborted = self.manager.abort(id);
        if aborted {
            self.listeners.end(id, || What::Withdrawn, &mut self.wakes);
            self.forget(id);
        }
        aborted
    }

    /// Releases a lock, or returns how it was lost and forgets that.
    #[inline]
    pub(crate) fn release(&mut self, id: RequestId) -> Result<(), Loss> {
        if !self.manager.release(id) {
            return Err(self.hear(id));
        }
        // A held request has no waker.
        if !(self.listeners.is_empty() && self.watches.is_empty() && self.tags.is_empty()) {
            self.forget_released(id);
        }
        Ok(())
    }

    #[cold]
    fn forget_released(&mut self, id: RequestId) {
        self.watches.over(id, &mut self.wakes);
        self.listeners.end(id, || What::Released, &mut self.wakes);
        self.tags.remove(&id);
    }

    /// A request that waited holds its lock now. Returns whom to wake.
    #[inline]
    fn take_heir(&mut self, id: RequestId) -> Option<Waker> {
        let asked = self.asked(id);
        let heir = asked.waker.take()?;
        asked.since = Moment::now();
        Some(heir)
    }

    /// Clears what was noted of a request that is over.
    #[inline]
    fn forget(&mut self, id: RequestId) {
        if let Some(waker) = self.waker(id).take() {
            self.wakes.discard(waker);
        }
        if !self.tags.is_empty() {
            self.tags.remove(&id);
        }
    }

    /// What ended a request that is not alive, told to its owner once.
    pub(crate) fn hear(&mut self, id: RequestId) -> Loss {
        // Only an owner asks, and only once: there is always an answer.
        self.ended.remove(&id).unwrap_or(Loss::ClientEnded)
    }

    /// A request came to its end by somebody else's doing.
    fn end(&mut self, id: RequestId, loss: Loss, what: fn(Loss) -> What) {
        self.ended.insert(id, loss);
        let waker = self.waker(id).take();
        self.wakes.add_all(waker);
        self.forget(id);
        self.watches.over(id, &mut self.wakes);
        self.listeners.end(id, || what(loss), &mut self.wakes);
    }

    /// Passes one of the engine's events on to those whom it concerns.
    #[inline]
    fn pass_on(&mut self, event: Event, losses: &AtomicU64) {
        match event {
            Event::Granted { request, token, .. } => {
                let heir = self.take_heir(request);
                self.wakes.add_all(heir);
                self.listeners.tell(request, || What::Granted(token), &mut self.wakes);
            }
            Event::Lost { request, cause, .. } => {
                losses.fetch_add(1, Ordering::Release);
                self.end(request, cause.into(), What::Lost);
            }
            Event::Aborted { request, cause, .. } => {
                self.end(request, cause.into(), What::Aborted);
            }
            // A client in this process is never suspended.
            Event::Evicted { .. } => {}
        }
    }
}
