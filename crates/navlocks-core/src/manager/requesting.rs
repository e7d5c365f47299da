//! Request a lock, and when it can be granted.

use alloc::vec::Vec;

use super::LockManager;
use crate::id::Index;
use crate::seating::InsertAt;
use crate::{
    Answer, ClientId, Event, FencingToken, LossCause, Mode, Request, RequestId, Scope, Wait,
};

impl LockManager {
    /// The part of the algorithm that runs on the lock task queue; promise, callback and signal are
    /// the embedder's.
    ///
    /// <https://w3c.github.io/web-locks/#request-a-lock>
    pub(super) fn request_a_lock(
        &mut self,
        owner: Index,
        request: &Request,
    ) -> (RequestId, Answer) {
        let Request { ref scope, mode, wait } = *request;
        if !self.clients.sleeping().is_empty() {
            self.evict_sleeping_in_the_way(owner, request);
        }
        // Step 1. Let request be a new lock request.
        let serial = self.numbers.take_serial();
        // Step 3.5.1. If ifAvailable is true and request is not grantable, it is over: as every
        // implementation does, and unlike the letter of the text, it is not enqueued as well.
        if wait == Wait::IfAvailable && !self.grantable(scope, mode) {
            return (self.seating.next_id(serial), Answer::Unavailable);
        }
        let entry = self.seating.insert(serial, owner, mode, wait == Wait::Overtake);
        let id = self.seating.id(entry);
        // Step 3.4.1. If steal is true, each held lock that intersects is removed and its holder
        // informed.
        if matches!(wait, Wait::Steal | Wait::StealAll) {
            self.steal_from_holders(scope, wait, id);
        }
        self.clients.enlist(entry, &mut self.seating);
        // Steps 3.4.2 and 3.5.2. Prepend request in queue when it steals, enqueue it otherwise.
        let place = match wait {
            Wait::Queue | Wait::IfAvailable => InsertAt::Last,
            Wait::Steal | Wait::StealAll => InsertAt::First,
            Wait::Overtake => InsertAt::BeforePending,
        };
        let clear = self.seating.seat(entry, scope, place);
        // Step 3.6. Process the lock request queue. A request that is clear now stands before all
        // that a steal left behind, and so is granted first.
        let answer = if clear {
            let (_, token) = self.seating.hold(entry, self.numbers.take_token_at_once());
            Answer::Granted(token)
        } else {
            Answer::Pending
        };
        self.process_the_lock_request_queue();
        if place != InsertAt::Last {
            self.evict_sleeping_with_waiters();
        }
        (id, answer)
    }

    /// Seats a request that held its lock in an earlier manager, under the token that it had there.
    /// Returns `None`, and nothing happens, when an entry conflicts with it or the client is not
    /// known.
    ///
    /// With the held entries in any order, then the pending ones in queue order, a new manager has
    /// the same held set as the earlier one. Tokens of later grants are larger.
    pub fn restore(
        &mut self,
        client: ClientId,
        request: &Request,
        token: FencingToken,
    ) -> Option<RequestId> {
        let owner = self.clients.find(client)?;
        let Request { ref scope, mode, .. } = *request;
        if token.get() == 0 || token > FencingToken::START_MAX || !self.grantable(scope, mode) {
            return None;
        }
        let serial = self.numbers.take_serial();
        let entry = self.seating.insert(serial, owner, mode, false);
        self.clients.enlist(entry, &mut self.seating);
        self.seating.seat(entry, scope, InsertAt::Last);
        let (id, token) = self.seating.hold(entry, token.get());
        self.numbers.advance_token(token.get() + 1);
        self.settle();
        Some(id)
    }

    /// Returns true if a request that is not in the queue yet would be granted at once if it were
    /// enqueued now.
    ///
    /// <https://w3c.github.io/web-locks/#grantable>
    fn grantable(&self, scope: &Scope, mode: Mode) -> bool {
        // Steps 1 to 6 name the parts. For a scope, the request is grantable when it is on every
        // name.
        // Step 7. If queue is not empty and request is not the first item in queue, return false:
        // for a queue that has the held locks in it, all seats must be clear.
        // Step 8. If mode is exclusive, return true if no held lock has the name.
        // Step 9. Otherwise return true if no held exclusive lock has the name.
        scope.names().iter().all(|name| self.seating.admits(name, mode))
    }

    /// Takes away every held lock whose scope intersects, and with the older steal every pending
    /// request too.
    fn steal_from_holders(&mut self, scope: &Scope, wait: Wait, by: RequestId) {
        let mut victims = Vec::new();
        for name in scope.names() {
            if wait == Wait::StealAll {
                victims.extend(self.seating.entries_on(name));
            } else {
                victims.extend(self.seating.holders(name));
            }
        }
        self.seating.sort(&mut victims);
        victims.dedup();
        self.take_away(&victims, LossCause::Stolen { by });
    }

    /// Takes entries from their clients, in the order given: each client receives the cause.
    pub(super) fn take_away(&mut self, entries: &[Index], cause: LossCause) {
        for &entry in entries {
            let owner = self.owner(entry);
            let request = self.seating.id(entry);
            let client: ClientId = self.clients.id(owner);
            let event = if self.seating.is_held(entry) {
                Event::Lost { request, client, cause }
            } else {
                Event::Aborted { request, client, cause }
            };
            self.send(owner, event);
            self.depart(entry);
        }
    }
}
