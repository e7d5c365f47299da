//! The draft with `acquire`: a held lock set, and one lock request queue per origin that is scanned
//! from end to end.

use super::words::{ClientNo, Mode, RequestNo, Wait};
use super::{Outcome, Single, SingleNames};

/// One origin of that draft.
#[derive(Debug, Default)]
pub struct Scan {
    /// "Each origin has an associated held lock set which is an ordered set of locks."
    held: Vec<Single>,
    /// "Each origin has an associated lock request queue, which is a queue of lock requests."
    queue: Vec<Single>,
    outcomes: Vec<Outcome>,
}

impl Scan {
    /// "A lock request request is said to be grantable if the following steps return true", steps 1
    /// to 6, where `earlier` are the entries in the queue earlier than the request.
    fn grantable(held: &[Single], earlier: &[Single], request: Single) -> bool {
        let name = request.name;
        match request.mode {
            // Step 5. No lock in held has a name that equals name, and no entry in queue earlier
            // than request has a name that equals name.
            Mode::Exclusive => {
                !held.iter().any(|lock| lock.name == name)
                    && !earlier.iter().any(|entry| entry.name == name)
            }
            // Step 6. No lock in held has mode "exclusive" and has a name that equals name, and no
            // entry in queue earlier than request has a mode "exclusive" and name that equals name.
            Mode::Limited(_) => panic!("the text has no limits"),
            Mode::Shared => {
                !held.iter().any(|lock| lock.mode == Mode::Exclusive && lock.name == name)
                    && !earlier
                        .iter()
                        .any(|entry| entry.mode == Mode::Exclusive && entry.name == name)
            }
        }
    }

    /// "To process the lock request queue for origin".
    fn process_the_lock_request_queue(&mut self) {
        // Step 2. For each request in queue: (over a copy; an entry removed on the way changes
        // nothing for later ones, for it conflicts with them as a lock exactly as it did in the
        // queue)
        for request in self.queue.clone() {
            let earlier: Vec<Single> =
                self.queue.iter().copied().take_while(|entry| *entry != request).collect();
            if Self::grantable(&self.held, &earlier, request) {
                // Steps 2.1.1 to 2.1.7. Remove request from queue; append lock to the held lock
                // set.
                self.queue.retain(|entry| *entry != request);
                self.held.push(request);
                // Step 2.1.8. […] invoking callback with a new Lock object […].
                self.outcomes.push(Outcome::Granted(request.request));
            }
        }
    }

    /// "To request a lock", the steps enqueued to the lock task queue (step 2).
    fn request_a_lock(&mut self, request: Single, if_available: bool, steal: bool) {
        // Step 2.4. If steal is true, then run these steps:
        if steal {
            // Steps 2.4.1 and 2.4.2. For each lock in held, then for each rq in queue: if its name
            // is name, remove it and reject its promise with a new "AbortError" DOMException.
            for list in [&mut self.held, &mut self.queue] {
                let taken = list.extract_if(.., |entry| entry.name == request.name);
                self.outcomes.extend(taken.map(|entry| Outcome::Rejected(entry.request)));
            }
            // Step 2.4.3. Assert: request is grantable.
            assert!(Self::grantable(&self.held, &self.queue, request), "step 2.4.3");
        }
        // Step 2.5. If ifAvailable is true and request is not grantable, then […] invoking callback
        // with null […] and abort these steps.
        if if_available && !Self::grantable(&self.held, &self.queue, request) {
            self.outcomes.push(Outcome::Unavailable(request.request));
            return;
        }
        // Step 2.6. Enqueue request in origin's lock request queue.
        self.queue.push(request);
        // Step 2.8. Process the lock request queue for origin.
        self.process_the_lock_request_queue();
    }
}

impl SingleNames for Scan {
    fn request(&mut self, request: Single, wait: Wait) {
        match wait {
            Wait::Queue => self.request_a_lock(request, false, false),
            Wait::IfAvailable => self.request_a_lock(request, true, false),
            Wait::StealAll => self.request_a_lock(request, false, true),
            Wait::Steal | Wait::Overtake => panic!("seed 000 has no request {wait}"),
        }
    }

    /// "When lock lock's waiting promise settles": steps 2 and 3.
    fn release(&mut self, request: RequestNo) {
        self.held.retain(|lock| lock.request != request);
        self.process_the_lock_request_queue();
    }

    /// The abort steps, step 2.7 of "request a lock".
    fn abort(&mut self, request: RequestNo) {
        self.queue.retain(|entry| entry.request != request);
        self.process_the_lock_request_queue();
    }

    /// "TODO: Define how a lock held in a terminated agent is released": as in the standard, all at
    /// once.
    fn terminate(&mut self, client: ClientNo) {
        self.queue.retain(|entry| entry.client != client);
        self.held.retain(|lock| lock.client != client);
        self.process_the_lock_request_queue();
    }

    fn take_outcomes(&mut self) -> Vec<Outcome> {
        core::mem::take(&mut self.outcomes)
    }

    fn held(&self) -> Vec<Single> {
        self.held.clone()
    }

    fn pending(&self) -> Vec<Single> {
        self.queue.clone()
    }
}
