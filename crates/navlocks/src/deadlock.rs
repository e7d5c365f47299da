//! Deadlocks: clients that wait for each other, and the policy of a lock space about them.

use std::fmt;

use navlocks_core::{ClientId, Deadlock, RequestId};

pub use navlocks_core::DeadlockPolicy;

/// Clients that wait for each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cycle(Box<Deadlock>);

impl Cycle {
    /// The clients, in order of their serials. One client alone waits for itself.
    pub fn clients(&self) -> &[ClientId] {
        &self.0.clients
    }

    /// The requests, held and pending, that make the cycle.
    pub fn requests(&self) -> &[RequestId] {
        &self.0.requests
    }
}

impl From<Deadlock> for Cycle {
    fn from(deadlock: Deadlock) -> Self {
        Self(Box::new(deadlock))
    }
}

impl fmt::Display for Cycle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |items: Vec<String>| items.join(", ");
        let clients = list(self.clients().iter().map(ToString::to_string).collect());
        let requests = list(self.requests().iter().map(ToString::to_string).collect());
        match self.clients() {
            [_] => write!(f, "{clients} waits for itself (requests {requests})"),
            _ => write!(f, "{clients} wait for each other (requests {requests})"),
        }
    }
}
