//! The standard: a held lock set, and one lock request queue per name of which only the head is
//! grantable.
//!
//! Function names are those of the standard's algorithms, comments quote their steps. Tasks,
//! promises and callbacks are left out: an [`Outcome`] stands for them.

use std::collections::{BTreeMap, VecDeque};

use super::words::{ClientNo, Mode, Name, RequestNo, Wait};
use super::{Outcome, Single, SingleNames};

/// The lock manager of the standard.
#[derive(Debug, Default)]
pub struct Standard {
    /// §2.4: "Each lock manager has a held lock set which is a set of locks."
    held_lock_set: Vec<Single>,
    /// §2.5: "Each lock manager has a lock request queue map, which is a map of resource names to
    /// lock request queues."
    lock_request_queue_map: BTreeMap<Name, VecDeque<Single>>,
    outcomes: Vec<Outcome>,
}

impl Standard {
    /// <https://w3c.github.io/web-locks/#get-the-lock-request-queue>
    fn get_the_lock_request_queue(&mut self, name: Name) -> &mut VecDeque<Single> {
        // Step 1. If queueMap[name] does not exist, set queueMap[name] to a new empty lock request
        // queue.
        // Step 2. Return queueMap[name].
        self.lock_request_queue_map.entry(name).or_default()
    }

    /// <https://w3c.github.io/web-locks/#grantable>
    fn grantable(&mut self, request: Single) -> bool {
        // Steps 1 to 4. Let queue be the result of getting the lock request queue from queueMap for
        // name.
        let name = request.name;
        let queue = self.get_the_lock_request_queue(name);
        // Step 7. If queue is not empty and request is not the first item in queue, then return
        // false.
        if !queue.is_empty() && queue.front() != Some(&request) {
            return false;
        }
        // Steps 5 and 6. Let held be manager's held lock set. Let mode be request's mode.
        let held = &self.held_lock_set;
        match request.mode {
            // Step 8. If mode is "exclusive", then return true if no lock in held has name equal to
            // name, and false otherwise.
            Mode::Exclusive => !held.iter().any(|lock| lock.name == name),
            // Step 9. Otherwise, mode is "shared"; return true if no lock in held has mode
            // "exclusive" and has name equal to name, and false otherwise.
            Mode::Limited(_) => panic!("the text has no limits"),
            Mode::Shared => {
                !held.iter().any(|lock| lock.mode == Mode::Exclusive && lock.name == name)
            }
        }
    }

    /// <https://w3c.github.io/web-locks/#request-a-lock>, the steps enqueued to the lock task queue
    /// (step 3).
    fn request_a_lock(&mut self, request: Single, if_available: bool, steal: bool) {
        // Step 3.4. If steal is true, then run these steps:
        if steal {
            // Step 3.4.1. For each lock of held: if lock's name is name, then remove lock from
            // held, and reject lock's released promise with an "AbortError" DOMException.
            let (stolen, kept) =
                self.held_lock_set.iter().partition(|lock| lock.name == request.name);
            self.held_lock_set = kept;
            let stolen: Vec<Single> = stolen;
            self.outcomes.extend(stolen.iter().map(|lock| Outcome::Rejected(lock.request)));
            // Step 3.4.2. Prepend request in queue.
            self.get_the_lock_request_queue(request.name).push_front(request);
        // Step 3.5. Otherwise, run these steps:
        } else {
            // Step 3.5.1. If ifAvailable is true and request is not grantable, then […] invoke
            // callback with null […] and abort these steps. (S1: these are all the steps, so the
            // request is never enqueued.)
            if if_available && !self.grantable(request) {
                self.outcomes.push(Outcome::Unavailable(request.request));
                return;
            }
            // Step 3.5.2. Enqueue request in queue.
            self.get_the_lock_request_queue(request.name).push_back(request);
        }
        // Step 3.6. Process the lock request queue queue.
        self.process_the_lock_request_queue(request.name);
    }

    /// <https://w3c.github.io/web-locks/#release-the-lock>
    fn release_the_lock(&mut self, lock: Single) {
        // Steps 2 to 5 find the queue. Step 6. Remove lock from the manager's held lock set.
        self.held_lock_set.retain(|held| *held != lock);
        // Step 7. Process the lock request queue queue.
        self.process_the_lock_request_queue(lock.name);
    }

    /// <https://w3c.github.io/web-locks/#abort-the-request>
    fn abort_the_request(&mut self, request: Single) {
        // Steps 2 to 5 find the queue. Step 6. Remove request from queue.
        self.get_the_lock_request_queue(request.name).retain(|pending| *pending != request);
        // Step 7. Process the lock request queue queue.
        self.process_the_lock_request_queue(request.name);
    }

    /// <https://w3c.github.io/web-locks/#process-the-lock-request-queue>
    fn process_the_lock_request_queue(&mut self, name: Name) {
        // Step 2. For each request of queue: (each turn removes the head, so the next one is the
        // head again; S3)
        while let Some(&request) = self.get_the_lock_request_queue(name).front() {
            // Step 2.1. If request is not grantable, then return.
            if !self.grantable(request) {
                return;
            }
            // Step 2.2. Remove request from queue.
            self.get_the_lock_request_queue(name).pop_front();
            // Steps 2.3 to 2.13. Append lock to manager's held lock set.
            self.held_lock_set.push(request);
            // Step 2.14. […] invoke callback with a new Lock object […].
            self.outcomes.push(Outcome::Granted(request.request));
        }
    }

    /// <https://w3c.github.io/web-locks/#terminate-remaining-locks-and-requests>
    ///
    /// Read literally, a terminated client can be granted a lock between two of these steps. Here
    /// all its entries leave first, then the queues are processed. (S4: "agent" is the client.)
    fn terminate_remaining_locks_and_requests(&mut self, client: ClientNo) {
        // Step 1. For each lock request request with agent equal to agent: abort the request
        // request.
        for queue in self.lock_request_queue_map.values_mut() {
            queue.retain(|request| request.client != client);
        }
        // Step 2. For each lock lock with agent equal to agent: release the lock lock.
        self.held_lock_set.retain(|lock| lock.client != client);

        let names: Vec<Name> = self.lock_request_queue_map.keys().copied().collect();
        for name in names {
            self.process_the_lock_request_queue(name);
        }
    }

    /// <https://w3c.github.io/web-locks/#snapshot-the-lock-state>
    fn snapshot_the_lock_state(&self) -> (Vec<Single>, Vec<Single>) {
        // Steps 2 and 3. For each queue of manager's lock request queue map's values: for each
        // request of queue: append […] to pending.
        let pending = self.lock_request_queue_map.values().flatten().copied().collect();
        // Steps 4 and 5. For each lock of manager's held lock set: append […] to held.
        (self.held_lock_set.clone(), pending)
    }
}

impl SingleNames for Standard {
    fn request(&mut self, request: Single, wait: Wait) {
        match wait {
            Wait::Queue => self.request_a_lock(request, false, false),
            Wait::IfAvailable => self.request_a_lock(request, true, false),
            Wait::Steal => self.request_a_lock(request, false, true),
            Wait::StealAll | Wait::Overtake => panic!("seed 001 has no request {wait}"),
        }
    }

    fn release(&mut self, request: RequestNo) {
        if let Some(&lock) = self.held_lock_set.iter().find(|lock| lock.request == request) {
            self.release_the_lock(lock);
        }
    }

    fn abort(&mut self, request: RequestNo) {
        if let Some(request) = self.pending().into_iter().find(|pending| pending.request == request)
        {
            self.abort_the_request(request);
        }
    }

    fn terminate(&mut self, client: ClientNo) {
        self.terminate_remaining_locks_and_requests(client);
    }

    fn take_outcomes(&mut self) -> Vec<Outcome> {
        core::mem::take(&mut self.outcomes)
    }

    fn held(&self) -> Vec<Single> {
        self.snapshot_the_lock_state().0
    }

    fn pending(&self) -> Vec<Single> {
        self.snapshot_the_lock_state().1
    }
}
