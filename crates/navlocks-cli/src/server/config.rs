//! What a service is told at its start.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use navlocks::DeadlockPolicy;

use super::limits::Limits;

/// What a service is told at its start.
#[derive(Clone, Debug, Default)]
pub struct Config {
    /// The Unix socket to listen on.
    pub unix: Option<PathBuf>,
    /// The addresses to listen on; port 0 for any free one.
    pub tcp: Vec<SocketAddr>,
    /// Where to remember what must outlive the service. Without it nothing is: after a restart tokens go on
    /// from the clock, and nobody waits for earlier holders. For tests.
    pub state_dir: Option<PathBuf>,
    /// What to do about deadlocks.
    pub deadlocks: DeadlockPolicy,
    /// What is allowed.
    pub limits: Limits,
    /// Ends the service when it has had no session for so long.
    pub idle_exit: Option<Duration>,
}
