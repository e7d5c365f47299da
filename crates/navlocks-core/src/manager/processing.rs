//! Release, abort, terminate, force-release: an entry leaves, and the queue goes on.

use alloc::vec::Vec;

use super::LockManager;
use crate::id::Index;
use crate::{Event, LossCause, Mode, Name, SuspendPolicy};

impl LockManager {
    /// <https://w3c.github.io/web-locks/#release-the-lock>
    #[inline]
    pub(super) fn release_the_lock(&mut self, lock: Index) {
        // Steps 1 to 5 name the parts.
        // Step 6. Remove lock from the manager's held lock set.
        self.depart(lock);
        // Step 7. Process the lock request queue.
        self.process_the_lock_request_queue();
    }

    /// <https://w3c.github.io/web-locks/#abort-the-request>
    pub(super) fn abort_the_request(&mut self, request: Index) {
        // Steps 1 to 5 name the parts.
        // Step 6. Remove request from queue.
        self.depart(request);
        // Step 7. Process the lock request queue: the entries behind it may have waited for it
        // alone.
        self.process_the_lock_request_queue();
    }

    /// Ends a client rather than an agent: windows of one origin share an agent, and closing one of
    /// them must not take the locks of the others.
    ///
    /// <https://w3c.github.io/web-locks/#terminate-remaining-locks-and-requests>
    pub(super) fn terminate_remaining_locks_and_requests(&mut self, clients: &[Index]) {
        // Step 1. Abort each of the client's requests. Step 2. Release each of its locks.
        // In one step, so that a terminated client is never granted; latest first, so that its
        // requests do not inherit from each other.
        for &client in clients {
            while let Some(last) = self.clients.last_entry(client) {
                self.depart(last);
            }
            self.clients.remove(client);
        }
        self.process_the_lock_request_queue();
    }

    /// Gives a held lock a larger limit in place, and lets the queue go on.
    pub(super) fn raise_limit(&mut self, lock: Index, mode: Mode) {
        self.seating.raise_limit(lock, mode);
        self.process_the_lock_request_queue();
        self.evict_sleeping_with_waiters();
    }

    /// Takes a name from all its holders in one step: the `forceRelease()` of 2017.
    pub(super) fn force_release_locks(&mut self, name: &Name) -> usize {
        let mut held: Vec<Index> = self.seating.holders(name).collect();
        self.seating.sort(&mut held);
        self.take_away(&held, LossCause::ForceReleased);
        self.process_the_lock_request_queue();
        held.len()
    }

    /// Takes the lock of one holder, and lets the queue go on.
    pub(super) fn take_one_away(&mut self, lock: Index, cause: LossCause) {
        self.take_away(&[lock], cause);
        self.process_the_lock_request_queue();
    }

    /// Grants all that can be granted, on every queue that this input disturbed.
    ///
    /// <https://w3c.github.io/web-locks/#process-the-lock-request-queue>
    #[inline]
    pub(super) fn process_the_lock_request_queue(&mut self) {
        // Step 2. For each request of queue that is grantable. A queue knows how far its requests
        // are grantable; a request for several names is when it is on each of them.
        while let Some(entry) = self.seating.next_ready() {
            self.grant(entry);
        }
    }

    /// Grants a pending entry that is clear on all its names: the inner steps of
    /// <https://w3c.github.io/web-locks/#process-the-lock-request-queue>
    #[inline]
    fn grant(&mut self, entry: Index) {
        let owner = self.owner(entry);
        let client = self.clients.id(owner);
        if self.clients[owner].sleeps_under(SuspendPolicy::ReleaseAtOnce) {
            // Under this policy a suspended client is granted nothing: the request is aborted.
            let request = self.seating.id(entry);
            self.send(owner, Event::Lost { request, client, cause: LossCause::Suspended });
            self.depart(entry);
            return;
        }
        // Steps 2.2 to 2.13. Remove request from queue and append a new lock to the held lock set.
        let (request, token) = self.seating.hold(entry, self.numbers.take_token());
        // Step 2.14. Inform the client, which runs the callback.
        self.send(owner, Event::Granted { request, client, token });
    }
}
