//! The arm of a cluster on one member of etcd.

use navlocks::{DeadlockPolicy, Locks};

use crate::backend::Backend;
use crate::cluster::Space;

#[path = "body/mod.rs"]
mod body;

pub(crate) struct Arm(Space);

impl Backend for Arm {
    const ROUNDS: usize = 40;

    fn start(deadlocks: DeadlockPolicy) -> Self {
        Self(Space::start(1, deadlocks))
    }

    fn client(&self) -> Locks {
        self.0.client()
    }
}
