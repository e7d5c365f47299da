//! Request a lock, and when it can be granted.

use alloc::vec::Vec;

use crate::id::Index;
use crate::manager::LockManager;
use crate::seating::Place;
use crate::{Answer, Cause, Event, Mode, Request, RequestId, Scope, Wait};

impl LockManager {
    /// The part of the algorithm that runs on the lock task queue; promise, callback and signal are the embedder's. When the
    /// request is `answered` by return, an outcome that is known at once is not told.
    ///
    /// <https://w3c.github.io/web-locks/#request-a-lock>
    #[inline]
    pub(crate) fn request_a_lock(
        &mut self,
        owner: Index,
        request: &Request,
        answered: bool,
    ) -> (RequestId, Answer) {
        let Request { ref scope, mode, wait } = *request;
        if !self.clients.sleeping.is_empty() {
            self.evict_sleeping_in_the_way(owner, request);
        }
        // Step 1. Let request be a new lock request.
        let serial = self.numbers.take_serial();
        let entry = self.entries.insert(serial, owner, mode, wait == Wait::Overtake).seat.entry;
        let id = self.entries.id(entry);
        // Step 3.5.1. If ifAvailable is true and request is not grantable, it is over: as every
        // implementation does, and unlike the letter of the text, it is not enqueued as well.
        if wait == Wait::IfAvailable && !self.grantable(scope, mode) {
            self.entries.remove(entry);
            if !answered {
                let client = self.clients.id(owner);
                self.tell(owner, Event::Unavailable { request: id, client });
            }
            return (id, Answer::Unavailable);
        }
        // Step 3.4.1. If steal is true, each held lock that intersects is removed and its holder told.
        if matches!(wait, Wait::Steal | Wait::StealAll) {
            self.rob(scope, wait, id);
        }
        self.join_client(owner, entry);
        // Steps 3.4.2 and 3.5.2. Prepend request in queue when it steals, enqueue it otherwise.
        let place = match wait {
            Wait::Queue | Wait::IfAvailable => Place::Last,
            Wait::Steal | Wait::StealAll => Place::First,
            Wait::Overtake => Place::BeforePending,
        };
        let clear = self.take_seats(entry, scope, place);
        // Step 3.6. Process the lock request queue. Whoever is clear now stands before all that a robbery
        // left behind, and so comes first.
        let mut answer = Answer::Pending;
        if clear {
            let (request, token) = self.hold_at_once(entry);
            answer = Answer::Granted(token);
            if !answered {
                let client = self.clients.id(owner);
                self.tell(owner, Event::Granted { request, client, token });
            }
        }
        self.process_the_lock_request_queue();
        (id, answer)
    }

    /// Whether a request that is not in the queue yet would be granted at once if it were enqueued now.
    ///
    /// <https://w3c.github.io/web-locks/#grantable>
    pub(crate) fn grantable(&self, scope: &Scope, mode: Mode) -> bool {
        // Steps 1 to 6 name the parts. For a scope, the request is grantable when it is on every name.
        scope.names().iter().all(|name| match self.queues.find(name) {
            // Step 7. If queue is not empty and request is not the first item in queue, return false:
            // for a queue that has the held locks in it, all seats must be clear.
            // Step 8. If mode is exclusive, return true if no held lock has the name.
            // Step 9. Otherwise return true if no held exclusive lock has the name.
            Some(queue) => self.admits(queue, mode),
            None => true,
        })
    }

    /// Takes away what a thief takes: every held lock whose scope intersects, and with the older steal every
    /// pending request too.
    fn rob(&mut self, scope: &Scope, wait: Wait, by: RequestId) {
        let mut victims = Vec::new();
        for name in scope.names() {
            let Some(queue) = self.queues.find(name) else { continue };
            if wait == Wait::StealAll {
                let seats = self.seats_from(self.queues[queue].first);
                victims.extend(seats.map(|seat| self.entries[seat].seat.entry));
            } else {
                victims.extend(self.holders(queue));
            }
        }
        self.sort(&mut victims);
        victims.dedup();
        self.take_away(&victims, Cause::Stolen { by });
    }
}
