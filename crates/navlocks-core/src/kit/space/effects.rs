//! The effects of an input: notices for other requests and for subscribers, in engine order.

use super::Space;
use crate::id::Index;
use crate::kit::ids::IdMap;
use crate::kit::{About, Embedder, Notice, Sink, SpaceError};
use crate::{Answer, ClientId, DeadlockPolicy, Event, FencingToken, Request, RequestId, Scope};

impl<E: Embedder> Space<E> {
    /// Returns true if no subscriber and no holder watches the requests.
    #[inline]
    pub(super) fn is_unobserved(&self) -> bool {
        self.described.is_none() && self.contention.is_empty()
    }

    /// Returns true if an input had no effect on other clients, and no subscriber needs to know it.
    #[inline]
    pub(super) fn is_quiet(&self) -> bool {
        !self.manager.has_events() && self.described.is_none()
    }

    /// Returns true if no holder and no policy needs to know that a request waits.
    #[inline]
    pub(super) fn waits_unnoticed(&self) -> bool {
        self.deadlocks == DeadlockPolicy::Ignore && self.contention.is_empty()
    }

    #[inline(never)]
    pub(super) fn follow_request(
        &mut self,
        client: ClientId,
        request: &Request,
        (id, answer): (RequestId, Answer),
        sink: &mut impl Sink<E>,
    ) -> Result<(), SpaceError> {
        if let Some(described) = &mut self.described {
            let tag = self.tags.get(&id).cloned();
            let about = About { client, scope: request.scope.clone(), mode: request.mode, tag };
            described.insert(id, about);
            self.publish(id, &Notice::Requested, sink);
        }
        match answer {
            Answer::Granted(token) => {
                self.manager.insert_grant(id, client, token);
                self.drain(sink);
            }
            Answer::Unavailable => {
                self.drain(sink);
                self.end(id, &Notice::Unavailable, sink);
            }
            Answer::Pending => {
                self.begin_to_wait(id, &request.scope, sink)?;
                self.drain(sink);
            }
        }
        Ok(())
    }

    /// Applies the deadlock policy to a request that has to wait, and notifies holders that watch
    /// for contention.
    pub(super) fn begin_to_wait(
        &mut self,
        id: RequestId,
        scope: &Scope,
        sink: &mut impl Sink<E>,
    ) -> Result<(), SpaceError> {
        let own = self.manager.own_deadlock(id);
        let closed = match self.deadlocks {
            DeadlockPolicy::Ignore => None,
            _ if own.is_some() => None,
            _ => self.manager.deadlock_closed_by(id, self.deadlock_entries_max),
        };
        if let Some(deadlock) = own.or(closed) {
            self.notify(id, &Notice::Deadlock(&deadlock), sink);
            self.publish(id, &Notice::Deadlock(&deadlock), sink);
            if self.deadlocks == DeadlockPolicy::Refuse || deadlock.outer.is_some() {
                self.abort(id, sink);
                return Err(SpaceError::Deadlock(deadlock));
            }
        }
        self.contended.extend(self.contention.take_contended(scope, &self.manager));
        Ok(())
    }

    #[inline(never)]
    pub(super) fn follow_release(
        &mut self,
        id: RequestId,
        notice: &Notice<'_, E::Time>,
        sink: &mut impl Sink<E>,
    ) {
        self.end(id, notice, sink);
        self.drain(sink);
    }

    /// Passes on the effects of a release where no request is observed: one heir, or events.
    #[inline(always)]
    pub(super) fn pass_to(&mut self, heir: Option<Index>, sink: &mut impl Sink<E>) {
        if let Some(heir) = heir {
            let (id, token) = self.manager.grant_of(heir);
            let since = self.notes.grant_in(heir, sink.now());
            self.notify(id, &Notice::Granted { token, since }, sink);
        }
        if self.manager.has_events() {
            self.drain(sink);
        } else {
            self.drop_idle_memory();
        }
    }

    /// Passes the engine's events on, until the sink has enough.
    #[inline(never)]
    pub(super) fn drain(&mut self, sink: &mut impl Sink<E>) {
        while let Some(&lock) = self.contended.front() {
            if sink.has_enough() {
                return;
            }
            self.notify(lock, &Notice::Contended, sink);
            self.contended.pop_front();
        }
        while let Some(event) = self.manager.first_event() {
            if sink.has_enough() {
                return;
            }
            self.pass_on(event, sink);
            self.manager.drop_first_event();
        }
        self.drop_idle_memory();
    }

    #[inline(always)]
    pub(super) fn pass_on(&mut self, event: Event, sink: &mut impl Sink<E>) {
        match event {
            Event::Granted { request, token, .. } => self.granted(request, token, sink),
            Event::Lost { request, cause, .. } => {
                let since = self.notes.since(request);
                self.end(request, &Notice::Lost { cause, since }, sink);
            }
            Event::Aborted { request, cause, .. } => {
                self.end(request, &Notice::Aborted(cause), sink);
            }
            Event::Evicted { client } => sink.evicted(client),
        }
    }

    #[inline(always)]
    pub(super) fn granted(&mut self, id: RequestId, token: FencingToken, sink: &mut impl Sink<E>) {
        let since = self.notes.grant(id, sink.now());
        let notice = Notice::Granted { token, since };
        self.notify(id, &notice, sink);
        if !self.is_unobserved() {
            self.show_grant(id, &notice, sink);
        }
    }

    #[inline(never)]
    pub(super) fn show_grant(
        &mut self,
        id: RequestId,
        notice: &Notice<'_, E::Time>,
        sink: &mut impl Sink<E>,
    ) {
        self.publish(id, notice, sink);
        if self.manager.is_contended(id) && self.contention.unwatch(id) {
            self.notify(id, &Notice::Contended, sink);
        }
    }

    /// Notifies the last that happens to a request, and forgets it.
    #[inline(never)]
    pub(super) fn end(
        &mut self,
        id: RequestId,
        notice: &Notice<'_, E::Time>,
        sink: &mut impl Sink<E>,
    ) {
        self.notify(id, notice, sink);
        self.publish(id, notice, sink);
        if let Some(described) = &mut self.described {
            described.remove(&id);
            if let Some(left) = &mut self.forgotten_in {
                *left = left.saturating_sub(1);
                self.forget_description();
            }
        }
        self.contention.unwatch(id);
        if !self.tags.is_empty() {
            self.tags.remove(&id);
        }
    }

    #[inline(always)]
    pub(super) fn notify(
        &mut self,
        id: RequestId,
        notice: &Notice<'_, E::Time>,
        sink: &mut impl Sink<E>,
    ) {
        sink.notify(id, &mut self.notes, notice);
    }

    pub(super) fn publish(
        &self,
        id: RequestId,
        notice: &Notice<'_, E::Time>,
        sink: &mut impl Sink<E>,
    ) {
        if self.forgotten_in.is_none()
            && let Some(about) = self.described.as_ref().and_then(|described| described.get(&id))
        {
            sink.publish(id, about, &self.notes, notice);
        }
    }

    #[cold]
    pub(super) fn attach_tag(&mut self, id: RequestId, tag: E::Tag) {
        self.tags.insert(id, tag);
    }

    #[inline(always)]
    pub(super) fn drop_idle_memory(&mut self) {
        if self.notes.has_idle_memory() {
            self.drop_memory_if_idle();
        }
    }

    #[inline(never)]
    pub(super) fn drop_memory_if_idle(&mut self) {
        if self.manager.name_count() == 0 {
            self.notes.clear();
            self.tags = IdMap::default();
        }
    }
}
