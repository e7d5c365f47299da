//! The fast path for requests on one name.
//!
//! Appending to one queue cannot affect any other request, and a lock on one name most often has
//! one heir or none. So scopes, steals and suspended clients need not be considered. The rule
//! itself stays in `seating.rs`; each function here returns without effect where the slow path must
//! decide.

use super::LockManager;
use crate::id::Index;
use crate::{Answer, Event, FencingToken, Request, RequestId, Wait};

impl LockManager {
    /// Grants a request for a single name that has no entry: every wait means the same there.
    /// Otherwise nothing happens, and the error is the queue of the name if there is just one.
    ///
    /// <https://w3c.github.io/web-locks/#request-a-lock>
    #[inline]
    pub(super) fn grant_uncontended(
        &mut self,
        owner: Index,
        request: &Request,
    ) -> Result<(RequestId, FencingToken), Option<Index>> {
        let [name] = request.scope.names() else { return Err(None) };
        let (queue, founded) = self.seating.open_queue(name);
        if !founded {
            return Err(Some(queue));
        }
        let serial = self.numbers.take_serial();
        let entry = self.seating.insert_alone(serial, owner, request.mode, queue);
        self.clients.enlist(entry, &mut self.seating);
        Ok(self.seating.hold(entry, self.numbers.take_token_at_once()))
    }

    /// Appends a request for a single name to its queue, which has entries. Returns `None`, and
    /// nothing happens, where the request does more than that.
    ///
    /// <https://w3c.github.io/web-locks/#request-a-lock>
    #[inline]
    pub(super) fn enqueue_last(
        &mut self,
        owner: Index,
        request: &Request,
        queue: Index,
    ) -> Option<(RequestId, Answer)> {
        if request.wait != Wait::Queue || !self.clients.sleeping().is_empty() {
            return None;
        }
        let serial = self.numbers.take_serial();
        let (entry, clear) = self.seating.insert_last(serial, owner, request.mode, queue);
        self.clients.enlist(entry, &mut self.seating);
        if !clear {
            return Some((self.seating.id(entry), Answer::Pending));
        }
        let (id, token) = self.seating.hold(entry, self.numbers.take_token_at_once());
        Some((id, Answer::Granted(token)))
    }

    /// Releases a lock on a single name that no other entry wants. Returns false, and nothing
    /// happens, for any other lock.
    ///
    /// <https://w3c.github.io/web-locks/#release-the-lock>
    #[inline]
    pub(super) fn release_uncontended(&mut self, lock: Index) -> bool {
        let alone = self.seating.is_alone(lock);
        if alone {
            self.clients.delist(lock, &mut self.seating);
            self.seating.depart_alone(lock);
        }
        alone
    }

    /// Releases a lock on a single name to its only heir, and returns that; with `SEND`, also as an
    /// event. Returns none, and nothing happens, where there is no such heir.
    ///
    /// <https://w3c.github.io/web-locks/#release-the-lock>
    #[inline]
    pub(super) fn release_to_heir<const SEND: bool>(&mut self, lock: Index) -> Option<Index> {
        let heir = self.seating.only_heir(lock)?;
        let owner = self.owner(heir);
        // A suspended client never blocks others, so it must not inherit the lock here.
        if self.clients[owner].suspension.is_some() {
            return None;
        }
        // Step 6. Remove lock from the manager's held lock set.
        self.clients.delist(lock, &mut self.seating);
        self.seating.depart_for_heir(lock, heir);
        // Step 7. Process the lock request queue.
        let (request, token) = self.seating.hold(heir, self.numbers.take_token());
        if SEND {
            let client = self.clients.id(owner);
            self.events.push(Event::Granted { request, client, token });
        }
        Some(heir)
    }
}
