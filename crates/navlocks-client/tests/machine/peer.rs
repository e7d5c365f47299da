//! The driver of a machine and the service behind it, in one thread and in virtual time.

use std::collections::VecDeque;
use std::time::Duration;

use navlocks_client::{Addresses, Begin, Command, DialFailure, Machine, Moment, Over, Settings};
use navlocks_core::{Mode, Wait};
use navlocks_wire::{self as wire, Names, Request, ToClient, ToService};

/// The limits of a welcome.
pub(crate) const LIMITS: &str = r#"{"message-bytes-max":1000000,"name-bytes-max":1000,"names-per-request-max":1000,"tag-bytes-max":1000,"requests-per-session-max":1000,"clients-per-session-max":100}"#;

pub(crate) struct Peer {
    pub(crate) machine: Machine<()>,
    pub(crate) now: Moment,
    /// The messages of the client that no test has read yet.
    pub(crate) sent: VecDeque<ToService>,
    /// Whether a process listens at the addresses.
    pub(crate) listens: bool,
    /// Whether the client dropped a connection, and no test has read that yet.
    pub(crate) dropped: bool,
    /// The addresses that were dialled.
    pub(crate) dialed: Vec<String>,
}

/// Returns the settings of a session that reaches its service by a Unix socket.
pub(crate) fn local(begin: Begin) -> Settings {
    Settings::new(Addresses::parse("unix:/socket").unwrap(), begin)
}

/// Returns a request of client 0 for one name.
pub(crate) fn request(name: &str, wait: Wait) -> Request {
    Request {
        id: 0,
        client: 0,
        names: Names(name.into()),
        mode: Mode::Exclusive,
        wait,
        tag: None,
        traceparent: None,
        max_hold_ms: None,
        within: None,
        token: None,
        place: None,
        ms: None,
    }
}

impl Peer {
    pub(crate) fn new(settings: Settings) -> Self {
        let now = Moment::from_nanoseconds(1_000_000_000);
        let machine = Machine::new(settings, 7, now);
        let (sent, dialed) = (VecDeque::new(), Vec::new());
        let mut peer = Self { machine, now, sent, listens: true, dropped: false, dialed };
        peer.carry_out_commands();
        peer
    }

    /// Connects a client to a service with these limits.
    pub(crate) fn welcoming(settings: Settings, limits: &str) -> Self {
        let mut peer = Self::new(settings);
        assert!(matches!(peer.sent.pop_front(), Some(ToService::Hello(_))));
        peer.welcome(r#""secret":"s","#, limits);
        peer
    }

    /// Welcomes the client to session 1 of epoch 1.
    pub(crate) fn welcome(&mut self, more: &str, limits: &str) {
        self.receive(&format!(
            r#"{{"welcome":{{"service":"a test","session":1,"epoch":1,{more}"limits":{limits}}}}}"#
        ));
    }

    pub(crate) fn receive(&mut self, message: &str) {
        let message: ToClient = wire::read(message).unwrap();
        self.machine.received(message, self.now);
        self.carry_out_commands();
    }

    pub(crate) fn requests(&mut self, request: Request) -> Result<u64, Over> {
        let made = self.machine.request(request, (), self.now);
        self.carry_out_commands();
        made
    }

    pub(crate) fn carry_out_commands(&mut self) {
        let Self { machine, now, sent, .. } = self;
        while let Some(command) = machine.poll_command() {
            match command {
                Command::Dial(url) => {
                    self.dialed.push(url.to_string());
                    match self.listens {
                        true => machine.dialed(true, Some("drawn".into()), *now),
                        false => machine.dial_failed(DialFailure::Absent, *now),
                    }
                }
                Command::Open => machine.opened(*now),
                Command::Send(text) => {
                    let mut message = wire::read(&text).unwrap();
                    // Ages are not told.
                    if let ToService::Request(request) = &mut message {
                        request.ms = None;
                    }
                    sent.push_back(message);
                }
                Command::Close | Command::Drain => machine.broken(*now),
                Command::Drop => self.dropped = true,
                Command::Present(_) | Command::StartService => panic!("{command:?}"),
            }
        }
    }

    /// Breaks the connection.
    pub(crate) fn breaks(&mut self) {
        self.machine.broken(self.now);
        self.carry_out_commands();
    }

    /// Lets the time pass until the machine has something to do.
    pub(crate) fn advance(&mut self) {
        let deadline = self.machine.deadline();
        assert_ne!(deadline, Moment::NEVER, "the client waits for ever");
        self.now = self.now.max(deadline);
        self.machine.elapsed(self.now);
        self.carry_out_commands();
    }

    /// Lets this time pass.
    pub(crate) fn sleep(&mut self, time: Duration) {
        let until = self.now.saturating_add(time);
        while self.machine.deadline() <= until {
            self.advance();
        }
        self.now = until;
    }

    /// Lets the time pass until this is so.
    pub(crate) fn wait_until<T>(&mut self, mut found: impl FnMut(&mut Self) -> Option<T>) -> T {
        for _ in 0..1000 {
            self.carry_out_commands();
            if let Some(found) = found(self) {
                return found;
            }
            self.advance();
        }
        panic!("the client does not get on");
    }

    /// Returns the next message of the client.
    pub(crate) fn hear(&mut self) -> ToService {
        self.wait_until(|peer| peer.sent.pop_front())
    }
}
