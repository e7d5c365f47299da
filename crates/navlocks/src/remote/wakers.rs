//! The session that the users of a connection and its driver share: the machine, and the tasks that
//! wait for it.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};
use std::time::Duration;

use navlocks_client::{Begin, Command, Event, LinkState, Machine, Moment};
use navlocks_wire::{Question, Reply, ToClient};

use super::connect::Options;
use super::driver::clock;
use super::presence::Presence;
use super::user_service;
use crate::backend::Watched;
use crate::backend::inbox::Inboxes;
use crate::connection::Connection;
use crate::error::QueryError;
use crate::sync::wakes::Wakes;

/// The session that the users of a connection and its driver share. It outlives connections, and
/// sessions of the service.
pub(crate) struct Session {
    pub(super) options: Options,
    state: Mutex<State>,
    /// How many locks were ever lost here: while it does not change, no holder has lost its lock.
    losses: AtomicU64,
    /// Until when the client may take its locks for held.
    lock_deadline: AtomicU64,
    /// When the machine has something to do.
    deadline: AtomicU64,
}

pub(super) struct State {
    pub(super) machine: Machine<Tasks>,
    /// The socket of the presence, as long as the session lives.
    presence: Option<Presence>,
    pub(super) inboxes: BTreeMap<u64, Inboxes>,
    /// The tasks that wait for answers.
    queries: BTreeMap<u64, Waker>,
    /// The waker of the driver.
    driver: Option<Waker>,
    /// The tasks that wait for the last connection to end.
    leavers: Vec<Waker>,
    /// The state of the link that users have seen last, and how often it has changed. The first
    /// connection is no change.
    link: LinkState,
    changes: u64,
    watchers: Vec<Waker>,
    next_watch: u64,
    /// Empty between inputs.
    pub(super) wakes: Wakes,
}

/// The tasks that wait for a request.
#[derive(Debug)]
pub(super) struct Tasks {
    /// The task that waits for the answer.
    pub(super) waker: Option<Waker>,
    /// Watches of the lock.
    watches: Vec<Watch>,
}

#[derive(Debug)]
struct Watch {
    number: u64,
    watched: Watched,
    waker: Waker,
    /// True if a request waits for the lock.
    has_come: bool,
}

/// The next command of the machine.
pub(super) enum Next {
    Command(Command),
    Nothing,
    /// The driver has nothing more to do.
    Ended,
}

impl Session {
    pub(super) fn new(options: Options, begin: Begin) -> Self {
        let settings = options.settings(begin);
        let machine = Machine::new(settings, user_service::random(), clock::now());
        Self {
            options,
            losses: AtomicU64::new(0),
            lock_deadline: AtomicU64::new(Moment::NEVER.nanoseconds()),
            deadline: AtomicU64::new(machine.deadline().nanoseconds()),
            state: Mutex::new(State {
                machine,
                presence: None,
                inboxes: BTreeMap::new(),
                queries: BTreeMap::new(),
                driver: None,
                leavers: Vec::new(),
                link: LinkState::Down,
                changes: 0,
                watchers: Vec::new(),
                next_watch: 0,
                wakes: Wakes::default(),
            }),
        }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the state, and wakes the affected tasks after unlocking.
    pub(super) fn input<T>(&self, input: impl FnOnce(&mut State) -> T) -> T {
        let mut state = self.lock();
        let result = input(&mut state);
        state.handle_events();
        let machine = &state.machine;
        self.losses.store(machine.losses(), Ordering::Release);
        self.lock_deadline.store(machine.lock_deadline().nanoseconds(), Ordering::Release);
        self.deadline.store(machine.deadline().nanoseconds(), Ordering::Release);
        if state.presence.is_some() && machine.presence().is_none() {
            state.presence = None;
        }
        if state.machine.peek_command().is_some() || state.machine.has_ended() {
            let driver = state.driver.take();
            state.wakes.add_all(driver);
        }
        let wakes = std::mem::take(&mut state.wakes);
        drop(state);
        wakes.wake();
        result
    }

    /// Takes a message. Returns true if the machine has commands.
    pub(super) fn receive(&self, message: ToClient) -> bool {
        self.input(|state| {
            state.machine.received(message, clock::now());
            state.machine.peek_command().is_some()
        })
    }

    /// Returns the next command; without one, registers the waker of the driver. Messages stay
    /// where they are while the driver cannot send.
    pub(super) fn next_command(&self, can_send: bool, waker: &Waker) -> Next {
        let mut state = self.lock();
        if state.machine.has_ended() {
            return Next::Ended;
        }
        let waits = match state.machine.peek_command() {
            Some(Command::Send(_) | Command::Close) => !can_send,
            Some(_) => false,
            None => true,
        };
        if !waits && let Some(command) = state.machine.poll_command() {
            return Next::Command(command);
        }
        if !state.driver.as_ref().is_some_and(|known| known.will_wake(waker)) {
            state.driver = Some(waker.clone());
        }
        Next::Nothing
    }

    /// Takes the messages before the next other command.
    pub(super) fn take_messages(&self) -> Vec<String> {
        let mut state = self.lock();
        let mut texts = Vec::new();
        while let Some(Command::Send(_)) = state.machine.peek_command()
            && let Some(Command::Send(text)) = state.machine.poll_command()
        {
            texts.push(text);
        }
        texts
    }

    /// Ends the locks whose time is over, by their maximum hold or by the lease.
    pub(super) fn check_deadlines(&self) {
        let deadline = Moment::from_nanoseconds(self.lock_deadline.load(Ordering::Acquire));
        if clock::has_come(deadline) {
            self.input(|state| state.machine.check_deadlines(clock::now()));
        }
    }

    pub(super) fn losses(&self, order: Ordering) -> u64 {
        self.losses.load(order)
    }

    /// Returns when the machine has something to do.
    pub(super) fn deadline(&self) -> Moment {
        Moment::from_nanoseconds(self.deadline.load(Ordering::Acquire))
    }

    /// Listens at the path that the service named, unless the session does so already.
    pub(super) fn show_presence(&self, path: String) {
        self.input(|state| {
            if !state.presence.as_ref().is_some_and(|known| known.is_at(&path)) {
                state.presence = None;
                state.presence = Presence::bind(path);
            }
            if state.presence.is_some() {
                state.machine.present();
            }
        });
    }

    /// Returns a copy of the socket by which the service knows that the session is alive.
    pub(super) fn liveness_fd(&self) -> Option<OwnedFd> {
        self.lock().presence.as_ref()?.liveness_fd()
    }

    /// Returns true if further partitions take sessions of their own.
    pub(super) fn has_one_partition(&self) -> bool {
        let machine = &self.lock().machine;
        let has_left = machine.link().is_over() || *machine.link() == LinkState::Leaving;
        machine.is_cluster() && !has_left
    }

    /// Returns for how long no other client can be granted the locks of the latest lease.
    pub(super) fn lease_left(&self) -> Option<Duration> {
        let over = self.lock().machine.lease_over()?;
        Some(over.saturating_since(clock::now()))
    }

    /// Ends the session: all users are gone, or one wants the connection to end.
    pub(super) fn leave(&self) {
        self.input(|state| state.machine.leave(clock::now()));
    }

    /// Returns whether the last connection has ended; if not, wakes `waker` when it has.
    pub(super) fn poll_left(&self, waker: &Waker) -> Poll<()> {
        let waker = waker.clone();
        self.input(|state| {
            if state.machine.link().is_over() {
                return Poll::Ready(());
            }
            if !state.leavers.iter().any(|known| known.will_wake(&waker)) {
                state.leavers.push(waker);
            }
            Poll::Pending
        })
    }

    /// Returns the state of the connection, and how often it has changed.
    pub(super) fn connection(&self) -> (Connection, u64) {
        let state = self.lock();
        let now = match state.machine.link() {
            LinkState::Up => Connection::Up,
            LinkState::Down => Connection::Down,
            LinkState::GaveUp => Connection::Unreachable,
            LinkState::Refused(fault) => Connection::Refused(fault.clone().into()),
            LinkState::Leaving | LinkState::Gone => Connection::Closed,
        };
        (now, state.changes)
    }

    /// Wakes `waker` when the connection has changed more often than `changes`.
    pub(super) fn watch_connection(&self, changes: u64, waker: &Waker) {
        let waker = waker.clone();
        self.input(|state| {
            let known = |known: &Waker| known.will_wake(&waker);
            if state.changes > changes || state.watchers.iter().any(known) {
                state.wakes.discard(waker);
            } else {
                state.watchers.push(waker);
            }
        });
    }

    /// Asks the service. Dropping the future forgets the question.
    pub(super) async fn ask(&self, client: u64, question: Question) -> Result<Reply, QueryError> {
        let number = self.input(|state| state.machine.ask(client, question, clock::now()))?;
        let waiting = Waiting { session: self, number };
        let reply = poll_fn(|cx| {
            let waker = cx.waker().clone();
            self.input(|state| match state.machine.answer(waiting.number) {
                Some(answer) => Poll::Ready(answer),
                None => {
                    let earlier = state.queries.insert(waiting.number, waker);
                    state.wakes.discard_all(earlier);
                    Poll::Pending
                }
            })
        });
        Ok(reply.await?)
    }
}

/// Drops a question when its future is dropped.
struct Waiting<'a> {
    session: &'a Session,
    number: u64,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.session.input(|state| {
            state.machine.forget_query(self.number);
            let waker = state.queries.remove(&self.number);
            state.wakes.discard_all(waker);
        });
    }
}

impl State {
    /// Wakes the tasks that the events of the machine are for.
    fn handle_events(&mut self) {
        while let Some(event) = self.machine.poll_event() {
            let Self { machine, inboxes, queries, wakes, .. } = self;
            match event {
                Event::Granted(number) => {
                    wakes.add_all(machine.data(number).and_then(|tasks| tasks.waker.take()));
                }
                Event::Over(number) => {
                    if let Some(tasks) = machine.data(number) {
                        wakes.add_all(tasks.take_wakers());
                    }
                }
                Event::Contended(number) => {
                    if let Some(tasks) = machine.data(number) {
                        tasks.note(Watched::Contention, wakes);
                    }
                }
                Event::Downgraded(number) => {
                    if let Some(tasks) = machine.data(number) {
                        tasks.note(Watched::Downgrade, wakes);
                    }
                }
                Event::Answered(number) => wakes.add_all(queries.remove(&number)),
                Event::Listening(client) => {
                    inboxes.entry(client).and_modify(Inboxes::begin);
                }
                Event::NotListening(client) => {
                    inboxes.entry(client).and_modify(|inboxes| inboxes.refuse(wakes));
                }
                Event::ListensAgain(client) => {
                    inboxes.entry(client).and_modify(Inboxes::restart);
                }
                Event::Happened(event) => {
                    if let Some(inboxes) = inboxes.get_mut(&event.client) {
                        inboxes.deliver(&event.into(), wakes);
                    }
                }
                Event::Link => self.note_link(),
            }
        }
    }

    fn note_link(&mut self) {
        let Self { machine, inboxes, link, wakes, .. } = self;
        if *machine.link() == *link {
            return;
        }
        let before = std::mem::replace(link, machine.link().clone());
        self.changes += 1;
        wakes.add_all(self.watchers.drain(..));
        match link {
            LinkState::Down if before == LinkState::Up => {
                inboxes.values_mut().for_each(|inboxes| inboxes.lose_connection(wakes));
            }
            LinkState::Up | LinkState::Down | LinkState::GaveUp => {}
            LinkState::Refused(_) | LinkState::Leaving | LinkState::Gone => {
                wakes.add_all(inboxes.values_mut().flat_map(Inboxes::take_wakers));
            }
        }
        if link.is_over() {
            wakes.add_all(self.leavers.drain(..));
        }
    }

    pub(super) fn next_watch(&mut self) -> u64 {
        self.next_watch += 1;
        self.next_watch
    }
}

impl Tasks {
    pub(super) fn new(waker: Waker) -> Self {
        Self { waker: Some(waker), watches: Vec::new() }
    }

    /// Returns the wakers of all tasks.
    pub(super) fn take_wakers(&mut self) -> impl Iterator<Item = Waker> {
        self.waker.take().into_iter().chain(self.watches.drain(..).map(|watch| watch.waker))
    }

    /// Notes an event of the lock, and wakes the watches for it.
    fn note(&mut self, watched: Watched, wakes: &mut Wakes) {
        let watches = self.watches.iter_mut();
        for watch in watches.filter(|watch| watch.watched == watched) {
            watch.has_come = true;
            wakes.add(watch.waker.clone());
        }
    }

    /// Returns whether the event of the watch with this number has come. Makes the watch if there
    /// is none, and returns a waker to be dropped later.
    pub(super) fn watch(
        &mut self,
        number: u64,
        watched: Watched,
        waker: Waker,
    ) -> (bool, Option<Waker>) {
        if let Some(known) = self.watches.iter_mut().find(|known| known.number == number) {
            let earlier = std::mem::replace(&mut known.waker, waker);
            return (known.has_come, Some(earlier));
        }
        self.watches.push(Watch { number, watched, waker, has_come: false });
        (false, None)
    }

    /// Ends a watch, and returns a waker to be dropped later.
    pub(super) fn unwatch(&mut self, number: u64) -> Option<Waker> {
        let position = self.watches.iter().position(|watch| watch.number == number)?;
        Some(self.watches.swap_remove(position).waker)
    }

    /// Returns true if a watch waits for contention that has not come.
    pub(super) fn watches_contention(&self) -> bool {
        self.watches.iter().any(|watch| watch.watched == Watched::Contention && !watch.has_come)
    }
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session")
            .field("addresses", &self.options.addresses)
            .finish_non_exhaustive()
    }
}
