//! The arm through a service over its Unix socket, with a connection for each client.

use navlocks::{DeadlockPolicy, Locks};

use crate::backend::Backend;
use crate::service::{Running, Transport};

#[path = "body/mod.rs"]
mod body;

pub(crate) struct Arm(Running);

impl Backend for Arm {
    const ROUNDS: usize = 60;

    fn start(deadlocks: DeadlockPolicy) -> Self {
        Self(Running::start(deadlocks, Transport::Unix))
    }

    fn client(&self) -> Locks {
        self.0.client()
    }
}
