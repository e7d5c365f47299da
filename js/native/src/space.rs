//! A lock space of the process: the engine behind a mutex, and what each client has yet to hear.
//!
//! Each input locks, asks the engine, puts its events into the mailboxes of those they concern, unlocks, and only then rings.
//! Mail is put in under the lock, so that everybody hears of everything in the engine's order.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use coarsetime::Clock;
use navlocks_core::{
    Answer, Blockers, Cause, ClientId, Deadlock, Event, HashKey, LockManager, Name, Request,
    RequestId, Snapshot,
};

use crate::napi::Bell;

/// One lock space, shared by all threads that opened it.
pub(crate) struct Space(Mutex<State>);

struct State {
    manager: LockManager,
    /// By [`ClientId::slot`].
    clients: Vec<Option<Client>>,
    /// What is known of each live request beyond the engine, by [`RequestId::slot`].
    asked: Vec<Asked>,
    /// The tags of live requests that have one.
    tags: HashMap<RequestId, Name>,
    /// Whom this input concerns. Empty between inputs.
    bells: Vec<Arc<Bell>>,
}

struct Client {
    id: ClientId,
    /// What queries call it.
    name: Name,
    mail: VecDeque<Mail>,
    /// Rung, and not taken its mail since.
    rung: bool,
    /// Comes for its mail by itself before long, so that nobody needs to ring.
    polls: bool,
    bell: Arc<Bell>,
}

#[derive(Clone, Copy)]
struct Asked {
    id: RequestId,
    /// When it was requested, and once held when it was granted, in milliseconds since 1970.
    since: u64,
}

/// Something that happened to a request, as three numbers: what, the request's serial, and a token or a cause.
type Mail = [f64; MAIL_LENGTH];
const MAIL_LENGTH: usize = 3;

const GRANTED: f64 = 1.0;
const UNAVAILABLE: f64 = 2.0;
const LOST: f64 = 3.0;
const ABORTED: f64 = 4.0;

/// Above this many slots, an idle space gives memory back.
const IDLE_CAPACITY: usize = 1024;

/// All that a query can tell, with what the engine does not know.
pub(crate) struct Report {
    pub(crate) snapshot: Snapshot,
    /// Of the held ones, then the pending ones.
    pub(crate) since: Vec<u64>,
    pub(crate) tags: HashMap<RequestId, Name>,
    pub(crate) clients: HashMap<ClientId, Name>,
}

static SPACES: Mutex<BTreeMap<Name, Arc<Space>>> = Mutex::new(BTreeMap::new());

/// The lock space of this name: the same for all threads of the process, from its first use to the end.
pub(crate) fn space(partition: Name) -> Arc<Space> {
    let mut spaces = SPACES.lock().unwrap_or_else(PoisonError::into_inner);
    spaces.entry(partition).or_insert_with(|| Arc::new(Space::new())).clone()
}

impl Space {
    fn new() -> Self {
        let random = RandomState::new();
        let (low, high) = (random.hash_one(0), random.hash_one(1));
        let key = (u128::from(high) << 64 | u128::from(low)).to_ne_bytes();
        Self(Mutex::new(State {
            manager: LockManager::new(HashKey::from_bytes(key)),
            clients: Vec::new(),
            asked: Vec::new(),
            tags: HashMap::new(),
            bells: Vec::new(),
        }))
    }

    /// Tries for a few microseconds before the thread goes to sleep: an operation takes a tenth of one, and to wake a
    /// thread takes twenty.
    fn lock(&self) -> MutexGuard<'_, State> {
        for doublings in 0..10 {
            if let Ok(state) = self.0.try_lock() {
                return state;
            }
            for _ in 0..1 << doublings {
                std::hint::spin_loop();
            }
        }
        // A panic in the engine would be its bug; others must be able to let go all the same.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives the engine one input, delivers what it says, and rings whom that concerns except `caller`, who takes what
    /// mail fits into `post`.
    fn input<T>(
        &self,
        caller: Option<ClientId>,
        post: &mut Postbag<'_>,
        input: impl FnOnce(&mut State) -> T,
    ) -> T {
        let mut state = self.lock();
        let result = input(&mut state);
        state.deliver(caller);
        if let Some(caller) = caller {
            state.take_mail(caller, post);
        }
        if state.asked.capacity() > IDLE_CAPACITY && state.manager.name_count() == 0 {
            state.asked = Vec::new();
        }
        if !state.bells.is_empty() {
            let bells = std::mem::take(&mut state.bells);
            drop(state);
            bells.iter().for_each(|bell| bell.ring());
        }
        result
    }

    /// A new client, whose bell is rung when there is mail for it.
    pub(crate) fn add_client(&self, name: Name, bell: Arc<Bell>) -> ClientId {
        let mut state = self.lock();
        let id = state.manager.add_client();
        let client = Client { id, name, mail: VecDeque::new(), rung: false, polls: false, bell };
        let slots = state.clients.len().max(id.slot() + 1);
        state.clients.resize_with(slots, || None);
        state.clients[id.slot()] = Some(client);
        id
    }

    /// Ends a client: all it has is released, and whoever waited for that is woken.
    pub(crate) fn end_client(&self, id: ClientId) {
        self.input(None, &mut Postbag::new(&mut []), |state| {
            if state.manager.terminate(id) {
                state.clients[id.slot()] = None;
                // What the dead one had is gone from the engine.
                let State { tags, manager, .. } = state;
                tags.retain(|&request, _| manager.state(request).is_some());
            }
        });
    }

    /// Requests a lock. None when the engine refuses.
    #[inline]
    pub(crate) fn request(
        &self,
        client: ClientId,
        request: &Request,
        tag: Option<Name>,
        post: &mut Postbag<'_>,
    ) -> Option<RequestId> {
        let since = now();
        self.input(Some(client), post, |state| {
            let (id, answer) = state.manager.request(client, request).ok()?;
            state.note(Asked { id, since });
            if let Some(tag) = tag {
                state.tags.insert(id, tag);
            }
            state.deliver_with(Some((client, id, answer)), Some(client));
            Some(id)
        })
    }

    /// Releases a lock. False when the request holds none.
    #[inline]
    pub(crate) fn release(
        &self,
        client: ClientId,
        request: Ticket,
        post: &mut Postbag<'_>,
    ) -> bool {
        self.input(Some(client), post, |state| {
            let Some(id) = state.find(request) else { return false };
            let released = state.manager.release(id);
            if released && !state.tags.is_empty() {
                state.tags.remove(&id);
            }
            released
        })
    }

    /// Takes back a request that its owner lost interest in: out of the queue, or, if it was granted and its
    /// owner had not heard of it, releases it.
    pub(crate) fn abort(&self, client: ClientId, request: Ticket, post: &mut Postbag<'_>) -> bool {
        self.input(Some(client), post, |state| {
            let Some(id) = state.find(request) else { return false };
            state.tags.remove(&id);
            state.manager.abort(id) || state.manager.release(id)
        })
    }

    /// Takes away all locks held on a name. Returns how many there were.
    pub(crate) fn force_release(
        &self,
        client: ClientId,
        name: &Name,
        post: &mut Postbag<'_>,
    ) -> usize {
        self.input(Some(client), post, |state| state.manager.force_release(name))
    }

    /// Takes what mail fits. The bell may ring again from now on, unless the client polls.
    pub(crate) fn take_mail(&self, client: ClientId, polls: bool, post: &mut Postbag<'_>) {
        let mut state = self.lock();
        if let Some(client) = state.client(client) {
            client.rung = false;
            client.polls = polls;
        }
        state.take_mail(client, post);
    }

    /// All locks and requests of this moment.
    pub(crate) fn query(&self) -> Report {
        let mut state = self.lock();
        let snapshot = state.manager.query();
        let infos = snapshot.held.iter().chain(&snapshot.pending);
        let since = infos.map(|info| state.asked[info.request.slot()].since).collect();
        let clients = state.clients.iter().flatten();
        Report {
            since,
            tags: state.tags.clone(),
            clients: clients.map(|client| (client.id, client.name.clone())).collect(),
            snapshot,
        }
    }

    /// How much is kept: names, slots of requests, tags, mail.
    pub(crate) fn census(&self) -> [usize; 4] {
        let state = self.lock();
        let mail = state.clients.iter().flatten().map(|client| client.mail.len()).sum();
        [state.manager.name_count(), state.asked.len(), state.tags.len(), mail]
    }

    /// What the request with this serial waits for.
    pub(crate) fn blockers(&self, serial: u64) -> Blockers {
        let state = self.lock();
        let asked = state.asked.iter().find(|asked| asked.id.serial() == serial);
        asked.map(|asked| state.manager.blockers(asked.id)).unwrap_or_default()
    }

    /// Clients that wait for each other, with their names.
    pub(crate) fn deadlocks(&self) -> Vec<(Vec<Name>, Deadlock)> {
        let mut state = self.lock();
        let deadlocks = state.manager.deadlocks();
        let named = deadlocks.into_iter().map(|deadlock| {
            let clients = deadlock.clients.iter();
            let names =
                clients.filter_map(|&id| state.client(id).map(|client| client.name.clone()));
            (names.collect(), deadlock)
        });
        named.collect()
    }
}

impl State {
    fn client(&mut self, id: ClientId) -> Option<&mut Client> {
        self.clients.get_mut(id.slot())?.as_mut().filter(|client| client.id == id)
    }

    #[inline]
    fn note(&mut self, asked: Asked) {
        let slot = asked.id.slot();
        if slot >= self.asked.len() {
            self.asked.resize(slot + 1, asked);
        }
        self.asked[slot] = asked;
    }

    /// The request that was given this ticket; none when its slot has another owner now.
    #[inline]
    fn find(&self, ticket: Ticket) -> Option<RequestId> {
        let asked = self.asked.get(ticket.slot)?;
        (asked.id.serial() == ticket.serial).then_some(asked.id)
    }

    /// Puts the engine's events into mailboxes, and notes which bells to ring.
    #[inline]
    fn deliver(&mut self, caller: Option<ClientId>) {
        self.deliver_with(None, caller);
    }

    /// Puts a request's own outcome in its place: after the losses that it caused, before later grants.
    #[inline]
    fn deliver_with(
        &mut self,
        mut own: Option<(ClientId, RequestId, Answer)>,
        caller: Option<ClientId>,
    ) {
        while let Some(event) = self.manager.poll_event() {
            if let Event::Granted { .. } = event {
                self.deliver_own(own.take(), caller);
            }
            let (what, request, value) = match event {
                Event::Granted { request, token, .. } => {
                    self.asked[request.slot()].since = now();
                    (GRANTED, request, token.get() as f64)
                }
                Event::Lost { request, cause, .. } => (LOST, request, number(cause)),
                Event::Aborted { request, cause, .. } => (ABORTED, request, number(cause)),
                // A thread of this process is never suspended.
                Event::Evicted { .. } => continue,
            };
            self.post(event.client(), [what, request.serial() as f64, value], caller);
            if what != GRANTED && !self.tags.is_empty() {
                self.tags.remove(&request);
            }
        }
        self.deliver_own(own, caller);
    }

    #[inline]
    fn deliver_own(
        &mut self,
        own: Option<(ClientId, RequestId, Answer)>,
        caller: Option<ClientId>,
    ) {
        let Some((client, id, answer)) = own else { return };
        let serial = id.serial() as f64;
        match answer {
            Answer::Granted(token) => {
                self.post(client, [GRANTED, serial, token.get() as f64], caller)
            }
            Answer::Unavailable => {
                self.tags.remove(&id);
                self.post(client, [UNAVAILABLE, serial, 0.0], caller);
            }
            Answer::Pending => {}
        }
    }

    #[inline]
    fn post(&mut self, id: ClientId, mail: Mail, caller: Option<ClientId>) {
        let Some(client) = self.clients.get_mut(id.slot()).and_then(Option::as_mut) else { return };
        client.mail.push_back(mail);
        if caller != Some(id) && !client.rung && !client.polls {
            client.rung = true;
            self.bells.push(client.bell.clone());
        }
    }

    #[inline]
    fn take_mail(&mut self, id: ClientId, post: &mut Postbag<'_>) {
        let Some(client) = self.client(id) else { return };
        while let Some(mail) = client.mail.front() {
            if !post.put(mail) {
                break;
            }
            client.mail.pop_front();
        }
        if client.mail.is_empty() && client.mail.capacity() > IDLE_CAPACITY {
            client.mail = VecDeque::new();
        }
    }
}

/// How a request is called by its owner: its slot and its serial.
#[derive(Clone, Copy)]
pub(crate) struct Ticket {
    pub(crate) slot: usize,
    pub(crate) serial: u64,
}

/// Room for mail that is taken in one call.
pub(crate) struct Postbag<'a> {
    numbers: &'a mut [f64],
    /// How many numbers are written.
    filled: usize,
    /// Something did not fit.
    pub(crate) more: bool,
}

impl<'a> Postbag<'a> {
    pub(crate) fn new(numbers: &'a mut [f64]) -> Self {
        Self { numbers, filled: 0, more: false }
    }

    pub(crate) fn count(&self) -> usize {
        self.filled / MAIL_LENGTH
    }

    fn put(&mut self, mail: &Mail) -> bool {
        let end = self.filled + mail.len();
        match self.numbers.get_mut(self.filled..end) {
            Some(room) => {
                room.copy_from_slice(mail);
                self.filled = end;
                true
            }
            None => {
                self.more = true;
                false
            }
        }
    }
}

fn now() -> u64 {
    Clock::now_since_epoch().as_millis()
}

/// Causes as JavaScript knows them, see `CAUSES` in `js/native.js`.
fn number(cause: Cause) -> f64 {
    match cause {
        Cause::Stolen { .. } => 0.0,
        Cause::ForceReleased => 1.0,
        Cause::Evicted => 2.0,
        Cause::Suspended => 3.0,
    }
}
