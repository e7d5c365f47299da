//! A session and its connection from the client's side, as in the clients of navlocks.

use std::collections::VecDeque;

use navlocks_wire::{self as wire, Hello, Resume, Welcome};

use crate::sessions::service::LinkNo;

/// The lease of a session over a network.
pub(super) const LEASE: u64 = 4000;

/// A session that a service knows.
#[derive(Clone)]
pub(super) struct Session {
    pub(super) number: u32,
    secret: String,
    epoch: u64,
    /// The epoch in which it began: numbers of sessions may be reused.
    pub(super) born: u64,
}

/// The first message over a connection, until it is answered.
pub(super) struct Greeting {
    pub(super) link: LinkNo,
    said: u64,
    pub(super) resume: Option<Resume>,
}

pub(super) struct Connection {
    pub(super) local: bool,
    pub(super) link: Option<LinkNo>,
    pub(super) greeting: Option<Greeting>,
    pub(super) dialling: bool,
    pub(super) session: Option<Session>,
    /// The largest epoch of a service so far.
    epoch: u64,
    /// The time from which on the client takes its locks for lost.
    believed: u64,
    pings: VecDeque<(u64, u64)>,
    next_ping: u64,
    pinged: u64,
}

impl Connection {
    pub(super) fn new(local: bool) -> Self {
        Self {
            local,
            link: None,
            greeting: None,
            dialling: false,
            session: None,
            epoch: 0,
            believed: u64::MAX,
            pings: VecDeque::new(),
            next_ping: 1,
            pinged: 0,
        }
    }

    pub(super) fn hello(&mut self, link: LinkNo, now: u64) -> Hello {
        let resume = self.session.as_ref().map(|session| Resume {
            session: session.number,
            secret: session.secret.clone(),
            epoch: session.epoch,
        });
        self.dialling = false;
        self.greeting = Some(Greeting { link, said: now, resume: resume.clone() });
        Hello { version: wire::VERSION, lease_ms: Some(LEASE), resume, ..Hello::default() }
    }

    /// Takes the answer to a hello. Returns whether the session is resumed; none if this service is
    /// older than another one.
    pub(super) fn welcome(&mut self, welcome: &Welcome) -> Option<bool> {
        let Greeting { link, said, resume } = self.greeting.take()?;
        if welcome.epoch < self.epoch {
            return None;
        }
        let asked = resume.is_some_and(|it| it.session == welcome.session);
        let resumed = asked && welcome.resumed;
        let born = self.session.as_ref().filter(|_| resumed).map(|it| it.born);
        self.session = Some(Session {
            number: welcome.session,
            secret: welcome.secret.clone(),
            epoch: welcome.epoch,
            born: born.unwrap_or(welcome.epoch),
        });
        self.epoch = welcome.epoch;
        self.link = Some(link);
        self.pings.clear();
        self.pinged = said;
        let lease = welcome.lease_ms.map(|lease| lease - lease / 8);
        self.believed = lease.map_or(u64::MAX, |lease| said + lease);
        Some(resumed)
    }

    pub(super) fn is_believed(&self, now: u64) -> bool {
        now < self.believed
    }

    /// Returns the number of the next ping, when one is due.
    pub(super) fn ping(&mut self, now: u64) -> Option<u64> {
        if self.local || self.link.is_none() || now < self.pinged + LEASE / 4 {
            return None;
        }
        self.pinged = now;
        let number = self.next_ping;
        self.next_ping += 1;
        self.pings.push_back((number, now));
        Some(number)
    }

    pub(super) fn pong(&mut self, number: u64) {
        while let Some((ping, said)) = self.pings.front().copied().filter(|it| it.0 <= number) {
            debug_assert!(ping <= number, "as filtered");
            self.pings.pop_front();
            self.believed = self.believed.max(said + LEASE - LEASE / 8);
        }
    }

    /// Returns true if the connection counts as dead although it did not break.
    pub(super) fn is_silent(&self, now: u64) -> bool {
        let Some((_, said)) = self.pings.front().copied() else { return false };
        let answered = self.believed - (LEASE - LEASE / 8);
        self.link.is_some() && now >= (said + LEASE / 4).max(answered + LEASE / 2)
    }

    /// Removes the connection. Returns it if the client has to close it.
    pub(super) fn drop_link(&mut self) -> Option<LinkNo> {
        self.pings.clear();
        let greeted = self.greeting.take().map(|greeting| greeting.link);
        self.link.take().or(greeted)
    }

    /// Ends the session.
    pub(super) fn lapse(&mut self) -> Option<LinkNo> {
        self.session = None;
        self.believed = u64::MAX;
        self.drop_link()
    }

    /// Returns the id of a request of this session at the service.
    pub(super) fn id(&self, request: u32) -> String {
        let known = self.session.as_ref().map_or((0, 0), |session| (session.born, session.number));
        format!("{}-{}.{request}", known.0, known.1)
    }
}
