//! Release, abort, terminate, force-release: an entry leaves, and the queue goes on.

use alloc::vec::Vec;

use crate::entry::Slot;
use crate::id::{Index, NIL};
use crate::manager::LockManager;
use crate::{Cause, Event, FencingToken, Name, RequestId, SuspendPolicy};

impl LockManager {
    /// <https://w3c.github.io/web-locks/#release-the-lock>
    #[inline]
    pub(crate) fn release_the_lock(&mut self, lock: Index) {
        // Steps 1 to 5 name the parts.
        // Step 6. Remove lock from the manager's held lock set.
        self.depart(lock);
        // Step 7. Process the lock request queue.
        self.process_the_lock_request_queue();
    }

    /// <https://w3c.github.io/web-locks/#abort-the-request>
    pub(crate) fn abort_the_request(&mut self, request: Index) {
        // Steps 1 to 5 name the parts.
        // Step 6. Remove request from queue.
        self.depart(request);
        // Step 7. Process the lock request queue: those behind it may have waited for nothing else.
        self.process_the_lock_request_queue();
    }

    /// By client rather than by agent: windows of one origin share an agent, and one of them closing must not
    /// take the locks of the others.
    ///
    /// <https://w3c.github.io/web-locks/#terminate-remaining-locks-and-requests>
    pub(crate) fn terminate_remaining_locks_and_requests(&mut self, client: Index) {
        // Step 1. Abort each of the client's requests. Step 2. Release each of its locks.
        // As one step, so that a dying client is never granted anything; latest first, so that its requests
        // do not take each other's places on the way out.
        while self.clients[client].last != NIL {
            self.depart(self.clients[client].last);
        }
        self.clients.remove(client);
        self.process_the_lock_request_queue();
    }

    /// The `forceRelease()` of 2017: all holders of a name lose their locks in one step.
    pub(crate) fn force_release_locks(&mut self, name: &Name) -> usize {
        let Some(queue) = self.queues.find(name) else { return 0 };
        let mut held: Vec<Index> = self.holders(queue).collect();
        self.sort(&mut held);
        self.take_away(&held, Cause::ForceReleased);
        self.process_the_lock_request_queue();
        held.len()
    }

    /// Grants all that can be granted, on every queue that this input disturbed.
    ///
    /// <https://w3c.github.io/web-locks/#process-the-lock-request-queue>
    #[inline]
    pub(crate) fn process_the_lock_request_queue(&mut self) {
        // Step 2. For each request of queue that is grantable. A queue knows how far its requests are grantable; a
        // request for several names is when it is on each of them.
        while let Some(queue) = self.disturbed.pop() {
            self.extend_clear_prefix(queue);
        }
        match *self.ready {
            [] => {}
            [entry] => {
                self.ready.clear();
                self.grant_if_ready(entry);
                // A turn that passed lets others come.
                if !self.disturbed.is_empty() {
                    self.process_the_lock_request_queue_in_order();
                }
            }
            _ => self.process_the_lock_request_queue_in_order(),
        }
    }

    /// The same; but a single grant, which most often is all, is returned instead of told.
    #[inline]
    pub(crate) fn grant_the_only_next(&mut self) -> Option<(RequestId, FencingToken)> {
        while let Some(queue) = self.disturbed.pop() {
            self.extend_clear_prefix(queue);
        }
        match *self.ready {
            [] => None,
            [entry] if self.clients[self.entries[entry].life.client].suspension.is_none() => {
                self.ready.clear();
                Some(self.hold(entry))
            }
            _ => {
                self.process_the_lock_request_queue();
                None
            }
        }
    }

    /// The same for any number of grants: in queue order, whatever their names.
    fn process_the_lock_request_queue_in_order(&mut self) {
        loop {
            while let Some(queue) = self.disturbed.pop() {
                self.extend_clear_prefix(queue);
            }
            // Backwards, so that the first in queue order is taken from the end.
            let entries = &self.entries;
            self.ready.sort_unstable_by_key(|&entry| {
                entries.get(entry).map(|slot| core::cmp::Reverse(slot.queue_order()))
            });
            while self.disturbed.is_empty() {
                let Some(entry) = self.ready.pop() else { return };
                self.grant_if_ready(entry);
            }
        }
    }

    /// Grants an entry that became ready, unless it has left since, or a thief or an overtaker stands before it now.
    #[inline]
    fn grant_if_ready(&mut self, entry: Index) {
        let ready = |slot: &Slot| !slot.life.is_held() && slot.life.blocked == 0;
        if self.entries.get(entry).is_some_and(ready) {
            self.grant(entry);
        }
    }

    /// Grants a pending entry that is clear on all its names: the inner steps of
    /// <https://w3c.github.io/web-locks/#process-the-lock-request-queue>
    #[inline]
    fn grant(&mut self, entry: Index) {
        let owner = self.entries[entry].life.client;
        let client = self.clients.id(owner);
        if self.clients[owner].sleeps_under(SuspendPolicy::ReleaseAtOnce) {
            // Such a client holds nothing while it sleeps: its turn passes.
            let request = self.entries.id(entry);
            self.tell(owner, Event::Lost { request, client, cause: Cause::Suspended });
            self.depart(entry);
            return;
        }
        // Steps 2.2 to 2.13. Remove request from queue and append a new lock to the held lock set.
        let (request, token) = self.hold(entry);
        // Step 2.14. Tell the client, which runs the callback.
        self.tell(owner, Event::Granted { request, client, token });
    }

    /// Makes a pending entry a held one: the request and the lock are the same entry.
    #[inline]
    pub(crate) fn hold(&mut self, entry: Index) -> (RequestId, FencingToken) {
        let token = self.numbers.take_token();
        self.hold_with(entry, token)
    }

    /// The same for an entry whose request was just made.
    #[inline]
    pub(crate) fn hold_at_once(&mut self, entry: Index) -> (RequestId, FencingToken) {
        let token = self.numbers.take_token_at_once();
        self.hold_with(entry, token)
    }

    #[inline]
    fn hold_with(&mut self, entry: Index, token: u64) -> (RequestId, FencingToken) {
        self.entries[entry].life.token = token;
        self.held += 1;
        (self.entries.id(entry), FencingToken::new(token))
    }
}
