//! Attempts to connect, from the next address to the welcome.

use std::time::Duration;

use navlocks_wire::{self as wire, Fault, FaultCode, Hello, ToClient, ToService, Welcome};

use super::{Begin, Command, LinkState, Machine, Phase};
use crate::backoff::jitter;
use crate::moment::Moment;
use crate::requests::LossCause;
use crate::route::{DialError, Next};
use crate::session::KnownSession;
use crate::url::Url;

/// For the service to answer the handshake and the hello.
const WELCOME_MAX: Duration = Duration::from_secs(10);

/// Spreads the clients that want to start a service.
const START_JITTER_MAX: Duration = Duration::from_millis(50);

/// An attempt over a socket that is connected.
#[derive(Debug)]
pub(super) struct Attempt {
    /// When the socket was connected.
    since: Moment,
    /// For the handshake.
    opens_within: Duration,
    /// For the handshake and the welcome.
    within: Duration,
    has_opened: bool,
    /// The requests so far travel with the hello.
    zero_rtt: bool,
    /// The hello, and when it was sent.
    hello: Option<(Hello, Moment)>,
}

/// Why an address was not reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DialFailure {
    /// The answer to the handshake.
    Refused(Fault),
    /// No process listens there.
    Absent,
    /// Any other failure.
    Unreachable,
}

/// Why an attempt failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The driver passed the reason.
    Passed,
    /// The socket was not connected within this time.
    Late(Duration),
    /// The service did not answer within this time.
    Silent(Duration),
    /// The service refuses the session.
    Refused(Fault),
    /// The service is older than one that was here before.
    Outdated {
        /// Its epoch.
        epoch: u64,
        /// The largest epoch so far.
        known: u64,
    },
    /// The service began with this message instead of a welcome.
    Strange(Box<ToClient>),
}

impl Attempt {
    pub(super) fn has_opened(&self) -> bool {
        self.has_opened
    }

    pub(super) fn until(&self) -> Moment {
        let within = if self.has_opened { self.within } else { self.opens_within };
        self.since.saturating_add(within)
    }
}

impl<T> Machine<T> {
    /// Notes that the socket is connected, and whether messages can travel with its handshake. The
    /// secret is for a session that begins, if the driver can draw one.
    pub fn dialed(&mut self, takes_messages: bool, secret: Option<String>, now: Moment) {
        if !matches!(self.phase, Phase::Dialing { .. }) {
            return;
        }
        self.secret = secret;
        match self.settings.begin {
            Begin::Dial => self.phase = Phase::Dialed { takes_messages },
            Begin::Once | Begin::Persist => self.open(false, now),
        }
    }

    /// Sends the hello that [`Begin::Dial`] held back, with the requests so far.
    pub fn greet(&mut self, now: Moment) {
        let Phase::Dialed { takes_messages } = self.phase else { return };
        self.settings.begin = Begin::Once;
        self.down_since = now;
        // One of several nodes may not own the locks, so they get requests after a welcome.
        let zero_rtt = !self.route.is_cluster();
        self.open(zero_rtt, now);
        if zero_rtt && takes_messages {
            self.send_hello(now);
        }
    }

    /// Notes that the handshake is answered.
    pub fn opened(&mut self, now: Moment) {
        if let Phase::Greeting(attempt) = &mut self.phase {
            attempt.has_opened = true;
            if attempt.hello.is_none() {
                self.send_hello(now);
            }
        }
    }

    /// Notes that the attempt failed before or in the handshake.
    pub fn dial_failed(&mut self, failure: DialFailure, now: Moment) {
        if matches!(self.phase, Phase::Dialing { .. } | Phase::Dialed { .. } | Phase::Greeting(_)) {
            let is_absent = failure == DialFailure::Absent;
            let refused = match failure {
                DialFailure::Refused(fault) => Some(fault),
                DialFailure::Absent | DialFailure::Unreachable => None,
            };
            self.fail_passed();
            self.attempt_failed(DialError { refused, greeted: false }, is_absent, now);
        }
    }

    /// Notes that the driver has tried to start the service, and whether it listens.
    pub fn service_started(&mut self, listens: bool, now: Moment) {
        if let Phase::Starting = self.phase {
            self.starts.done(now);
            if listens {
                self.backoff.restart();
            }
            let next = self.route.failed(&DialError { refused: None, greeted: false }, now);
            self.next(next, now);
        }
    }

    pub(super) fn dial(&mut self, now: Moment) {
        let limit = self.route.limit(self.lease_length());
        let url = self.route.target().url.clone();
        let within = match (&url, self.settings.answer_timeout) {
            (Url::Unix(_), Some(within)) => within.min(limit),
            _ => limit,
        };
        self.phase = Phase::Dialing { until: now.saturating_add(within), within };
        self.commands.push_back(Command::Dial(url));
    }

    fn open(&mut self, zero_rtt: bool, now: Moment) {
        let lease = self.lease_length();
        let within = self.settings.answer_timeout.unwrap_or(WELCOME_MAX).min(WELCOME_MAX);
        let is_cluster = self.route.is_cluster();
        let leased = lease.filter(|_| is_cluster && self.session.is_resumable());
        let within = within.min(self.route.welcome_limit(leased, now).unwrap_or(within));
        // A process that is stopped takes connections, and opens no WebSocket.
        let opens_within = if is_cluster { self.route.limit(lease).min(within) } else { within };
        let (has_opened, hello) = (false, None);
        let attempt = Attempt { since: now, opens_within, within, has_opened, zero_rtt, hello };
        self.phase = Phase::Greeting(Box::new(attempt));
        self.commands.push_back(Command::Open);
    }

    fn send_hello(&mut self, now: Moment) {
        let Phase::Greeting(attempt) = &mut self.phase else { return };
        let lease = self.settings.lease;
        let hello = Hello {
            partition: self.settings.partition.clone(),
            process: self.settings.process.clone(),
            lease_ms: lease.map(|lease| u64::try_from(lease.as_millis()).unwrap_or(u64::MAX)),
            ..Hello::default()
        };
        let is_far = self.settings.addresses.socket().is_none();
        let secret = self.secret.take();
        let hello = self.route.complete(self.session.hello(hello, || secret), now);
        // A session over a Unix socket ends with its process.
        let hello = Hello { secret: hello.secret.filter(|_| is_far), ..hello };
        let text = wire::write(&ToService::Hello(hello.clone()));
        attempt.hello = Some((hello, now));
        let zero_rtt = attempt.zero_rtt;
        self.commands.push_back(Command::Send(text));
        self.zero_rtt.clear();
        if zero_rtt {
            self.send_zero_rtt(now);
        }
    }

    /// Takes the first message of a connection.
    pub(super) fn receive_first(&mut self, message: ToClient, now: Moment) {
        let (epoch, known) = match &message {
            ToClient::Welcome(welcome) => (welcome.epoch, self.session.epoch()),
            _ => (0, 0),
        };
        let failure = match message {
            ToClient::Welcome(_) if epoch < known => Failure::Outdated { epoch, known },
            ToClient::Welcome(welcome) => return self.welcomed(welcome, now),
            ToClient::Error(fault) => {
                // The session has not begun, so the requests that came with the hello went nowhere.
                self.mark_zero_rtt(false);
                Failure::Refused(fault)
            }
            other => Failure::Strange(Box::new(other)),
        };
        self.drop_attempt(failure, true, now);
    }

    fn welcomed(&mut self, welcome: Welcome, now: Moment) {
        let phase = Phase::Connected { since: now, closing: None };
        let Phase::Greeting(attempt) = std::mem::replace(&mut self.phase, phase) else { return };
        // A service that does not wait for the hello resumes nothing.
        let (hello, sent) = attempt.hello.unwrap_or_else(|| (Hello::default(), attempt.since));
        let is_resumed = KnownSession::is_resumed(&welcome, &hello);
        if !is_resumed {
            // Requests that came with the hello belong to the session that begins, so their steals
            // go on.
            self.mark_zero_rtt(false);
            self.lapse(&LossCause::ServiceGone);
            self.mark_zero_rtt(true);
        } else if welcome.cluster && welcome.epoch > self.session.epoch() {
            self.end_steals_in_doubt();
        }
        self.session.welcomed(&welcome, sent);
        self.route.reached();
        if !self.persists {
            self.persists = true;
            self.backoff.restart();
        }
        if self.link != LinkState::Leaving {
            self.set_link(LinkState::Up);
            // A service elsewhere must not name paths of this machine.
            self.presence = welcome.presence.filter(|_| self.is_local());
            self.commands.extend(self.presence.clone().map(Command::Present));
        }
        self.send_all(is_resumed, now);
        self.keepalive.begin(now);
    }

    /// Fails an attempt whose time is over.
    pub(super) fn check_attempt(&mut self, now: Moment) {
        match &self.phase {
            Phase::Dialing { until, within } if now >= *until => {
                self.drop_attempt(Failure::Late(*within), false, now);
            }
            Phase::Greeting(attempt) if now >= attempt.until() => {
                let (within, greeted) = match attempt.has_opened {
                    true => (attempt.within, true),
                    false => (attempt.opens_within, false),
                };
                self.drop_attempt(Failure::Silent(within), greeted, now);
            }
            _ => {}
        }
    }

    /// Notes that the driver has the reason of a failure.
    pub(super) fn fail_passed(&mut self) {
        self.failure = Some(Failure::Passed);
    }

    fn drop_attempt(&mut self, failure: Failure, greeted: bool, now: Moment) {
        let refused = match &failure {
            Failure::Refused(fault) => Some(fault.clone()),
            _ => None,
        };
        self.failure = Some(failure);
        self.discard_commands();
        self.commands.push_back(Command::Drop);
        self.attempt_failed(DialError { refused, greeted }, false, now);
    }

    /// Chooses the next address after an attempt that failed, or ends.
    pub(super) fn attempt_failed(&mut self, error: DialError, is_absent: bool, now: Moment) {
        self.discard_commands();
        self.has_moved |= error.is_moved();
        if self.persists && self.may_end() {
            return self.end();
        }
        if self.route.is_final(&error) {
            if let (true, Some(fault)) = (self.persists, error.refused) {
                self.give_up(LinkState::Refused(fault));
            }
            return self.end();
        }
        let code = error.refused.as_ref().map(|fault| fault.code);
        if self.persists && code == Some(FaultCode::UnknownSession) {
            // A client that wanted to resume a session may begin another one at once.
            if self.session.is_resumable() {
                self.backoff.restart();
            }
            self.lapse(&LossCause::ServiceGone);
            return self.next(Next::AfterPause, now);
        }
        let may_start = is_absent && self.persists && self.settings.starts_service;
        if may_start && self.is_local() && self.needs_service() && self.starts.is_due(now) {
            let jitter = jitter(START_JITTER_MAX, self.random.next());
            self.phase = Phase::StartsAt(now.saturating_add(jitter));
            return;
        }
        let next = self.route.failed(&error, now);
        let is_late = now.saturating_since(self.down_since) >= WELCOME_MAX;
        // A cluster without an owner is dialled for as long as a service may take to answer.
        let has_no_more = !self.persists && (!self.has_moved || is_late);
        if next == Next::AfterPause && has_no_more {
            return self.end();
        }
        self.next(next, now);
    }

    /// Dials at once, or after a pause.
    pub(super) fn next(&mut self, next: Next, now: Moment) {
        let pause = match next {
            Next::AtOnce => Duration::ZERO,
            Next::AfterPause => self.next_pause(),
        };
        match pause.is_zero() {
            true => self.dial(now),
            false => self.phase = Phase::Paused(now.saturating_add(pause)),
        }
    }

    /// Returns the pause before the next attempt. The next owner of a cluster's locks grants
    /// nothing until all sessions have claimed theirs.
    fn next_pause(&mut self) -> Duration {
        let is_awaited = !self.persists || self.session.is_resumable() || self.needs_service();
        match self.route.is_cluster() && is_awaited {
            true => self.backoff.next_in_takeover(self.random.next()),
            false => self.backoff.next_pause(),
        }
    }

    /// Removes the commands for a connection that ended.
    pub(super) fn discard_commands(&mut self) {
        self.commands.retain(|command| *command == Command::Drop);
    }
}
