//! The options of a lock space in this process.

use navlocks_core::DeadlockPolicy;

use super::Locks;
use crate::local::Space;
use crate::owner::backend::AnyBackend;

/// Options of a lock space. Made by [`Locks::builder`].
#[derive(Clone, Copy, Debug, Default)]
#[must_use = "call build()"]
pub struct Builder {
    deadlocks: DeadlockPolicy,
}

impl Builder {
    /// Sets the policy for deadlocks among [requests within
    /// locks](crate::deadlock#requests-within-a-lock); they are ignored by default.
    pub fn deadlocks(mut self, policy: DeadlockPolicy) -> Self {
        self.deadlocks = policy;
        self
    }

    /// Makes a lock space with these options.
    pub fn build(self) -> Locks {
        let space = Space::alone(self.deadlocks);
        let client = space.add_client();
        Locks::of((AnyBackend::Local(space), client))
    }
}
