//! A lock space of the process: the embedding kit behind a mutex, and a mailbox for each client.
//!
//! Each input locks, gives the engine one input, fills the mailboxes of the affected clients,
//! unlocks, and then wakes. Mail is put in under the lock, so that every client receives it in the
//! engine's order.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::hash::RandomState;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use coarsetime::Clock;
use navlocks_core::kit::{self, About, Embedder, Notes, Notice, Sink};
use navlocks_core::{
    Blockers, ClientId, Deadlock, DeadlockPolicy, FencingToken, HashKey, LockManager, Mode, Name,
    Request, RequestId, Snapshot,
};

use crate::inbox::{ABORTED, CONTENDED, EVENTS, Event, GRANTED, Inbox, LOST, UNAVAILABLE, number};
use crate::napi::LoopWaker;

/// One lock space, shared by all threads that opened it.
pub(crate) struct Space(Mutex<State>);

struct State {
    space: kit::Space<Threads>,
    mailboxes: Mailboxes,
}

/// The types that the addon attaches to a request: its client. Times are in milliseconds since
/// 1970.
struct Threads;

impl Embedder for Threads {
    type Note = Option<ClientId>;
    type Time = u64;
    type Tag = Name;
}

#[derive(Default)]
struct Mailboxes {
    /// By [`ClientId::slot`].
    clients: Vec<Option<Client>>,
    /// The client of this input. It takes its mail itself, without being woken.
    caller: Option<ClientId>,
    /// The wakers to call after unlocking. Empty between inputs.
    wakers: Vec<Arc<LoopWaker>>,
    /// The clients that have an inbox for events.
    subscribers: Vec<ClientId>,
    /// Larger than all tokens that were granted.
    next_token: u64,
}

struct Client {
    id: ClientId,
    /// The client's name in queries.
    name: Name,
    mail: VecDeque<Mail>,
    inbox: Option<Inbox>,
    /// True if it was woken and has not taken its mail since.
    woken: bool,
    /// True if it takes its mail soon by itself, so that it need not be woken.
    polls: bool,
    waker: Arc<LoopWaker>,
}

/// An event of a request, as three numbers: its kind, the request's serial, and a token or a cause.
type Mail = [f64; MAIL_LENGTH];
const MAIL_LENGTH: usize = 3;

/// Above this many letters, an empty mailbox drops its memory.
const IDLE_CAPACITY: usize = 1024;

/// The answer to a query, with the facts that the engine does not keep.
pub(crate) struct Report {
    pub(crate) snapshot: Snapshot,
    /// The times of the held requests, then of the pending ones.
    pub(crate) since: Vec<u64>,
    pub(crate) tags: HashMap<RequestId, Name>,
    pub(crate) clients: HashMap<ClientId, Name>,
}

/// The lock spaces of the process that have clients.
struct Spaces {
    by_partition: BTreeMap<Name, Arc<Space>>,
    /// Larger than all tokens of the spaces that were freed.
    next_token: u64,
}

static SPACES: Mutex<Spaces> = Mutex::new(Spaces { by_partition: BTreeMap::new(), next_token: 1 });

fn spaces() -> MutexGuard<'static, Spaces> {
    SPACES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Adds a client to the lock space of a partition, which all threads of the process share. Its
/// waker is called when there is mail for it.
pub(crate) fn open(partition: Name, client: Name, waker: Arc<LoopWaker>) -> (Arc<Space>, ClientId) {
    let Spaces { by_partition, next_token } = &mut *spaces();
    let space = by_partition.entry(partition).or_insert_with(|| Arc::new(Space::new(*next_token)));
    // Under the lock of all spaces, so that a space is not freed before it has its client.
    (space.clone(), space.add_client(client, waker))
}

/// Ends a client and all its requests. A space without clients is freed.
pub(crate) fn close(partition: &Name, space: &Space, client: ClientId) {
    space.end_client(client);
    let Spaces { by_partition, next_token } = &mut *spaces();
    let is_empty = |space: &Arc<Space>| {
        let state = space.lock();
        *next_token = state.mailboxes.next_token.max(*next_token);
        state.space.manager().client_count() == 0
    };
    if by_partition.get(partition).is_some_and(is_empty) {
        by_partition.remove(partition);
    }
}

impl Space {
    fn new(token: u64) -> Self {
        let mut manager = LockManager::new(HashKey::drawn_from(&RandomState::new()));
        // Tokens of a process are far below the largest that the engine takes.
        let _advanced = manager.advance_token(FencingToken::new(token));
        Self(Mutex::new(State {
            space: kit::Space::new(manager, DeadlockPolicy::Ignore),
            mailboxes: Mailboxes::default(),
        }))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Locks even after a panic of the engine: other threads must still be able to release.
        kit::spin(|| self.0.try_lock().ok())
            .unwrap_or_else(|| self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Gives the space one input and wakes the affected clients, except `caller`, which takes the
    /// mail that fits into `post`.
    fn input<T>(
        &self,
        caller: Option<ClientId>,
        post: &mut Postbag<'_>,
        input: impl FnOnce(&mut kit::Space<Threads>, &mut Mailboxes) -> T,
    ) -> T {
        let mut locked = self.lock();
        let State { space, mailboxes } = &mut *locked;
        mailboxes.caller = caller;
        let result = input(space, mailboxes);
        if let Some(caller) = caller {
            mailboxes.take_mail(caller, post);
        }
        if !mailboxes.wakers.is_empty() {
            let wakers = std::mem::take(&mut mailboxes.wakers);
            drop(locked);
            wakers.iter().for_each(|waker| waker.wake());
        }
        result
    }

    /// Adds a client, whose waker is called when there is mail for it.
    fn add_client(&self, name: Name, waker: Arc<LoopWaker>) -> ClientId {
        let mut state = self.lock();
        let id = state.space.add_client();
        let mail = VecDeque::new();
        let client = Client { id, name, mail, inbox: None, woken: false, polls: false, waker };
        let clients = &mut state.mailboxes.clients;
        let slots = clients.len().max(id.slot() + 1);
        clients.resize_with(slots, || None);
        clients[id.slot()] = Some(client);
        id
    }

    fn end_client(&self, id: ClientId) {
        self.input(None, &mut Postbag::new(&mut []), |space, mailboxes| {
            mailboxes.unsubscribe(id, space);
            if space.end_client(id, mailboxes) {
                mailboxes.clients[id.slot()] = None;
            }
        });
    }

    /// Requests a lock. Returns none when the engine refuses.
    #[inline]
    pub(crate) fn request(
        &self,
        client: ClientId,
        request: &Request,
        tag: Option<Name>,
        post: &mut Postbag<'_>,
    ) -> Option<RequestId> {
        self.input(Some(client), post, |space, mailboxes| {
            let made = space.request(client, request, (Some(client), tag), mailboxes);
            made.ok().map(|(id, _)| id)
        })
    }

    /// Releases a lock of this client. Returns false when the request holds none.
    #[inline]
    pub(crate) fn release(
        &self,
        client: ClientId,
        request: RequestId,
        post: &mut Postbag<'_>,
    ) -> bool {
        self.input(Some(client), post, |space, mailboxes| {
            owns(space, client, request) && space.release(request, mailboxes)
        })
    }

    /// Aborts a pending request of this client. Returns false when it is not pending.
    pub(crate) fn abort(
        &self,
        client: ClientId,
        request: RequestId,
        post: &mut Postbag<'_>,
    ) -> bool {
        self.input(Some(client), post, |space, mailboxes| {
            owns(space, client, request) && space.abort(request, mailboxes)
        })
    }

    /// Gives a lock of this client a mode that allows more holders. Returns false if it allows
    /// fewer, or if the request holds none.
    pub(crate) fn downgrade(
        &self,
        client: ClientId,
        request: RequestId,
        mode: Mode,
        post: &mut Postbag<'_>,
    ) -> bool {
        self.input(Some(client), post, |space, mailboxes| {
            owns(space, client, request) && space.downgrade(request, mode, mailboxes).is_ok()
        })
    }

    /// Takes away all locks held on a name. Returns how many there were.
    pub(crate) fn force_release(
        &self,
        client: ClientId,
        name: &Name,
        post: &mut Postbag<'_>,
    ) -> usize {
        self.input(Some(client), post, |space, mailboxes| space.force_release(name, mailboxes))
    }

    /// Sends mail, once, when a request waits for this lock.
    pub(crate) fn watch_contention(
        &self,
        client: ClientId,
        request: RequestId,
        post: &mut Postbag<'_>,
    ) {
        self.input(Some(client), post, |space, mailboxes| {
            if owns(space, client, request) {
                space.watch_contention(request, mailboxes);
            }
        });
    }

    /// Keeps up to this many events for a client from now on; 0 ends that.
    pub(crate) fn subscribe(&self, client: ClientId, capacity: usize) {
        let State { space, mailboxes } = &mut *self.lock();
        if capacity == 0 {
            mailboxes.unsubscribe(client, space);
        } else if let Some(inbox) = mailboxes.client(client).and_then(|known| known.inbox.as_mut())
        {
            inbox.set_capacity(capacity);
        } else if let Some(known) = mailboxes.client(client) {
            known.inbox = Some(Inbox::new(capacity));
            mailboxes.subscribers.push(client);
            space.describe();
        }
    }

    /// Takes all events of a client, and how many are missing before them.
    pub(crate) fn take_events(&self, client: ClientId) -> (u64, VecDeque<Arc<Event>>) {
        let mailboxes = &mut self.lock().mailboxes;
        let inbox = mailboxes.client(client).and_then(|client| client.inbox.as_mut());
        inbox.map(Inbox::take).unwrap_or_default()
    }

    /// Takes the mail that fits. From now on the client may be woken again, unless it polls.
    pub(crate) fn take_mail(&self, client: ClientId, polls: bool, post: &mut Postbag<'_>) {
        let mailboxes = &mut self.lock().mailboxes;
        if let Some(client) = mailboxes.client(client) {
            client.woken = false;
            client.polls = polls;
        }
        mailboxes.take_mail(client, post);
    }

    /// Returns all locks and requests of this moment.
    pub(crate) fn query(&self) -> Report {
        let State { space, mailboxes } = &*self.lock();
        let snapshot = space.manager().snapshot();
        let requests = || snapshot.held.iter().chain(&snapshot.pending).map(|info| info.request);
        let tag = |id| Some((id, space.tag(id)?.clone()));
        let clients = mailboxes.clients.iter().flatten();
        Report {
            since: requests().map(|id| space.notes().since(id)).collect(),
            tags: requests().filter_map(tag).collect(),
            clients: clients.map(|client| (client.id, client.name.clone())).collect(),
            snapshot,
        }
    }

    /// Returns how much is kept: names, slots of requests, tags and mail of this space, and spaces.
    pub(crate) fn census(&self) -> [usize; 5] {
        let spaces = spaces().by_partition.len();
        let State { space, mailboxes } = &*self.lock();
        let mail = mailboxes.clients.iter().flatten().map(|client| client.mail.len()).sum();
        let manager = space.manager();
        [manager.name_count(), space.notes().slot_count(), space.tag_count(), mail, spaces]
    }

    /// Returns what the request with this serial waits for.
    pub(crate) fn blockers(&self, serial: u64) -> Blockers {
        let state = self.lock();
        let manager = state.space.manager();
        let pending = manager.snapshot().pending;
        let found = pending.iter().find(|info| info.request.serial() == serial);
        found.map(|info| manager.blockers(info.request)).unwrap_or_default()
    }

    /// Returns the clients that wait for each other, with their names.
    pub(crate) fn deadlocks(&self) -> Vec<(Vec<Name>, Deadlock)> {
        let State { space, mailboxes } = &mut *self.lock();
        let named = space.manager().deadlocks().into_iter().map(|deadlock| {
            let clients = deadlock.clients.iter();
            let names =
                clients.filter_map(|&id| mailboxes.client(id).map(|client| client.name.clone()));
            (names.collect(), deadlock)
        });
        named.collect()
    }
}

/// Returns true if a live request belongs to this client.
#[inline]
fn owns(space: &kit::Space<Threads>, client: ClientId, request: RequestId) -> bool {
    space.notes().get(request) == Some(&Some(client))
}

impl Sink<Threads> for Mailboxes {
    #[inline]
    fn now(&self) -> u64 {
        now()
    }

    #[inline]
    fn notify(&mut self, id: RequestId, notes: &mut Notes<Threads>, notice: &Notice<'_, u64>) {
        let (kind, value) = match *notice {
            Notice::Granted { token, .. } => {
                self.next_token = token.get() + 1;
                (GRANTED, token.get() as f64)
            }
            Notice::Unavailable => (UNAVAILABLE, 0.0),
            Notice::Lost { cause, .. } => (LOST, number(cause)),
            Notice::Aborted(cause) => (ABORTED, number(cause)),
            // The client did these itself, or is gone; all others are for watchers and subscribers.
            Notice::Downgraded(_)
            | Notice::Released { .. }
            | Notice::Withdrawn
            | Notice::ClientEnded { .. } => return,
            Notice::Contended => (CONTENDED, 0.0),
            Notice::Requested | Notice::Deadlock(_) => return,
        };
        if let Some(client) = notes.get(id).copied().flatten() {
            self.send(client, [f64::from(kind), id.serial() as f64, value]);
        }
    }

    fn publish(
        &mut self,
        request: RequestId,
        about: &About<Name>,
        _: &Notes<Threads>,
        notice: &Notice<'_, u64>,
    ) {
        let Some(client) = self.client(about.client).map(|client| client.name.clone()) else {
            return;
        };
        let Some(event) = Event::new(request, about, client, notice).map(Arc::new) else { return };
        for index in 0..self.subscribers.len() {
            let subscriber = self.subscribers[index];
            let inbox = self.client(subscriber).and_then(|client| client.inbox.as_mut());
            if inbox.is_some_and(|inbox| inbox.push(event.clone())) {
                self.send(subscriber, [f64::from(EVENTS), 0.0, 0.0]);
            }
        }
    }
}

impl Mailboxes {
    #[inline]
    fn client(&mut self, id: ClientId) -> Option<&mut Client> {
        self.clients.get_mut(id.slot())?.as_mut().filter(|client| client.id == id)
    }

    /// Puts mail into the mailbox of a client, and marks the client to be woken unless it polls.
    #[inline]
    fn send(&mut self, id: ClientId, mail: Mail) {
        let Some(client) = self.client(id) else { return };
        client.mail.push_back(mail);
        let woken = client.woken || client.polls;
        if !woken && self.caller != Some(id) {
            self.wake(id);
        }
    }

    /// Ends the subscription of a client; with the last one the space stops publishing.
    fn unsubscribe(&mut self, id: ClientId, space: &mut kit::Space<Threads>) {
        let Some(client) = self.client(id) else { return };
        if client.inbox.take().is_none() {
            return;
        }
        self.subscribers.retain(|&subscriber| subscriber != id);
        if self.subscribers.is_empty() {
            space.stop_describing();
        }
    }

    fn wake(&mut self, id: ClientId) {
        if let Some(client) = self.clients.get_mut(id.slot()).and_then(Option::as_mut) {
            client.woken = true;
            self.wakers.push(client.waker.clone());
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

/// Space for mail that is taken in one call.
pub(crate) struct Postbag<'a> {
    numbers: &'a mut [f64],
    /// How many numbers are written.
    filled: usize,
    /// True if something did not fit.
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
