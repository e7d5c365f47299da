//! The arm through a service over its Unix socket, with a connection for each client.

use navlocks::{DeadlockPolicy, DowngradeError, Locks, Mode};

use crate::backend::Backend;
use crate::patience::soon;
use crate::service::{Running, Transport};
use crate::watch::hold;

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

#[test]
fn downgrade_through_a_service_is_an_error_and_changes_nothing() {
    let arm = Arm::start(DeadlockPolicy::Ignore);
    let locks = arm.client();
    let mut lock = hold(locks.request("a"), "lock");
    assert_eq!(soon(lock.downgrade(Mode::Shared)), Err(DowngradeError::Unsupported));
    assert_eq!(lock.mode(), Mode::Exclusive);
    assert!(soon(locks.request("a").shared().if_available()).unwrap().is_none());
}
