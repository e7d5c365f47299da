//! A lock table for readable tests: clients and requests have names, every input returns its events
//! as text, and the invariants of the engine are checked after each input.

use std::collections::{HashMap, HashSet};

use navlocks_core::{
    Answer, Blockers, ClientId, Event, FencingToken, HashKey, LockManager, LossCause, Name,
    Request, RequestError, RequestId, RequestInfo, Scope, Snapshot, State, SuspendPolicy,
};

/// The events of an input that caused none.
pub(crate) const NOTHING: [&str; 0] = [];

/// Makes a manager with a fixed key; nothing observable depends on it.
pub(crate) fn manager() -> LockManager {
    LockManager::new(HashKey::from_bytes(*b"any sixteen byte"))
}

/// Makes an exclusive request that queues.
pub(crate) fn x(scope: impl Into<Scope>) -> Request {
    Request::exclusive(scope)
}

/// Makes a shared request that queues.
pub(crate) fn s(scope: impl Into<Scope>) -> Request {
    Request::shared(scope)
}

/// Makes a name from UTF-16 code units, which need not be well-formed.
pub(crate) fn units(units: &[u16]) -> Name {
    Name::from_utf16(units)
}

/// A small generator (xorshift64*), so that a random history is the same everywhere.
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        assert_ne!(seed, 0, "xorshift never leaves zero");
        Self(seed)
    }

    /// Returns a number below `sides`.
    pub(crate) fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) as usize % sides
    }
}

/// A partition whose clients and requests have names.
pub(crate) struct Table {
    pub(crate) manager: LockManager,
    clients: HashMap<String, ClientId>,
    client_words: HashMap<ClientId, String>,
    requests: HashMap<String, RequestId>,
    request_words: HashMap<RequestId, String>,
    owners: HashMap<RequestId, ClientId>,
    tokens: HashSet<FencingToken>,
}

impl Table {
    pub(crate) fn new() -> Self {
        Self::of(manager())
    }

    /// Makes a table over a manager that is already in use.
    pub(crate) fn of(manager: LockManager) -> Self {
        Self {
            manager,
            clients: HashMap::new(),
            client_words: HashMap::new(),
            requests: HashMap::new(),
            request_words: HashMap::new(),
            owners: HashMap::new(),
            tokens: HashSet::new(),
        }
    }

    /// Returns the client of that name; its first use adds it. A terminated client keeps its name.
    pub(crate) fn client(&mut self, client: &str) -> ClientId {
        if let Some(&id) = self.clients.get(client) {
            return id;
        }
        let id = self.manager.add_client();
        self.clients.insert(client.to_owned(), id);
        let earlier = self.client_words.insert(id, client.to_owned());
        assert_eq!(earlier, None, "a client's id repeats");
        id
    }

    pub(crate) fn id(&self, request: &str) -> RequestId {
        self.requests[request]
    }

    /// Requests under the name `request`. Returns the events.
    pub(crate) fn request(&mut self, client: &str, request: &str, asked: Request) -> Vec<String> {
        let owner = self.client(client);
        let (id, answer) = self.manager.request(owner, asked).expect("the client may ask");
        let earlier = self.requests.insert(request.to_owned(), id);
        assert_eq!(earlier, None, "the test uses the name {request} twice");
        let earlier = self.request_words.insert(id, request.to_owned());
        assert_eq!(earlier, None, "a request's id repeats");
        self.owners.insert(id, owner);
        let own = match answer {
            Answer::Granted(token) => Some(Event::Granted { request: id, client: owner, token }),
            Answer::Unavailable => {
                let mut words = self.settle();
                words.push(format!("unavailable {request}"));
                return words;
            }
            Answer::Pending => None,
        };
        self.settle_with(own)
    }

    /// Requests and expects a refusal: no trace, no event.
    pub(crate) fn refusal(&mut self, client: &str, asked: Request) -> RequestError {
        let owner = self.client(client);
        let before = (self.held(), self.pending());
        let error = self.manager.request(owner, asked).expect_err("the engine refuses");
        assert_eq!(self.settle(), NOTHING);
        assert_eq!((self.held(), self.pending()), before);
        error
    }

    /// Requests and expects a grant at once, and no other event.
    pub(crate) fn holds(&mut self, client: &str, request: &str, asked: Request) {
        let events = self.request(client, request, asked);
        assert_eq!(events, [format!("granted {request}")]);
    }

    /// Requests and expects to wait, and no event.
    pub(crate) fn waits(&mut self, client: &str, request: &str, asked: Request) {
        assert_eq!(self.request(client, request, asked), NOTHING);
        assert!(self.is_pending(request), "{request} should wait");
    }

    pub(crate) fn release(&mut self, request: &str) -> Vec<String> {
        assert!(self.manager.release(self.id(request)), "{request} should be held");
        self.settle()
    }

    pub(crate) fn abort(&mut self, request: &str) -> Vec<String> {
        assert!(self.manager.abort(self.id(request)), "{request} should be pending");
        self.settle()
    }

    /// Releases a request that is not held: returns false and changes nothing.
    pub(crate) fn release_does_nothing(&mut self, request: &str) {
        self.does_nothing(request, LockManager::release);
    }

    /// Aborts a request that is not pending: returns false and changes nothing.
    pub(crate) fn abort_does_nothing(&mut self, request: &str) {
        self.does_nothing(request, LockManager::abort);
    }

    fn does_nothing(&mut self, request: &str, input: fn(&mut LockManager, RequestId) -> bool) {
        let before = (self.held(), self.pending());
        let id = self.id(request);
        let effect = input(&mut self.manager, id);
        assert!(!effect, "{request} should be unaffected");
        assert_eq!(self.settle(), NOTHING);
        assert_eq!((self.held(), self.pending()), before);
    }

    pub(crate) fn terminate(&mut self, client: &str) -> Vec<String> {
        let id = self.client(client);
        assert!(self.manager.terminate(id), "{client} should be alive");
        let events = self.settle();
        assert!(!self.manager.terminate(id), "a client dies once");
        events
    }

    /// Returns how many locks were taken away, and the events.
    pub(crate) fn force_release(&mut self, name: &str) -> (usize, Vec<String>) {
        let count = self.manager.force_release(&Name::from(name));
        (count, self.settle())
    }

    pub(crate) fn suspend(&mut self, client: &str, policy: SuspendPolicy) -> Vec<String> {
        let id = self.client(client);
        assert!(self.manager.suspend(id, policy), "{client} should be awake");
        self.settle()
    }

    pub(crate) fn resume(&mut self, client: &str) -> Vec<String> {
        let id = self.client(client);
        assert!(self.manager.resume(id), "{client} should be suspended");
        self.settle()
    }

    /// Runs the standard's query, which may evict. Returns the events.
    pub(crate) fn query(&mut self) -> Vec<String> {
        let answer = self.manager.query();
        let events = self.settle();
        let after = self.manager.snapshot();
        assert_eq!(self.words(&answer.held), self.words(&after.held));
        assert_eq!(self.words(&answer.pending), self.words(&after.pending));
        events
    }

    pub(crate) fn snapshot(&self) -> Snapshot {
        self.manager.snapshot()
    }

    /// Returns the held requests in grant order.
    pub(crate) fn held(&self) -> Vec<String> {
        self.words(&self.snapshot().held)
    }

    /// Returns the pending requests in queue order.
    pub(crate) fn pending(&self) -> Vec<String> {
        self.words(&self.snapshot().pending)
    }

    fn words(&self, infos: &[RequestInfo]) -> Vec<String> {
        infos.iter().map(|info| self.word(info.request)).collect()
    }

    pub(crate) fn is_held(&self, request: &str) -> bool {
        matches!(self.manager.state(self.id(request)), Some(State::Held(_)))
    }

    pub(crate) fn is_pending(&self, request: &str) -> bool {
        matches!(self.manager.state(self.id(request)), Some(State::Pending))
    }

    pub(crate) fn is_gone(&self, request: &str) -> bool {
        self.manager.state(self.id(request)).is_none()
    }

    /// Returns the blockers of a request: held conflicts, then earlier conflicting requests.
    pub(crate) fn blockers(&self, request: &str) -> (Vec<String>, Vec<String>) {
        let Blockers { hard, soft } = self.manager.blockers(self.id(request));
        let words = |ids: Vec<RequestId>| ids.into_iter().map(|id| self.word(id)).collect();
        (words(hard), words(soft))
    }

    /// Makes one request within another one.
    pub(crate) fn nest(&mut self, inner: &str, outer: &str) -> bool {
        let (inner, outer) = (self.id(inner), self.id(outer));
        self.manager.nest(inner, outer)
    }

    /// Returns the requests of every certain deadlock.
    pub(crate) fn deadlocked_requests(&self) -> Vec<Vec<String>> {
        let words = |ids: &[RequestId]| ids.iter().map(|&id| self.word(id)).collect();
        self.manager.deadlocks().iter().map(|deadlock| words(&deadlock.requests)).collect()
    }

    /// Returns the clients of every deadlock that is only possible.
    pub(crate) fn deadlocked_clients(&self) -> Vec<Vec<String>> {
        let words = |ids: &[ClientId]| ids.iter().map(|id| self.client_words[id].clone()).collect();
        self.manager.possible_deadlocks().iter().map(|deadlock| words(&deadlock.clients)).collect()
    }

    /// Returns the events since the last input, after checking the invariants.
    pub(crate) fn settle(&mut self) -> Vec<String> {
        self.settle_with(None)
    }

    /// Returns the same after a request that was granted at once: its grant stands before those
    /// with larger tokens.
    fn settle_with(&mut self, mut own: Option<Event>) -> Vec<String> {
        self.manager.check_invariants();
        let held = self.snapshot().held;
        assert!(
            held.is_sorted_by(|a, b| a.token < b.token),
            "a fencing token grows with every grant"
        );
        let mut words = Vec::new();
        let token = |event: &Event| match event {
            Event::Granted { token, .. } => Some(*token),
            _ => None,
        };
        while let Some(event) = self.manager.poll_event() {
            if let Some(granted) = own.take_if(|own| token(own) < token(&event)) {
                words.push(self.say(&granted));
            }
            words.push(self.say(&event));
        }
        words.extend(own.map(|granted| self.say(&granted)));
        words
    }

    fn say(&mut self, event: &Event) -> String {
        match *event {
            Event::Granted { request, client, token } => {
                assert_eq!(client, self.owners[&request]);
                assert!(self.tokens.insert(token), "{token:?} is granted twice");
                format!("granted {}", self.word(request))
            }
            Event::Lost { request, client, cause } => {
                assert_eq!(client, self.owners[&request]);
                format!("lost {}: {}", self.word(request), self.why(cause))
            }
            Event::Aborted { request, client, cause } => {
                assert_eq!(client, self.owners[&request]);
                format!("aborted {}: {}", self.word(request), self.why(cause))
            }
            Event::Evicted { client } => format!("evicted {}", self.client_words[&client]),
        }
    }

    fn why(&self, cause: LossCause) -> String {
        match cause {
            LossCause::Stolen { by } => format!("stolen by {}", self.word(by)),
            LossCause::ForceReleased => "force-released".to_owned(),
            LossCause::HeldTooLong => "held too long".to_owned(),
            LossCause::Evicted => "evicted".to_owned(),
            LossCause::Suspended => "suspended".to_owned(),
        }
    }

    /// Returns the name of a request, or its id if it was made without the table.
    fn word(&self, request: RequestId) -> String {
        self.request_words.get(&request).map_or_else(|| request.to_string(), Clone::clone)
    }
}
