//! What all tasks of a service share. One thread runs them all.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use tokio::sync::Notify;

use crate::config::Config;
use crate::hub::Hub;

/// What all tasks of a service share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) hub: RefCell<Hub>,
    pub(crate) config: Config,
    connections: Cell<usize>,
    /// How many connections there ever were.
    arrivals: Cell<u64>,
    /// Told when the last connection is gone, or the last session without one.
    pub(crate) emptied: Notify,
    /// The longest lease of those who could not be told that the service ends.
    untold: Cell<Option<Duration>>,
}

/// One of the connections that are counted. Dropping it is the connection's end.
#[derive(Debug)]
pub(crate) struct Seat(Rc<Shared>);

impl Shared {
    pub(crate) fn new(config: Config, hub: Hub) -> Rc<Self> {
        Rc::new(Self {
            hub: RefCell::new(hub),
            config,
            connections: Cell::new(0),
            arrivals: Cell::new(0),
            emptied: Notify::new(),
            untold: Cell::new(None),
        })
    }

    pub(crate) fn connections(&self) -> usize {
        self.connections.get()
    }

    pub(crate) fn arrivals(&self) -> u64 {
        self.arrivals.get()
    }

    /// Whether there is nobody: no connection, and no session that may come back.
    pub(crate) fn is_idle(&self) -> bool {
        self.connections.get() == 0 && self.hub.borrow().sessions.len() == 0
    }

    /// Counts a new connection; none when there are too many.
    pub(crate) fn take_seat(self: &Rc<Self>) -> Option<Seat> {
        let count = self.connections.get();
        if count >= self.config.limits.connections_max {
            return None;
        }
        self.connections.set(count + 1);
        self.arrivals.set(self.arrivals.get() + 1);
        Some(Seat(self.clone()))
    }

    /// A client with this lease may not know that the service ends.
    pub(crate) fn could_not_tell(&self, lease: Option<Duration>) {
        self.untold.set(self.untold.get().max(lease));
    }

    pub(crate) fn untold(&self) -> Option<Duration> {
        self.untold.get()
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let count = self.0.connections.get() - 1;
        self.0.connections.set(count);
        if count == 0 {
            self.0.emptied.notify_waiters();
        }
    }
}
