//! The machine of a session: its state, its commands to the driver, and its events.
//!
//! ```text
//!   the user's verbs ──▶ ┌─────────┐ ──▶ events: granted, over, answered, link …
//!                        │ machine │
//!   sockets and time ──▶ └─────────┘ ──▶ commands: dial, send, close …
//! ```

mod attempt;
mod claim;
mod clients;
mod command;
mod connected;
mod queries;
mod receive;
mod requests;
mod settings;
mod steals;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use navlocks_wire::{self as wire, Fault, ToService};

use self::attempt::Attempt;
use self::clients::Client;
use self::steals::Steals;
use crate::backoff::{Backoff, Random, Starts};
use crate::holds::Holds;
use crate::keepalive::Keepalive;
use crate::moment::Moment;
use crate::queries::KnownQuery;
use crate::requests::{KnownRequest, LossCause, Over};
use crate::route::Route;
use crate::session::KnownSession;

pub use self::attempt::{DialFailure, Failure};
pub use self::command::{Command, Event};
pub use self::requests::Outcome;
pub use self::settings::{Begin, Settings};

/// The state of the link to the service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LinkState {
    /// Messages are sent and received.
    Up,
    /// The machine tries to reach the service.
    Down,
    /// The machine still tries, and waits fail at once.
    GaveUp,
    /// The service refuses this client.
    Refused(Fault),
    /// The user wants the session to end.
    Leaving,
    /// No message will ever be sent again.
    Gone,
}

impl LinkState {
    /// Returns true if there will never be a connection again.
    pub fn is_over(&self) -> bool {
        matches!(self, Self::Refused(_) | Self::Gone)
    }

    /// Returns true if a request can still be granted.
    pub fn is_hopeful(&self) -> bool {
        matches!(self, Self::Up | Self::Down)
    }

    /// Returns how every later request ends.
    fn over(&self) -> Option<Over> {
        match self {
            Self::Up | Self::Down => None,
            Self::GaveUp => Some(Over::Unreachable),
            Self::Refused(fault) => Some(Over::refused(fault.clone())),
            Self::Leaving | Self::Gone => Some(Over::Lost(LossCause::ClientEnded)),
        }
    }
}

/// The connection, and the attempts to make one.
#[derive(Debug)]
enum Phase {
    /// The next attempt begins at this moment.
    Paused(Moment),
    /// The service is started at this moment: all its clients notice its end at the same one.
    StartsAt(Moment),
    /// The driver starts the service.
    Starting,
    /// The driver connects.
    Dialing { until: Moment, within: Duration },
    /// The hello waits.
    Dialed { takes_messages: bool },
    /// The hello is sent with or behind the handshake.
    Greeting(Box<Attempt>),
    /// The service has welcomed the session.
    Connected {
        since: Moment,
        /// When the end of the connection was awaited long enough, if the user leaves.
        closing: Option<Moment>,
    },
    /// The service has sent its last message.
    Draining { since: Moment, until: Moment },
    /// There will be no connection.
    Ended,
}

/// The client of a service, without clock, socket or task. A driver carries out its commands and
/// passes it the messages of the service and the moments of a clock. It attaches data to each
/// request, such as the waker of a task.
#[derive(Debug)]
pub struct Machine<T> {
    settings: Settings,
    session: KnownSession,
    route: Route,
    backoff: Backoff,
    starts: Starts,
    random: Random,
    keepalive: Keepalive,
    link: LinkState,
    phase: Phase,
    /// Whether one attempt to connect is as good as the next.
    persists: bool,
    /// A node has answered `moved` during the first connection.
    has_moved: bool,
    /// When the connection was lost, or the session made.
    down_since: Moment,
    /// Sessions in a row that the service ended because of this client's messages.
    faults: u32,
    /// When a later connection replaced one of this client the last time.
    replaced: Option<Moment>,
    /// The service ended the connection with this refusal.
    last_fault: Option<Fault>,
    /// Why the last attempt failed.
    failure: Option<Failure>,
    /// The secret of the next session, if the client chooses it.
    secret: Option<String>,
    /// The path of the presence, while the session shows it.
    presence: Option<String>,
    clients: BTreeMap<u64, Client>,
    /// The partitions of ended clients that still have users.
    ended: BTreeMap<u64, String>,
    next_client: u64,
    requests: BTreeMap<u64, KnownRequest<T>>,
    /// Requests that are not over.
    living: usize,
    /// The locks with a maximum hold.
    holds: Holds,
    /// Requests that steal and have no grant yet.
    steals: Steals,
    /// Pending steals, each with a granted request of the same client that it takes: the user gets
    /// the grant with the outcome of the steal.
    crossing: BTreeSet<(u64, u64)>,
    next_request: u64,
    /// Requests that were sent with the hello, until its answer.
    zero_rtt: Vec<u64>,
    queries: BTreeMap<u64, KnownQuery>,
    next_query: u64,
    losses: u64,
    commands: VecDeque<Command>,
    events: VecDeque<Event>,
}

impl<T> Machine<T> {
    /// Makes the machine of a session, which dials at once. The random number spreads clients over
    /// addresses and over time.
    pub fn new(settings: Settings, random: u64, now: Moment) -> Self {
        let first = Client::new(settings.partition.clone());
        let mut machine = Self {
            session: KnownSession::default(),
            route: Route::new(&settings.addresses, settings.hides_token, random),
            backoff: Backoff::between_dials(&settings.addresses),
            starts: Starts::default(),
            random: Random::new(random),
            keepalive: Keepalive::new(settings.answer_timeout),
            link: LinkState::Down,
            phase: Phase::Ended,
            persists: settings.begin == Begin::Persist,
            has_moved: false,
            down_since: now,
            faults: 0,
            replaced: None,
            last_fault: None,
            failure: None,
            secret: None,
            presence: None,
            clients: BTreeMap::from([(0, first)]),
            ended: BTreeMap::new(),
            next_client: 1,
            requests: BTreeMap::new(),
            living: 0,
            holds: Holds::default(),
            steals: Steals::default(),
            crossing: BTreeSet::new(),
            next_request: 1,
            zero_rtt: Vec::new(),
            queries: BTreeMap::new(),
            next_query: 1,
            losses: 0,
            commands: VecDeque::new(),
            events: VecDeque::new(),
            settings,
        };
        if machine.persists {
            // The first pause takes no time.
            machine.backoff.next_pause();
        }
        machine.dial(now);
        machine
    }

    /// Returns the next command, if there is one.
    pub fn poll_command(&mut self) -> Option<Command> {
        self.commands.pop_front()
    }

    /// Returns the next command without taking it.
    pub fn peek_command(&self) -> Option<&Command> {
        self.commands.front()
    }

    /// Returns the next event, if there is one.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Returns the state of the link.
    pub fn link(&self) -> &LinkState {
        &self.link
    }

    /// Returns true if the driver has nothing more to do.
    pub fn has_ended(&self) -> bool {
        matches!(self.phase, Phase::Ended)
    }

    /// Returns true if a service has welcomed the session at least once.
    pub fn has_begun(&self) -> bool {
        self.persists
    }

    /// Returns true if there is a socket over which [`greet`](Self::greet) sends the hello.
    pub fn is_dialed(&self) -> bool {
        matches!(self.phase, Phase::Dialed { .. })
    }

    /// Returns true if the service is a cluster, where each partition has a session of its own.
    pub fn is_cluster(&self) -> bool {
        self.session.is_cluster
    }

    /// Notes that the service is a cluster, as another session found.
    pub fn expect_cluster(&mut self) {
        self.session.is_cluster = true;
    }

    /// Returns the number of the session at the service; that of the last one while there is none.
    pub fn session_number(&self) -> u32 {
        self.session.number()
    }

    /// Returns how many locks were ever lost here: while it does not change, no holder has lost its
    /// lock.
    pub fn losses(&self) -> u64 {
        self.losses
    }

    /// Returns true if the session has a lease.
    pub fn has_lease(&self) -> bool {
        self.session.lease_length().is_some()
    }

    /// Returns until when the client may take its locks for held: all by its lease, or one by its
    /// maximum hold.
    pub fn lock_deadline(&self) -> Moment {
        self.session.lease_deadline().min(self.holds.deadline())
    }

    /// Returns when a service may grant the locks of the latest lease to other clients.
    pub fn lease_over(&self) -> Option<Moment> {
        self.session.lease_over()
    }

    /// Returns the path at which the session shows its presence.
    pub fn presence(&self) -> Option<&str> {
        self.presence.as_deref()
    }

    /// Returns why the last attempt to connect failed.
    pub fn failure(&self) -> Option<&Failure> {
        self.failure.as_ref()
    }

    /// Returns when [`elapsed`](Self::elapsed) has an effect.
    pub fn deadline(&self) -> Moment {
        let next = match &self.phase {
            Phase::Paused(at) | Phase::StartsAt(at) => *at,
            Phase::Dialing { until, .. } | Phase::Draining { until, .. } => *until,
            Phase::Greeting(attempt) => attempt.until(),
            Phase::Connected { closing, .. } => {
                let pings = self.session.ping_at().min(self.keepalive.deadline());
                pings.min(self.session.silent_from()).min(closing.unwrap_or(Moment::NEVER))
            }
            Phase::Starting | Phase::Dialed { .. } => Moment::NEVER,
            Phase::Ended => return Moment::NEVER,
        };
        next.min(self.lock_deadline()).min(self.gives_up_at())
    }

    /// Handles the moments that have come: of leases, pings, silence, pauses and attempts.
    pub fn elapsed(&mut self, now: Moment) {
        self.check_deadlines(now);
        if now >= self.gives_up_at() {
            self.give_up(LinkState::GaveUp);
        }
        match self.phase {
            Phase::Paused(at) if now >= at => self.dial(now),
            Phase::StartsAt(at) if now >= at => {
                self.phase = Phase::Starting;
                self.commands.push_back(Command::StartService);
            }
            Phase::Dialing { .. } | Phase::Greeting(_) => self.check_attempt(now),
            Phase::Connected { .. } => self.check_connection(now),
            Phase::Draining { until, .. } if now >= until => self.drop_connection(now),
            _ => {}
        }
    }

    /// Ends the locks that have been held for as long as they may be, and all if the lease is over.
    pub fn check_deadlines(&mut self, now: Moment) {
        self.check_holds(now);
        if now >= self.session.lease_deadline() {
            self.lapse(&LossCause::LeaseLapsed);
            if let Phase::Connected { .. } = self.phase {
                // The service may still keep locks that the client has given up. The next
                // connection begins a new session.
                self.drop_connection(now);
            }
        }
    }

    /// Returns when all waits end, because the service was out of reach for too long.
    fn gives_up_at(&self) -> Moment {
        match self.settings.unreachable_after {
            Some(limit) if self.persists && self.link == LinkState::Down => {
                self.down_since.saturating_add(limit)
            }
            _ => Moment::NEVER,
        }
    }

    /// Sends a message, if there is a connection. Otherwise it follows from the state later.
    fn send(&mut self, message: &ToService) {
        if self.link == LinkState::Up {
            self.commands.push_back(Command::Send(wire::write(message)));
        }
    }

    fn send_text(&mut self, text: String) {
        if self.link == LinkState::Up {
            self.commands.push_back(Command::Send(text));
        }
    }

    fn set_link(&mut self, link: LinkState) {
        if self.link != link {
            self.link = link;
            self.events.push_back(Event::Link);
        }
    }

    /// Ignores all messages of the connection from here on.
    fn link_down(&mut self) {
        if self.link == LinkState::Up {
            self.set_link(LinkState::Down);
        }
    }

    /// Fails all requests and questions that wait for the service.
    fn give_up(&mut self, link: LinkState) {
        self.set_link(link);
        for number in self.pending() {
            if let Some(over) = self.link.over() {
                self.end_request(number, over);
            }
        }
        self.events.extend(self.queries.keys().map(|&number| Event::Answered(number)));
    }

    /// Ends the session: held locks are lost, and pending requests wait for the next session.
    fn lapse(&mut self, loss: &LossCause) {
        self.session.lapse();
        self.presence = None;
        // Later messages of the connection belong to a session that is over.
        self.link_down();
        self.lapse_requests(loss);
    }

    /// Ends everything: no message will be sent any more.
    fn end(&mut self) {
        self.lapse(&LossCause::ServiceGone);
        self.phase = Phase::Ended;
        if !self.link.is_over() {
            self.give_up(LinkState::Gone);
        }
    }

    /// Returns true if something here needs a service: a lock, a request or a question.
    fn needs_service(&self) -> bool {
        self.living > 0 || !self.queries.is_empty()
    }

    fn lease_length(&self) -> Option<Duration> {
        self.session.lease_length().or(self.settings.lease)
    }

    fn is_local(&self) -> bool {
        self.settings.addresses.socket().is_some()
    }

    /// Returns true if the machine may end without a connection. The next owner of a cluster's
    /// locks would wait for a session that has not ended, and other clients with it.
    fn may_end(&self) -> bool {
        self.link == LinkState::Leaving && !(self.session.is_cluster && self.session.is_resumable())
    }
}
