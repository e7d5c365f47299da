//! The draft with scopes: held locks, and one lock request queue per origin in which a request is
//! compared with all before it.
//!
//! Around its predicate stand the engine's other inputs: steals, overtaking, forced release,
//! termination, suspension. Only the two lists are kept between inputs; everything else is found by
//! scanning them.

mod state;
mod eviction;

use std::collections::{BTreeMap, VecDeque};

use super::words::{
    Answer, ClientNo, Decided, Event, Input, LossCause, Mode, Name, Policy, Refusal, RequestNo,
    Scope, Snapshot, Wait,
};

/// A lock, or a lock request. "A lock request is a tuple of (scope, mode)."
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) request: RequestNo,
    pub(super) client: ClientNo,
    scope: Scope,
    mode: Mode,
    /// True if it stands before all pending requests that do not overtake.
    overtakes: bool,
    /// The token of its grant.
    token: Option<u64>,
}

impl Entry {
    pub(super) fn is_held(&self) -> bool {
        self.token.is_some()
    }
}

/// Two entries conflict when their scopes intersect and at least one of them is exclusive: then one
/// certainly waits for the other.
pub(super) fn conflict(one: &Entry, other: &Entry) -> bool {
    let exclusive = one.mode == Mode::Exclusive || other.mode == Mode::Exclusive;
    exclusive && intersect(&one.scope, &other.scope)
}

/// Returns the entries of `before` that `entry` waits for: on each name either all of them, where
/// the end of any one helps, or the exclusive ones.
pub(super) fn in_the_way<'a>(before: &[&'a Entry], entry: &Entry) -> Vec<&'a Entry> {
    let waits_for = |other: &&&Entry| {
        other.scope.intersection(&entry.scope).any(|name| {
            let on_name: Vec<&&Entry> =
                before.iter().filter(|other| other.scope.contains(name)).collect();
            let limits = on_name.iter().map(|other| other.mode.limit()).chain([entry.mode.limit()]);
            let smallest = limits.filter(|&limit| limit > 1).min();
            let for_all = entry.mode == Mode::Exclusive
                || smallest.is_some_and(|smallest| on_name.len() + 1 > smallest);
            for_all || other.mode == Mode::Exclusive
        })
    };
    before.iter().filter(waits_for).copied().collect()
}

fn intersect(one: &Scope, other: &Scope) -> bool {
    one.intersection(other).next().is_some()
}

#[derive(Debug)]
enum Presence {
    Awake,
    Suspended { policy: Policy, deferred: Vec<Event> },
}

/// One origin of that draft, with everything that the engine adds to it.
#[derive(Debug)]
pub struct Scopes {
    /// The locks with state "held", in the order of their grants.
    held: Vec<Entry>,
    /// "Each origin has an associated lock request queue, which is a queue of lock requests."
    queue: Vec<Entry>,
    clients: BTreeMap<ClientNo, Presence>,
    clients_joined: usize,
    requests_made: usize,
    next_token: u64,
    events: VecDeque<Event>,
    /// The held request within which another one was made, by that other one.
    outers: BTreeMap<RequestNo, RequestNo>,
}

impl Default for Scopes {
    fn default() -> Self {
        Self {
            held: Vec::new(),
            queue: Vec::new(),
            clients: BTreeMap::new(),
            clients_joined: 0,
            requests_made: 0,
            next_token: 1,
            events: VecDeque::new(),
            outers: BTreeMap::new(),
        }
    }
}

/// The inputs.
impl Scopes {
    /// Takes one input and returns its answer.
    pub fn apply(&mut self, input: &Input) -> Answer {
        match *input {
            Input::Join => Answer::Joined(self.join()),
            Input::Request { client, ref scope, mode, wait } => {
                match self.request(client, scope, mode, wait) {
                    Ok((request, decided)) => {
                        self.nest(request, client);
                        Answer::Made(request, decided)
                    }
                    Err(refusal) => Answer::Refused(refusal),
                }
            }
            Input::Release(request) => Answer::Effect(self.release(request)),
            Input::Downgrade(request, mode) => Answer::Effect(self.downgrade(request, mode)),
            Input::Expire(request) => Answer::Effect(self.expire(request)),
            Input::Abort(request) => Answer::Effect(self.abort(request)),
            Input::Terminate(client) => Answer::Effect(self.terminate(client)),
            Input::ForceRelease(name) => Answer::Count(self.force_release(name)),
            Input::Suspend(client, policy) => Answer::Effect(self.suspend(client, policy)),
            Input::Resume(client) => Answer::Effect(self.resume(client)),
            Input::Query => Answer::Snapshot(self.query()),
            Input::AdvanceToken(at_least) => {
                self.next_token = self.next_token.max(at_least);
                Answer::Nothing
            }
            Input::Poll => Answer::Event(self.events.pop_front()),
        }
    }

    fn join(&mut self) -> ClientNo {
        let client = self.clients_joined;
        self.clients_joined += 1;
        self.clients.insert(client, Presence::Awake);
        client
    }

    fn request(
        &mut self,
        client: ClientNo,
        scope: &Scope,
        mode: Mode,
        wait: Wait,
    ) -> Result<(RequestNo, Decided), Refusal> {
        match self.clients.get(&client) {
            None => return Err(Refusal::UnknownClient),
            Some(Presence::Suspended { .. }) => return Err(Refusal::ClientSuspended),
            Some(Presence::Awake) => {}
        }
        if wait == Wait::Overtake && mode != Mode::Shared {
            return Err(Refusal::ExclusiveOvertake);
        }
        let request = self.requests_made;
        self.requests_made += 1;
        let overtakes = wait == Wait::Overtake;
        let entry = Entry { request, client, scope: scope.clone(), mode, overtakes, token: None };

        self.evict_those_it_would_wait_for(&entry, wait);
        match wait {
            // Request a lock, step 4: "Append request to queue."
            Wait::Queue => {
                self.queue.push(entry);
                self.process_queue();
            }
            Wait::IfAvailable if self.grantable(&entry, &self.queue) => self.grant(entry),
            Wait::IfAvailable => return Ok((request, Decided::Unavailable)),
            // Every held lock that intersects the scope is lost; the request goes before all
            // pending ones.
            Wait::Steal | Wait::StealAll => {
                let cause = LossCause::Stolen { by: request };
                self.lose(cause, |lock| intersect(&lock.scope, scope));
                if wait == Wait::StealAll {
                    self.drop_pending(cause, |pending| intersect(&pending.scope, scope));
                }
                assert!(self.grantable(&entry, &[]), "nothing is left that a thief could wait for");
                self.grant(entry);
                self.process_queue();
                self.evict_those_waited_for();
            }
            // After holders and earlier overtakers, before the others.
            Wait::Overtake => {
                let place = self.queue.iter().take_while(|pending| pending.overtakes).count();
                self.queue.insert(place, entry);
                self.process_queue();
                self.evict_those_waited_for();
            }
        }
        Ok((request, self.take_decision(request)))
    }

    /// Makes most requests within the latest lock: of every third request the one of its client, of
    /// another third that of any client, as of a program that started this one.
    fn nest(&mut self, request: RequestNo, client: ClientNo) {
        let is_of = |lock: &&Entry| match request % 3 {
            1 => lock.client == client,
            2 => true,
            _ => false,
        };
        let earlier = self.held.iter().filter(|lock| lock.request < request).filter(is_of);
        if let Some(outer) = earlier.map(|lock| lock.request).max() {
            self.outers.insert(request, outer);
        }
    }

    /// Returns the request within which this one was made, if it was made within one.
    pub fn outer(&self, request: RequestNo) -> Option<RequestNo> {
        self.outers.get(&request).copied()
    }

    /// Takes the grant of a new request out of the events: it is the answer, and never an event.
    fn take_decision(&mut self, made: RequestNo) -> Decided {
        let own =
            |event: &Event| matches!(event, Event::Granted { request, .. } if *request == made);
        let place = self.events.iter().position(own);
        match place.and_then(|place| self.events.remove(place)) {
            Some(Event::Granted { token, .. }) => Decided::Granted { token },
            _ => Decided::Pending,
        }
    }

    fn release(&mut self, request: RequestNo) -> bool {
        let Some(place) = self.held.iter().position(|lock| lock.request == request) else {
            return false;
        };
        self.held.remove(place);
        self.process_queue();
        true
    }

    /// Gives a held lock a larger limit in place, and processes the queue.
    fn downgrade(&mut self, request: RequestNo, mode: Mode) -> bool {
        let held = self.held.iter_mut().find(|lock| lock.request == request);
        let Some(lock) = held.filter(|lock| lock.mode.limit() <= mode.limit()) else {
            return false;
        };
        lock.mode = mode;
        self.process_queue();
        self.evict_those_waited_for();
        true
    }

    /// Takes the lock of one request away, and processes the queue.
    fn expire(&mut self, request: RequestNo) -> bool {
        let before = self.held.len();
        self.lose(LossCause::HeldTooLong, |lock| lock.request == request);
        let is_lost = self.held.len() < before;
        self.process_queue();
        is_lost
    }

    fn abort(&mut self, request: RequestNo) -> bool {
        let Some(place) = self.queue.iter().position(|pending| pending.request == request) else {
            return false;
        };
        self.queue.remove(place);
        self.process_queue();
        true
    }

    fn terminate(&mut self, client: ClientNo) -> bool {
        if self.clients.remove(&client).is_none() {
            return false;
        }
        self.events.retain(|event| event.client() != client);
        self.held.retain(|lock| lock.client != client);
        self.queue.retain(|pending| pending.client != client);
        self.process_queue();
        true
    }

    /// Releases all held locks whose scope has the name in one step, and processes the queue.
    fn force_release(&mut self, name: Name) -> usize {
        let before = self.held.len();
        self.lose(LossCause::ForceReleased, |lock| lock.scope.contains(&name));
        let count = before - self.held.len();
        self.process_queue();
        count
    }

    fn suspend(&mut self, client: ClientNo, policy: Policy) -> bool {
        let Some(presence @ Presence::Awake) = self.clients.get_mut(&client) else {
            return false;
        };
        // "While a client is suspended all its events are deferred to resume", also those not
        // polled yet. An earlier eviction is for the embedder, not for the client.
        let is_its =
            |event: &&Event| event.client() == client && !matches!(event, Event::Evicted { .. });
        let deferred = self.events.iter().filter(is_its).cloned().collect();
        self.events.retain(|event| !is_its(&event));
        *presence = Presence::Suspended { policy, deferred };
        match policy {
            Policy::EvictOnContention => {
                if self.somebody_waits_for(client) {
                    self.evict(&[client]);
                }
            }
            Policy::ReleaseAtOnce => {
                self.lose(LossCause::Suspended, |lock| lock.client == client);
                self.process_queue();
            }
        }
        true
    }

    fn resume(&mut self, client: ClientNo) -> bool {
        let Some(presence @ Presence::Suspended { .. }) = self.clients.get_mut(&client) else {
            return false;
        };
        if let Presence::Suspended { deferred, .. } = core::mem::replace(presence, Presence::Awake)
        {
            self.events.extend(deferred);
        }
        true
    }

    /// "Evicts every suspended (evict on contention) client that has a live entry, then snapshot."
    fn query(&mut self) -> Snapshot {
        let evicted: Vec<ClientNo> = self
            .evictable()
            .into_iter()
            .filter(|&client| self.live().any(|entry| entry.client == client))
            .collect();
        self.evict(&evicted);
        self.snapshot()
    }
}

/// The predicate, and what follows from it.
impl Scopes {
    /// On each name of the request, the entries up to it are no more than the smallest limit among
    /// them. Without limits this is the draft's own predicate.
    fn grantable(&self, request: &Entry, earlier: &[Entry]) -> bool {
        let before = || self.held.iter().chain(earlier);
        let clear_on = |name: &Name| {
            let limits = before().filter(|entry| entry.scope.contains(name));
            let limits = limits.chain([request]).map(|entry| entry.mode.limit());
            limits.clone().count() <= limits.min().unwrap_or(usize::MAX)
        };
        let grantable = request.scope.iter().all(clear_on);
        if !before().chain([request]).any(|entry| matches!(entry.mode, Mode::Limited(_))) {
            assert_eq!(grantable, self.grantable_by_modes(request, earlier));
        }
        grantable
    }

    /// "A lock request request is said to be grantable if the following steps return true", where
    /// `earlier` are the entries in the queue earlier than the request.
    fn grantable_by_modes(&self, request: &Entry, earlier: &[Entry]) -> bool {
        let scope = &request.scope;
        match request.mode {
            Mode::Limited(_) => panic!("the draft has no limits"),
            // Step 5. No lock in the origin has state "held" and has a scope that intersects scope,
            // and no entry in queue earlier than request has a scope that intersects scope.
            Mode::Exclusive => {
                !self.held.iter().any(|lock| intersect(&lock.scope, scope))
                    && !earlier.iter().any(|entry| intersect(&entry.scope, scope))
            }
            // Step 6. The same, of locks and entries that have mode "exclusive".
            Mode::Shared => {
                !self
                    .held
                    .iter()
                    .any(|lock| lock.mode == Mode::Exclusive && intersect(&lock.scope, scope))
                    && !earlier.iter().any(|entry| {
                        entry.mode == Mode::Exclusive && intersect(&entry.scope, scope)
                    })
            }
        }
    }

    /// Grants in the order of the queue. One pass is enough: a request that becomes held conflicts
    /// with later ones as before, and one that leaves only ever blocked later ones.
    fn process_queue(&mut self) {
        let mut place = 0;
        while place < self.queue.len() {
            if !self.grantable(&self.queue[place], &self.queue[..place]) {
                place += 1;
                continue;
            }
            let entry = self.queue.remove(place);
            match self.clients.get(&entry.client) {
                // Its turn came while it may hold nothing: it leaves at once and no token is used.
                Some(Presence::Suspended { policy: Policy::ReleaseAtOnce, .. }) => {
                    self.tell(Event::Lost {
                        request: entry.request,
                        client: entry.client,
                        cause: LossCause::Suspended,
                    })
                }
                _ => self.grant(entry),
            }
        }
    }

    fn grant(&mut self, mut entry: Entry) {
        let token = self.next_token;
        self.next_token += 1;
        entry.token = Some(token);
        self.tell(Event::Granted { request: entry.request, client: entry.client, token });
        self.held.push(entry);
    }

    /// Takes held locks away, in the order of their grants.
    fn lose(&mut self, cause: LossCause, whose: impl Fn(&Entry) -> bool) {
        let (lost, kept) = core::mem::take(&mut self.held).into_iter().partition(whose);
        self.held = kept;
        let lost: Vec<Entry> = lost;
        for Entry { request, client, .. } in lost {
            self.tell(Event::Lost { request, client, cause });
        }
    }

    /// Takes requests out of the queue, in its order.
    fn drop_pending(&mut self, cause: LossCause, whose: impl Fn(&Entry) -> bool) {
        let (dropped, kept) = core::mem::take(&mut self.queue).into_iter().partition(whose);
        self.queue = kept;
        let dropped: Vec<Entry> = dropped;
        for Entry { request, client, .. } in dropped {
            self.tell(Event::Aborted { request, client, cause });
        }
    }

    /// Sends an event to the client, or defers it while the client is suspended.
    fn tell(&mut self, event: Event) {
        match self.clients.get_mut(&event.client()) {
            Some(Presence::Suspended { deferred, .. }) => deferred.push(event),
            _ => self.events.push_back(event),
        }
    }
}
