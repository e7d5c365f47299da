//! What all tasks of a service share. One thread runs them all.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use super::config::Config;
use super::hub::Hub;

/// What all tasks of a service share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) hub: RefCell<Hub>,
    pub(crate) config: Config,
    connections: Cell<usize>,
}

/// One of the connections that are counted. Dropping it is the connection's end.
#[derive(Debug)]
pub(crate) struct Seat(Rc<Shared>);

impl Shared {
    pub(crate) fn new(config: Config, hub: Hub) -> Rc<Self> {
        Rc::new(Self { hub: RefCell::new(hub), config, connections: Cell::new(0) })
    }

    pub(crate) fn connections(&self) -> usize {
        self.connections.get()
    }

    /// Counts a new connection; none when there are too many.
    pub(crate) fn take_seat(self: &Rc<Self>) -> Option<Seat> {
        let count = self.connections.get();
        if count >= self.config.limits.connections_max {
            return None;
        }
        self.connections.set(count + 1);
        Some(Seat(self.clone()))
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.0.connections.set(self.0.connections.get() - 1);
    }
}
