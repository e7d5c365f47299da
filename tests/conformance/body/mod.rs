//! The tests. Compiled once for each arm, which calls itself `Arm` in the module above.

use navlocks::DeadlockPolicy;

use super::Arm;
use crate::backend::Backend;

mod callbacks;
mod aborts;
mod steals;
mod guards;
mod contention;
mod clients;
mod queries;
mod deadlocks;
mod events;
mod errors;
mod overtaking;
mod transactions;
mod wakers;
mod runtimes;

/// A lock space that lets deadlocks be.
fn start() -> Arm {
    Arm::start(DeadlockPolicy::Ignore)
}
