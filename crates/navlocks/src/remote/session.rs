//! The state that the users of a connection and its driver share.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

use tokio_tungstenite::tungstenite::Utf8Bytes;

use super::asking::Asked;
use super::changes::Changes;
use super::connect::Options;
use super::entry::{Entry, Over};
use super::presence::Presence;
use crate::error::{Loss, Refusal, RequestErrorKind};
use crate::inbox::Inboxes;
use crate::wakes::Wakes;
use navlocks_client::{Keepalive, KnownSession, Moment};
use navlocks_wire::{self as wire, Fault, Open, ToService};

/// The state that the users of a connection and its driver share. It outlives connections, and
/// sessions of the service.
pub(crate) struct Session {
    pub(super) options: Options,
    state: Mutex<State>,
    /// How many locks were ever lost here: while it does not change, no holder has lost its lock.
    pub(super) losses: AtomicU64,
    /// Until when the client may take its locks for held.
    pub(super) lease_deadline: AtomicU64,
}

#[derive(Debug)]
pub(super) struct State {
    /// The session at the service.
    pub(super) known: KnownSession,
    /// The socket of the presence, as long as the session lives.
    pub(super) presence: Option<Presence>,
    /// The silence of the service, while a request may wait for it.
    pub(super) keepalive: Keepalive,
    /// The service ended the connection with this refusal, because the locks are elsewhere.
    pub(super) moved: Option<Fault>,
    /// The service ended the session because of this client's messages, and may do so again.
    pub(super) fault: Option<Fault>,
    pub(super) link: LinkState,
    /// The state of the connection that users see.
    pub(super) changes: Changes,
    /// The messages to send, while there is a connection.
    pub(super) outbox: VecDeque<Utf8Bytes>,
    /// The waker of the driver.
    pub(super) driver: Option<Waker>,
    /// The tasks that wait for the last connection to end.
    pub(super) leavers: Vec<Waker>,
    pub(super) clients: BTreeMap<u64, Client>,
    /// The partitions of ended clients that still have users.
    pub(super) ended: HashMap<u64, Arc<str>>,
    pub(super) next_client: u64,
    pub(super) entries: HashMap<u64, Entry>,
    /// Requests that steal and have no grant yet.
    pub(super) thieves: BTreeSet<u64>,
    pub(super) next_request: u64,
    pub(super) asked: HashMap<u64, Asked>,
    pub(super) next_ask: u64,
    pub(super) next_watch: u64,
    /// Requests that were sent with the hello, until its answer.
    pub(super) early: Vec<u64>,
    /// Whom this concerns. Empty between inputs.
    pub(super) wakes: Wakes,
}

/// The state of the link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum LinkState {
    Up,
    /// The driver tries to reach the service.
    Down,
    /// The driver still tries, for longer than the patience.
    Hopeless,
    /// The service refuses this client.
    Refused(Refusal),
    /// All users are gone, or one of them wants the connection to end.
    Leaving,
    /// No message will ever be sent again.
    Gone,
}

/// The state of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    Carried,
    /// The last messages are sent, and then it is closed.
    Leaving,
    /// The session that it carried is over.
    Over,
}

#[derive(Debug, Default)]
pub(super) struct Client {
    pub(super) partition: Arc<str>,
    pub(super) inboxes: Inboxes,
    /// True if the service sends events, or would.
    pub(super) subscribed: bool,
}

impl Session {
    pub(super) fn new(options: Options) -> Self {
        let first = Client { partition: options.partition.as_str().into(), ..Client::default() };
        let keepalive = Keepalive::new(options.answers_within);
        Self {
            options,
            state: Mutex::new(State {
                known: KnownSession::default(),
                presence: None,
                keepalive,
                moved: None,
                fault: None,
                link: LinkState::Down,
                changes: Changes::new(),
                outbox: VecDeque::new(),
                driver: None,
                leavers: Vec::new(),
                clients: BTreeMap::from([(0, first)]),
                ended: HashMap::new(),
                next_client: 1,
                entries: HashMap::new(),
                thieves: BTreeSet::new(),
                next_request: 1,
                asked: HashMap::new(),
                next_ask: 1,
                next_watch: 1,
                early: Vec::new(),
                wakes: Wakes::default(),
            }),
            losses: AtomicU64::new(0),
            lease_deadline: AtomicU64::new(Moment::NEVER.nanoseconds()),
        }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the state, and wakes the affected tasks after unlocking.
    pub(super) fn input<T>(&self, input: impl FnOnce(&mut State) -> T) -> T {
        let mut state = self.lock();
        let result = input(&mut state);
        state.note_link();
        let until = state.known.lease_deadline();
        self.lease_deadline.store(until.nanoseconds(), Ordering::Release);
        if !state.outbox.is_empty() || state.link == LinkState::Leaving {
            let driver = state.driver.take();
            state.wakes.add_all(driver);
        }
        let wakes = std::mem::take(&mut state.wakes);
        drop(state);
        wakes.wake();
        result
    }

    /// Ends all requests of these clients here and now, before the service receives that.
    pub(super) fn end_entries(&self, state: &mut State, whose: impl Fn(u64) -> bool) {
        let State { entries, asked, wakes, .. } = state;
        for entry in entries.values_mut().filter(|entry| whose(entry.request.client)) {
            if entry.is_alive() {
                entry.end(Over::Lost(Loss::ClientEnded), wakes);
                self.count_loss();
            }
        }
        for asked in asked.values_mut().filter(|asked| whose(asked.client())) {
            asked.wake(wakes);
        }
    }

    /// Returns a copy of the socket by which the service knows that the session is alive.
    pub(super) fn descriptor(&self) -> Option<OwnedFd> {
        self.lock().presence.as_ref()?.descriptor()
    }

    /// Ends the session because the runtime that carries the connection shuts down: all locks are
    /// lost.
    pub(super) fn say_farewell(&self) {
        self.input(|state| {
            if state.link == LinkState::Up {
                state.say(&ToService::Bye);
                self.lapse(state, Loss::ServiceGone);
            }
        });
    }

    /// Returns true if further partitions take sessions of their own.
    pub(super) fn has_one_partition(&self) -> bool {
        let state = self.lock();
        state.known.is_cluster && !state.link.is_over() && state.link != LinkState::Leaving
    }

    /// Returns whether the last connection has ended; if not, wakes `waker` when it has.
    pub(super) fn poll_left(&self, waker: &Waker) -> Poll<()> {
        let waker = waker.clone();
        self.input(|state| {
            if state.link.is_over() {
                return Poll::Ready(());
            }
            if !state.leavers.iter().any(|known| known.will_wake(&waker)) {
                state.leavers.push(waker);
            }
            Poll::Pending
        })
    }

    /// All users are gone, or one wants the connection to end.
    pub(super) fn leave(&self) {
        self.input(|state| {
            state.presence = None;
            if !state.link.is_over() {
                // Holders must know their loss before the service can grant their locks to other
                // clients.
                self.end_entries(state, |_| true);
                state.say(&ToService::Bye);
                state.link = LinkState::Leaving;
                state.wake_streams();
            }
        });
    }
}

impl State {
    /// Adds a message to the outbox, if there is a connection. Otherwise it follows from the state
    /// later.
    pub(super) fn say(&mut self, message: &ToService) {
        if self.link == LinkState::Up {
            self.say_text(wire::write(message));
        }
    }

    pub(super) fn say_text(&mut self, text: String) {
        if self.link == LinkState::Up {
            self.outbox.push_back(text.into());
        }
    }

    /// Wakes all event streams: no more events will come.
    pub(super) fn wake_streams(&mut self) {
        let Self { clients, wakes, .. } = self;
        for client in clients.values_mut() {
            wakes.add_all(client.inboxes.take_wakers());
        }
    }

    /// Returns an error if a request cannot succeed.
    pub(super) fn hope(&self, client: u64) -> Result<(), RequestErrorKind> {
        if !self.clients.contains_key(&client) {
            return Err(RequestErrorKind::ClientEnded);
        }
        self.link.error().map_or(Ok(()), Err)
    }
}

impl Client {
    pub(super) fn open(&self, number: u64) -> Open {
        Open { client: number, partition: self.partition.to_string() }
    }
}

impl LinkState {
    /// Returns true if messages of the connection count.
    pub(super) fn carries(&self) -> bool {
        matches!(self, Self::Up | Self::Leaving)
    }

    /// Returns true if there will never be a connection again.
    pub(super) fn is_over(&self) -> bool {
        matches!(self, Self::Refused(_) | Self::Gone)
    }

    /// Returns the error of every later request.
    pub(super) fn error(&self) -> Option<RequestErrorKind> {
        match self {
            Self::Up | Self::Down => None,
            Self::Hopeless => Some(RequestErrorKind::Unreachable),
            Self::Refused(refusal) => Some(RequestErrorKind::Refused(refusal.clone())),
            Self::Leaving | Self::Gone => Some(RequestErrorKind::ClientEnded),
        }
    }
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session")
            .field("addresses", &self.options.addresses)
            .finish_non_exhaustive()
    }
}
