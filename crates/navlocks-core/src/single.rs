//! A single name: the short way to a lock and back, and the most common one.
//!
//! Who goes to the end of one queue concerns nobody else, and whose lock had one name leaves one queue behind. What comes of it is
//! what comes of the long way, which looks at more.

use crate::entry::Slot;
use crate::id::{Index, NIL};
use crate::manager::LockManager;
use crate::{Answer, FencingToken, Request, RequestId, Wait};

impl LockManager {
    /// Grants a request for a single name that nobody uses: all ways to wait are the same there. Nothing happens for any
    /// other, and the error is the queue of its name if it has just one.
    ///
    /// <https://w3c.github.io/web-locks/#request-a-lock>
    #[inline]
    pub(crate) fn hold_the_only_lock(
        &mut self,
        owner: Index,
        request: &Request,
    ) -> Result<(RequestId, FencingToken), Option<Index>> {
        let [name] = request.scope.names() else { return Err(None) };
        let entry = self.entries.vacant();
        let (queue, founded) = self.queues.get_the_lock_request_queue(name, entry);
        if !founded {
            return Err(Some(queue));
        }
        let id = self.sit_down(owner, request, queue);
        let token = self.numbers.take_token_at_once();
        let Slot { seat, life } = &mut self.entries[entry];
        seat.clear = true;
        life.token = token;
        self.held += 1;
        Ok((id, FencingToken::new(token)))
    }

    /// Makes a request for a single name the last in its queue, which others use. None, and nothing happens, where it takes more
    /// than that.
    ///
    /// <https://w3c.github.io/web-locks/#request-a-lock>
    #[inline]
    pub(crate) fn request_the_last_lock(
        &mut self,
        owner: Index,
        request: &Request,
        queue: Index,
    ) -> Option<(RequestId, Answer)> {
        if request.wait != Wait::Queue || !self.clients.sleeping.is_empty() {
            return None;
        }
        let entry = self.entries.vacant();
        let id = self.sit_down(owner, request, queue);
        if !self.sit_last(entry, queue) {
            return Some((id, Answer::Pending));
        }
        let (_, token) = self.hold_at_once(entry);
        Some((id, Answer::Granted(token)))
    }

    /// Makes a new entry for a single name.
    #[inline]
    fn sit_down(&mut self, owner: Index, request: &Request, queue: Index) -> RequestId {
        let serial = self.numbers.take_serial();
        // Whoever is granted at once or goes to the end overtakes nobody.
        let slot = self.entries.insert(serial, owner, request.mode, false);
        slot.seat.queue = queue;
        let entry = slot.seat.entry;
        self.join_client(owner, entry);
        self.live += 1;
        self.entries.part().id(entry, serial)
    }

    /// Releases a lock on a single name that nobody else uses. False, and nothing happens, for any other.
    #[inline]
    pub(crate) fn release_the_only_lock(&mut self, lock: Index) -> bool {
        let Slot { seat, life } = &self.entries[lock];
        let queue = seat.queue;
        let alone = seat.prev == NIL && seat.next == NIL && seat.sibling == NIL;
        if alone {
            debug_assert!(life.is_held(), "there is nobody to wait for");
            self.live -= 1;
            self.held -= 1;
            self.leave_client(lock);
            self.queues.leave(queue);
            self.entries.remove(lock);
        }
        alone
    }

    /// Releases a lock on a single name to the [only heir](Self::only_heir). None, and nothing happens, where there is none.
    ///
    /// <https://w3c.github.io/web-locks/#release-the-lock>
    #[inline]
    pub(crate) fn hand_over_a_single_lock(
        &mut self,
        lock: Index,
    ) -> Option<(RequestId, FencingToken)> {
        let heir = self.only_heir(lock)?;
        // One that sleeps is waited for by nobody else, so it would be its own heir.
        if self.clients[self.entries[heir].life.client].suspension.is_some() {
            return None;
        }
        // Step 6. Remove lock from the manager's held lock set.
        self.live -= 1;
        self.held -= 1;
        self.leave_client(lock);
        self.give_way(lock, heir);
        self.entries.remove(lock);
        // Step 7. Process the lock request queue.
        Some(self.hold(heir))
    }
}
