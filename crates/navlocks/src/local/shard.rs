//! A shard: one space of the embedding kit, and the tasks that its notices concern.

use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::task::{Poll, Waker};
use std::time::Duration;

use navlocks_core::kit::{About, Embedder, Notes, Notice, Sink, Space, SpaceError};
use navlocks_core::{
    Answer, Blockers, ClientId, DeadlockPolicy, LockManager, Mode, Name, Request, RequestId,
    State as Stage,
};

use super::holds::Holds;
use super::watchers::Watchers;
use crate::backend::Watched;
use crate::backend::extras::Extras;
use crate::backend::inbox::Inboxes;
use crate::error::{DowngradeError, LossCause};
use crate::events::{Event, EventKind};
use crate::query::{Place, RequestInfo};
use crate::sync::AtomicU64;
use crate::sync::clock::Moment;
use crate::sync::wakes::Wakes;

/// The state behind one mutex.
#[derive(Debug)]
pub(super) struct Shard {
    space: Space<Tasks>,
    notices: Notices,
    /// How often an input left no request here, if this is the whole; counted by the lock space.
    pub(super) idle_times: u32,
}

/// The types that this backend attaches to a request: the waker of its task, while it waits.
#[derive(Debug)]
struct Tasks;

impl Embedder for Tasks {
    type Note = Option<Waker>;
    type Time = Moment;
    type Tag = Arc<str>;
}

/// Notices that tasks have yet to receive.
#[derive(Debug, Default)]
struct Notices {
    /// Requests that another client ended, until their future or guard is gone.
    ended: HashMap<RequestId, LossCause>,
    watchers: Watchers,
    holds: Holds,
    inboxes: Inboxes,
    /// To be woken after unlocking. Empty between inputs.
    wakes: Wakes,
}

/// Collects the notices of one input.
struct Collect<'a> {
    notices: &'a mut Notices,
    /// The losses of the whole lock space.
    losses: &'a AtomicU64,
    /// The time of this input, if it was read before locking. Most releases need none.
    now: Option<Moment>,
}

impl Shard {
    pub(super) fn new(manager: LockManager, deadlocks: DeadlockPolicy) -> Self {
        let space = Space::new(manager, deadlocks);
        Self { space, notices: Notices::default(), idle_times: 0 }
    }

    /// Returns the engine, for questions.
    #[inline]
    pub(super) fn manager(&self) -> &LockManager {
        self.space.manager()
    }

    pub(super) fn add_client(&mut self) -> ClientId {
        self.space.add_client()
    }

    /// Returns true if no request is left, and no task has something to receive.
    pub(super) fn is_idle(&self) -> bool {
        let Notices { ended, watchers, holds, inboxes, .. } = &self.notices;
        self.space.is_idle()
            && holds.is_empty()
            && ended.is_empty()
            && watchers.is_empty()
            && inboxes.is_empty()
    }

    /// Takes everything from the shards of a divided lock space.
    pub(super) fn gather<const COUNT: usize>(&mut self, mut shards: [&mut Self; COUNT]) {
        self.space.gather(shards.each_mut().map(|shard| &mut shard.space));
        for shard in shards {
            let Notices { ended, watchers, holds, .. } = std::mem::take(&mut shard.notices);
            self.notices.ended.extend(ended);
            self.notices.holds.absorb(holds);
            self.notices.watchers.absorb(watchers);
        }
    }

    /// Returns true if an input has no task to wake.
    #[inline]
    pub(super) fn is_settled(&self) -> bool {
        self.notices.wakes.is_empty()
    }

    #[inline]
    pub(super) fn take_wakes(&mut self) -> Wakes {
        self.notices.wakes.take()
    }

    #[inline]
    pub(super) fn request(
        &mut self,
        client: ClientId,
        request: &Request,
        extras: Option<&Extras>,
        now: Moment,
        losses: &AtomicU64,
    ) -> Result<(RequestId, Answer), SpaceError> {
        let Self { space, notices, .. } = self;
        let mut sink = Collect { notices, losses, now: Some(now) };
        let tag = extras.and_then(|extras| extras.tag.clone());
        match extras.and_then(|extras| extras.within) {
            None => space.request(client, request, (None, tag), &mut sink),
            outer => space.request_within(outer, client, request, (None, tag), &mut sink),
        }
    }

    /// Notes for how long a live request may hold its lock. If it holds it now, the time begins.
    #[cold]
    pub(super) fn limit_hold(&mut self, id: RequestId, max: Duration, space: &Weak<super::Space>) {
        let Some(stage) = self.stage(id) else { return };
        let Notices { holds, wakes, .. } = &mut self.notices;
        holds.add(id, max, space.clone());
        if let Stage::Held(_) = stage {
            holds.begin(id, wakes);
        }
    }

    /// Takes away a lock whose time is over.
    pub(super) fn expire(&mut self, id: RequestId, losses: &AtomicU64) {
        self.input(losses, |space, sink| space.expire(id, sink));
    }

    /// Keeps the waker of a pending request. Returns an earlier one, to be dropped after unlocking.
    #[inline]
    pub(super) fn register(&mut self, id: RequestId, waker: &Waker) -> Option<Waker> {
        let known = self.space.note_mut(id)?;
        if known.as_ref().is_some_and(|known| known.will_wake(waker)) {
            return None;
        }
        known.replace(waker.clone())
    }

    /// Releases a lock, or returns how it was lost and forgets that.
    #[inline]
    pub(super) fn release(&mut self, id: RequestId, losses: &AtomicU64) -> Result<(), LossCause> {
        let Self { space, notices, .. } = self;
        if space.release(id, &mut Collect { notices, losses, now: None }) {
            notices.watchers.end(id, &mut notices.wakes);
            notices.holds.end(id);
            Ok(())
        } else {
            Err(self.take_loss(id))
        }
    }

    pub(super) fn downgrade(
        &mut self,
        id: RequestId,
        mode: Mode,
        losses: &AtomicU64,
    ) -> Result<(), DowngradeError> {
        let downgraded = self.input(losses, |space, sink| space.downgrade(id, mode, sink));
        downgraded.map_err(|error| match error {
            navlocks_core::DowngradeError::Upgrade => DowngradeError::Upgrade,
            navlocks_core::DowngradeError::NotHeld => {
                DowngradeError::Lost(self.loss(id).unwrap_or(LossCause::ClientEnded))
            }
        })
    }

    pub(super) fn abort(&mut self, id: RequestId, losses: &AtomicU64) -> bool {
        self.input(losses, |space, sink| space.abort(id, sink))
    }

    pub(super) fn force_release(&mut self, name: &Name, losses: &AtomicU64) -> usize {
        self.input(losses, |space, sink| space.force_release(name, sink))
    }

    /// Ends a client. Guards and futures of it may live on, and receive the loss.
    pub(super) fn end_client(&mut self, client: ClientId, losses: &AtomicU64) {
        self.input(losses, |space, sink| space.end_client(client, sink));
    }

    fn input<T>(
        &mut self,
        losses: &AtomicU64,
        input: impl FnOnce(&mut Space<Tasks>, &mut Collect<'_>) -> T,
    ) -> T {
        let Self { space, notices, .. } = self;
        input(space, &mut Collect { notices, losses, now: None })
    }

    pub(super) fn stage(&self, id: RequestId) -> Option<Stage> {
        self.manager().state(id)
    }

    /// Returns how a lock was lost, if it was.
    pub(super) fn loss(&self, id: RequestId) -> Option<LossCause> {
        self.notices.ended.get(&id).cloned()
    }

    /// Takes how a request ended that is not live: its future or guard asks once.
    pub(super) fn take_loss(&mut self, id: RequestId) -> LossCause {
        self.notices.ended.remove(&id).unwrap_or(LossCause::ClientEnded)
    }

    /// Returns the tag of a live request, for how long it has been pending or held, and for how
    /// long it may be held.
    pub(super) fn about(&self, id: RequestId) -> (Option<Arc<str>>, Duration, Option<Duration>) {
        (
            self.space.tag(id).cloned(),
            self.space.notes().since(id).age(),
            self.notices.holds.max(id),
        )
    }

    /// Returns where a pending request stands.
    pub(super) fn place(&self, id: RequestId) -> Option<Place> {
        let manager = self.manager();
        if manager.state(id) != Some(Stage::Pending) {
            return None;
        }
        let Blockers { hard, soft } = manager.blockers(id);
        let held = hard.iter().filter_map(|&id| manager.info(id));
        let held = held.map(|info| RequestInfo::new(info, |id| self.about(id))).collect();
        Some(Place { before: soft.len(), holders: hard.len(), held })
    }

    /// Registers a watch unless its event has come, and returns a waker to be dropped after
    /// unlocking.
    pub(super) fn watch(
        &mut self,
        id: RequestId,
        watched: Watched,
        watch: &mut Option<u64>,
        waker: Waker,
        losses: &AtomicU64,
    ) -> (Poll<Result<(), LossCause>>, Option<Waker>) {
        if let Some(loss) = self.loss(id) {
            return (Poll::Ready(Err(loss)), Some(waker));
        }
        if self.stage(id).is_none() {
            return (Poll::Ready(Ok(())), Some(waker));
        }
        if watched == Watched::Contention {
            if self.manager().is_contended(id) {
                return (Poll::Ready(Ok(())), Some(waker));
            }
            self.input(losses, |space, sink| space.watch_contention(id, sink));
        }
        (Poll::Pending, self.notices.watchers.register(id, watched, watch, waker))
    }

    /// Ends a watch. Returns a waker to be dropped after unlocking.
    pub(super) fn unwatch(&mut self, id: RequestId, watch: u64) -> Option<Waker> {
        let waker = self.notices.watchers.unregister(id, watch);
        if !self.notices.watchers.watch_contention(id) {
            self.space.unwatch_contention(id);
        }
        waker
    }

    /// Runs `work` on the inboxes. Requests are described as long as there is one.
    pub(super) fn with_inboxes(&mut self, work: &mut dyn FnMut(&mut Inboxes)) {
        work(&mut self.notices.inboxes);
        if self.notices.inboxes.is_empty() {
            self.space.stop_describing();
        } else {
            self.space.describe();
        }
    }
}

impl Sink<Tasks> for Collect<'_> {
    // Futures and guards take their own grant and release from the answer.
    const NOTIFIES_OWN: bool = false;

    #[inline]
    fn now(&self) -> Moment {
        self.now.unwrap_or_else(Moment::now)
    }

    // Inlined, so that nothing is left of it on the fast path.
    #[inline(always)]
    fn notify(&mut self, id: RequestId, notes: &mut Notes<Tasks>, notice: &Notice<'_, Moment>) {
        match *notice {
            Notice::Granted { .. } => {
                if let Some(waker) = take_waker(notes, id) {
                    self.notices.wakes.add(waker);
                }
                if !self.notices.holds.is_empty() {
                    let Notices { holds, wakes, .. } = &mut *self.notices;
                    holds.begin(id, wakes);
                }
            }
            Notice::Released { .. } => {
                let Notices { watchers, wakes, .. } = &mut *self.notices;
                watchers.end(id, wakes);
            }
            Notice::Lost { cause, .. } => self.lose(id, notes, cause.into()),
            Notice::Aborted(cause) => self.end(id, notes, cause.into()),
            Notice::ClientEnded { .. } => self.lose(id, notes, LossCause::ClientEnded),
            Notice::Withdrawn => {
                self.notices.holds.end(id);
                if let Some(waker) = take_waker(notes, id) {
                    self.notices.wakes.discard(waker);
                }
            }
            Notice::Contended => {
                let Notices { watchers, wakes, .. } = &mut *self.notices;
                watchers.contend(id, wakes);
            }
            Notice::Requested
            | Notice::Downgraded(_)
            | Notice::Unavailable
            | Notice::Deadlock(_) => {}
        }
    }

    #[cold]
    fn publish(
        &mut self,
        id: RequestId,
        about: &About<Arc<str>>,
        _notes: &Notes<Tasks>,
        notice: &Notice<'_, Moment>,
    ) {
        let kind = match *notice {
            Notice::Requested => EventKind::Requested,
            Notice::Granted { token, .. } => EventKind::Granted(token),
            Notice::Unavailable => EventKind::Unavailable,
            Notice::Downgraded(_) => EventKind::Downgraded,
            Notice::Released { .. } => EventKind::Released,
            Notice::Withdrawn => EventKind::Withdrawn,
            Notice::Aborted(cause) => EventKind::Aborted(cause.into()),
            Notice::Lost { cause, .. } => EventKind::Lost(cause.into()),
            Notice::ClientEnded { held_since: Some(_) } => EventKind::Lost(LossCause::ClientEnded),
            Notice::ClientEnded { held_since: None } => EventKind::Aborted(LossCause::ClientEnded),
            Notice::Deadlock(deadlock) => EventKind::Deadlock(deadlock.clone().into()),
            Notice::Contended => return,
        };
        let About { client, scope, mode, tag } = about.clone();
        let (traceparent, pid) = (None, None);
        let event = Event { request: id, client, scope, mode, tag, traceparent, pid, kind };
        let Notices { inboxes, wakes, .. } = &mut *self.notices;
        inboxes.deliver(&event, wakes);
    }
}

impl Collect<'_> {
    /// Ends a request whose client did not receive its last notice yet, and counts the loss.
    fn lose(&mut self, id: RequestId, notes: &mut Notes<Tasks>, loss: LossCause) {
        self.losses.fetch_add(1, Ordering::Release);
        self.end(id, notes, loss);
    }

    /// Ends a request that another client ended.
    fn end(&mut self, id: RequestId, notes: &mut Notes<Tasks>, loss: LossCause) {
        let Notices { ended, watchers, holds, wakes, .. } = &mut *self.notices;
        ended.insert(id, loss);
        holds.end(id);
        wakes.add_all(take_waker(notes, id));
        watchers.end(id, wakes);
    }
}

#[inline]
fn take_waker(notes: &mut Notes<Tasks>, id: RequestId) -> Option<Waker> {
    notes.get_mut(id)?.take()
}
