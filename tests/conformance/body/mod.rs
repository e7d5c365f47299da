//! The tests. Compiled once for each arm, which is `Arm` in the module above.

use navlocks::DeadlockPolicy;

use super::Arm;
use crate::backend::Backend;

mod tasks;
mod aborts;
mod steals;
mod contention;
mod clients;
mod queries;
mod deadlocks;
mod events;
mod errors;
mod overtaking;
mod limits;
mod downgrades;
mod holds;
mod elections;
mod transactions;

/// Makes a lock space that ignores deadlocks.
fn start() -> Arm {
    Arm::start(DeadlockPolicy::Ignore)
}
