//! The configuration of a service: addresses, access, limits.

mod access;
mod limits;
mod origins;

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use navlocks_core::DeadlockPolicy;

pub use access::{Access, read_secret};
pub(crate) use access::{Scope, TokenId};
pub(crate) use limits::LEASE_BOUND;
pub use limits::Limits;
pub use origins::SharedOrigins;
pub(crate) use origins::{Origins, normal as normal_origin};

/// The configuration of a service. More fields may follow, so begin with the default:
///
/// ```
/// use navlocks_server::{Config, Limits};
/// use std::time::Duration;
///
/// let config = Config::default().with(|config| {
///     config.unix = Some("/run/navlocks/socket".into());
///     config.limits = Limits::default().with(|limits| limits.lease_max = Duration::from_secs(60));
/// });
/// # assert!(config.tcp.is_empty());
/// ```
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Config {
    /// The Unix socket to listen on.
    pub unix: Option<PathBuf>,
    /// Lets other users of the machine in over Unix sockets. Otherwise only the service's own user
    /// and root may come in.
    pub shared_socket: Option<SharedSocket>,
    /// Gives each user of the machine a lock space apart, as a tenant named `uid:1000`, over Unix
    /// sockets.
    pub tenant_by_user: bool,
    /// The addresses to listen on; port 0 for any free one. Others than loopback need tokens and
    /// TLS.
    pub tcp: Vec<SocketAddr>,
    /// Whether to take the sockets that systemd opened for this process.
    pub inherit: bool,
    /// Where to remember what must outlive the service. Without it nothing is: after a restart
    /// tokens go on from the clock, and no request waits for earlier holders. For tests.
    pub state_dir: Option<PathBuf>,
    /// Says that no earlier service can have clients. Otherwise a service over TCP whose state
    /// folder has no record of one grants nothing until the longest lease has passed.
    pub fresh: bool,
    /// The tokens of clients over TCP.
    pub access: Access,
    /// The certificate for TCP.
    pub tls: Option<TlsFiles>,
    /// The origins of web pages that may come in, such as `https://shop.example`. No other page may.
    pub allow_origins: Vec<String>,
    /// A file with more of them, one on a line. The service reads it again when it changes.
    pub origins_file: Option<PathBuf>,
    /// Serves a dashboard at `/` of the TCP addresses. Over the Unix socket there always is one.
    pub dashboard: bool,
    /// Lets operators act from it: release and steal locks, end sessions.
    pub dashboard_actions: bool,
    /// The names of this service, such as `locks.example`, for browsers and for metrics. Addresses
    /// in numbers and `localhost` are known.
    pub hosts: Vec<String>,
    /// Origins of web pages that may come in too, and share their locks with others.
    pub shared_origins: Vec<SharedOrigins>,
    /// In a cluster: a file with certificates of authorities to trust when this node connects to
    /// others, instead of the system's.
    pub node_roots: Option<PathBuf>,
    /// The policy for deadlocks.
    pub deadlocks: DeadlockPolicy,
    /// The limits.
    pub limits: Limits,
    /// Ends the service when it has had no connection and no session for so long.
    pub idle_exit: Option<Duration>,
}

/// The permissions of a Unix socket that several users share. Inherited sockets keep their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SharedSocket {
    /// The number of its group; that of the service's process otherwise.
    pub group: Option<u32>,
    /// Its mode, such as 0660.
    pub mode: u32,
}

impl Config {
    /// Changes the configuration by `change`, and returns it.
    pub fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }
}

/// A certificate and its key, in PEM.
#[derive(Clone, Debug)]
pub struct TlsFiles {
    /// The certificate and those that lead from it to one that clients trust.
    pub certificate: PathBuf,
    /// Its private key.
    pub key: PathBuf,
}

/// Adds to an error what the service tried, and on which path.
pub(crate) fn explain(error: io::Error, tried: &str, path: &Path) -> io::Error {
    io::Error::new(error.kind(), format!("{tried} {}: {error}", path.display()))
}
