//! A service without sockets and with a virtual clock, for fuzz targets.

use std::collections::VecDeque;
use std::path::Path;
use std::rc::Rc;
use std::time::{Duration, Instant};

use navlocks_server::hub::{Frame, Hub, Outbox, Peer};
use navlocks_server::{DeadlockPolicy, Limits};
use navlocks_wire::{self as wire, ToClient, ToService};

/// A simulated service: texts go in, texts come out, and time passes only by calls.
#[derive(Debug)]
pub(crate) struct Rehearsal {
    hub: Hub,
    outbox_bytes_max: usize,
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
    /// Makes a service with these limits and without stored state.
    ///
    /// # Errors
    ///
    /// The system clock is wrong by centuries.
    pub(crate) fn new(limits: Limits, deadlocks: DeadlockPolicy) -> std::io::Result<Self> {
        let outbox_bytes_max = limits.outbox_bytes_max;
        let hub = Hub::without_store(limits, deadlocks)?;
        Ok(Self { hub, outbox_bytes_max, now: Instant::now(), connections: Vec::new() })
    }

    /// Makes a service with its state in this folder.
    ///
    /// # Errors
    ///
    /// The folder cannot be used.
    pub(crate) fn with_state_folder(
        folder: &Path,
        limits: Limits,
        deadlocks: DeadlockPolicy,
    ) -> std::io::Result<Self> {
        let (outbox_bytes_max, now) = (limits.outbox_bytes_max, Instant::now());
        let hub = Hub::with_state_folder(folder, limits, deadlocks, now)?;
        Ok(Self { hub, outbox_bytes_max, now, connections: Vec::new() })
    }

    /// Opens a connection, over a Unix socket or over TCP. Returns its number here.
    pub(crate) fn connect(&mut self, local: bool) -> usize {
        let peer = if local { Peer::local() } else { Peer::remote("", "") };
        let outbox = Outbox::new(self.outbox_bytes_max);
        self.connections.push(Some(Connection { peer: peer.into(), outbox, session: None }));
        self.connections.len() - 1
    }

    /// Sends a text over a connection. A closed connection ignores it.
    pub(crate) fn say(&mut self, connection: usize, text: &str) {
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

    /// Returns the texts that a connection received since the last call.
    pub(crate) fn hear(&mut self, connection: usize) -> Vec<String> {
        let mut texts = Vec::new();
        if let Some(Some(open)) = self.connections.get(connection) {
            let mut frames = VecDeque::new();
            open.outbox.take(&mut frames);
            open.outbox.written_all();
            texts.extend(frames.iter().map(Frame::text));
            texts.extend(open.outbox.ending().map(|fault| wire::write(&ToClient::Error(fault))));
        }
        texts
    }

    /// Breaks a connection.
    pub(crate) fn cut(&mut self, connection: usize) {
        let Some(Some(cut)) = self.connections.get_mut(connection).map(Option::take) else {
            return;
        };
        if let Some((number, connection)) = cut.session {
            self.hub.detach(number, connection, self.now);
        }
    }

    /// Advances the clock, which lets leases lapse.
    pub(crate) fn pass(&mut self, time: Duration) {
        self.now += time;
        self.hub.check_leases(self.now);
    }

    /// Checks that the sessions agree with the engines.
    ///
    /// # Panics
    ///
    /// They do not.
    pub(crate) fn check(&self) {
        self.hub.check_invariants();
    }
}
