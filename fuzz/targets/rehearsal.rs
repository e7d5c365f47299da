//! A service without sockets and with a clock of its own: what the fuzz target plays with.

use std::rc::Rc;
use std::time::{Duration, Instant};

use navlocks::DeadlockPolicy;
use navlocks::wire::{self, ToClient, ToService};

use super::hub::Hub;
use super::limits::Limits;
use super::memory::Memory;
use super::outbox::Outbox;
use super::peer::Peer;
use super::session::Known;

/// A service that is only played: texts go in, texts come out, and time passes when it is told to.
#[derive(Debug)]
pub struct Rehearsal {
    hub: Hub,
    now: Instant,
    connections: Vec<Option<Connection>>,
}

#[derive(Debug)]
struct Connection {
    peer: Rc<Peer>,
    outbox: Outbox,
    session: Option<(u32, u64)>,
}

impl Rehearsal {
    /// A service with these limits, which remembers nothing.
    ///
    /// # Errors
    ///
    /// The clock is wrong by centuries.
    pub fn new(limits: Limits, deadlocks: DeadlockPolicy) -> std::io::Result<Self> {
        let memory = Memory::new(None, &limits)?;
        let hub = Hub::new(limits, deadlocks, memory);
        Ok(Self { hub, now: Instant::now(), connections: Vec::new() })
    }

    /// A new connection, over a Unix socket or over TCP. Returns its number here.
    pub fn connect(&mut self, local: bool) -> usize {
        let peer = if local { Peer::local(None) } else { Peer::remote("", "") };
        let outbox = Outbox::new(self.hub.limits.outbox_bytes_max);
        self.connections.push(Some(Connection { peer: peer.into(), outbox, session: None }));
        self.connections.len() - 1
    }

    /// Says a text over a connection. One that is closed does not mind.
    pub fn say(&mut self, connection: usize, text: &str) {
        let Some(Some(open)) = self.connections.get_mut(connection) else { return };
        if open.outbox.ending().is_some() {
            return;
        }
        let said: Result<ToService, _> = wire::read(text);
        let taken = said.and_then(|message| match (open.session, message) {
            (Some((number, _)), message) => self.hub.message(number, message, self.now),
            (None, ToService::Hello(hello)) => {
                let session = self.hub.hello(&open.peer, &hello, &open.outbox, self.now)?;
                open.session = Some(session);
                Ok(())
            }
            (None, _) => Err(wire::Fault::new(wire::FaultCode::BadState, "no hello")),
        });
        if let Err(fault) = taken {
            open.outbox.end(fault);
            if let Some((number, connection)) = open.session {
                self.hub.leave(number, connection, self.now);
            }
        }
    }

    /// What was said over a connection since it was last asked.
    pub fn hear(&mut self, connection: usize) -> Vec<String> {
        let mut frames = Vec::new();
        if let Some(Some(open)) = self.connections.get(connection) {
            open.outbox.take(&mut frames);
            open.outbox.written();
            frames.extend(open.outbox.ending().map(|fault| wire::write(&ToClient::Error(fault))));
        }
        frames
    }

    /// A connection breaks.
    pub fn cut(&mut self, connection: usize) {
        let Some(Some(cut)) = self.connections.get_mut(connection).map(Option::take) else {
            return;
        };
        if let Some((number, connection)) = cut.session {
            self.hub.detach(number, connection, self.now);
        }
    }

    /// Time passes, and leases lapse.
    pub fn pass(&mut self, time: Duration) {
        self.now += time;
        for number in self.hub.sessions.numbers() {
            let _left = self.hub.check_lease(number, self.now);
        }
    }

    /// Checks that the books of sessions and those of the engines agree.
    ///
    /// # Panics
    ///
    /// They do not.
    pub fn check(&self) {
        let hub = &self.hub;
        let mut clients = 0;
        let mut requests = 0;
        for number in hub.sessions.numbers() {
            let Some(session) = hub.sessions.get(number) else { continue };
            clients += session.clients.len();
            assert!(session.requests.len() <= hub.limits.requests_per_session_max);
            for (request, known) in &session.requests {
                match known {
                    Known::Live { partition, id } => {
                        let manager = &hub.partitions[*partition].manager;
                        assert!(manager.state(*id).is_some(), "{number}.{request} is over");
                        requests += 1;
                    }
                    Known::Early { .. } => requests += 1,
                    Known::Lost { client, .. } => {
                        let owner = session.clients.get(client);
                        assert!(owner.is_some_and(|owner| owner.lost.contains(request)));
                    }
                }
            }
            let lost: usize = session.clients.values().map(|client| client.lost.len()).sum();
            let known = |known: &&Known| matches!(known, Known::Lost { .. });
            assert_eq!(lost, session.requests.values().filter(known).count());
            for client in session.clients.values() {
                assert!(hub.partitions[client.partition].manager.knows(client.id));
            }
        }
        let managers = || hub.partitions.iter().map(|partition| &partition.manager);
        assert_eq!(clients, managers().map(|manager| manager.client_count()).sum::<usize>());
        let entries = hub.partitions.iter().map(super::partition::Partition::requests);
        assert_eq!(requests, entries.sum::<usize>());
        let used = hub.partitions.iter().filter(|partition| partition.manager.client_count() > 0);
        assert_eq!(hub.partitions.len(), used.count());
    }
}
