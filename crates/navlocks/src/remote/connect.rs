//! `Locks::connect`: the options of a connection.

use std::ffi::OsString;
use std::fmt;
use std::io;
use std::time::Duration;

use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject;

use super::backend::Handle;
use super::begin::{self, Attempts};
use super::driver::runtime::DriverRuntime;
use super::errors::ConnectError;
use super::open::shut_down;
use super::user_service::{self, Start};
use navlocks_client::{Addresses, Begin, Settings as Session, Url};

/// The shortest silence that follows from `unreachable_after`: a service may be busy for a moment.
const SILENCE_MIN: Duration = Duration::from_secs(1);

/// The options of a connection, from [`Locks::connect`](crate::Locks::connect). Nothing happens
/// until it is awaited.
#[derive(Clone, Debug)]
#[must_use = "a connection is not made until it is awaited"]
pub struct Connect {
    service: Service,
    options: Settings,
}

/// The service to connect to.
#[derive(Clone, Debug)]
enum Service {
    At(String),
    /// The user's own service, and how to start it.
    Own {
        start: Option<Start>,
    },
}

/// The options that the driver needs to connect, again and again.
#[derive(Clone)]
pub(crate) struct Options {
    pub(crate) addresses: Addresses,
    pub(crate) partition: String,
    pub(crate) token: Option<String>,
    /// Whether the token may go to other machines unencrypted.
    pub(crate) token_in_clear: bool,
    pub(crate) lease: Option<Duration>,
    pub(crate) unreachable_after: Option<Duration>,
    pub(crate) answer_timeout: Option<Duration>,
    /// How to restart a service at a Unix socket that has ended.
    pub(crate) restart: Option<Start>,
    /// True if the driver runs on the thread of this crate.
    pub(crate) own_thread: bool,
    pub(crate) roots: Vec<CertificateDer<'static>>,
}

impl Options {
    /// Returns the settings of a session that is not connected yet.
    pub(super) fn settings(&self, begin: Begin) -> Session {
        // Over a Unix socket the kernel tells the process.
        let is_far = self.addresses.socket().is_none();
        Session {
            addresses: self.addresses.clone(),
            hides_token: self.token.is_some() && !self.token_in_clear,
            partition: self.partition.clone(),
            process: is_far.then(own_process),
            lease: self.lease,
            unreachable_after: self.unreachable_after,
            answer_timeout: self.answer_timeout,
            starts_service: self.restart.is_some(),
            begin,
        }
    }
}

/// Returns a description of this process for people on other machines.
fn own_process() -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    format!("{}@{}", std::process::id(), host.trim())
}

#[cfg(test)]
impl Options {
    /// The options of a client that was told nothing else.
    pub(super) fn to(addresses: Addresses) -> Self {
        Self {
            addresses,
            partition: String::new(),
            token: None,
            token_in_clear: false,
            lease: None,
            unreachable_after: None,
            answer_timeout: None,
            restart: None,
            own_thread: false,
            roots: Vec::new(),
        }
    }
}

#[derive(Clone)]
struct Settings {
    partition: String,
    token: Option<String>,
    lease: Option<Duration>,
    unreachable_after: Option<Duration>,
    /// None if it was not set: then it follows from `unreachable_after`.
    answer_timeout: Option<Option<Duration>>,
    restart: Option<Start>,
    token_in_clear: bool,
    roots: Option<Vec<u8>>,
    timeout: Option<Duration>,
    retry: bool,
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings")
            .field("partition", &self.partition)
            .field("token", &self.token.as_ref().map(|_| "…"))
            .field("lease", &self.lease)
            .field("unreachable_after", &self.unreachable_after)
            .field("answer_timeout", &self.answer_timeout)
            .finish_non_exhaustive()
    }
}

impl Connect {
    /// How long a service may be out of reach before requests that wait for it fail. See
    /// [`unreachable_after`](Self::unreachable_after).
    pub const DEFAULT_UNREACHABLE_AFTER: Duration = Duration::from_secs(60);

    pub(crate) fn new(url: &str) -> Self {
        Self::to(Service::At(url.to_owned()))
    }

    pub(crate) fn own() -> Self {
        Self::to(Service::Own { start: None })
    }

    fn to(service: Service) -> Self {
        let options = Settings {
            partition: String::new(),
            token: None,
            lease: None,
            unreachable_after: Some(Self::DEFAULT_UNREACHABLE_AFTER),
            answer_timeout: None,
            restart: None,
            token_in_clear: false,
            roots: None,
            timeout: None,
            retry: false,
        };
        Self { service, options }
    }

    /// Starts the user's own service if it does not run, by the command `navlocks`: the one that
    /// the variable `NAVLOCKS_BIN` names, or else that of the `PATH`. A service that ends while
    /// this client has a lock, a request or a question is restarted. No effect for a service with
    /// an address.
    pub fn start(self) -> Self {
        let named = std::env::var_os("NAVLOCKS_BIN").filter(|name| !name.is_empty());
        self.start_by(named.unwrap_or_else(|| "navlocks".into()))
    }

    /// Does the same as [`start`](Self::start), by this command.
    pub fn start_by(mut self, command: impl Into<OsString>) -> Self {
        if let Service::Own { start } = &mut self.service {
            let by = Start::by(command.into());
            *start = Some(by.clone());
            self.options.restart = Some(by);
        }
        self
    }

    /// Sets a function that restarts a service at a Unix socket which has ended while this client
    /// has a lock, a request or a question. It runs on a thread of its own and returns when the
    /// service listens; it is not called for the first connection.
    pub fn restart_with(
        mut self,
        start: impl Fn() -> io::Result<()> + Send + Sync + 'static,
    ) -> Self {
        self.options.restart = Some(Start::with(start));
        self
    }

    /// Sets the partition of the service; the default one otherwise. Partitions are independent.
    pub fn partition(mut self, name: impl Into<String>) -> Self {
        self.options.partition = name.into();
        self
    }

    /// Sets the token that authenticates this client. Services that listen beyond their own machine
    /// require one.
    pub fn token(mut self, token: impl Into<String>) -> Self {
        self.options.token = Some(token.into());
        self
    }

    /// Allows sending the token to another machine over `ws:`, unencrypted. Otherwise that is
    /// [`ConnectError::TokenInClear`].
    pub fn allow_token_in_clear(mut self) -> Self {
        self.options.token_in_clear = true;
        self
    }

    /// Sets how long the service should keep the locks of this client when the network breaks; the
    /// service may give less or more. No effect over a Unix socket: there the kernel reports the
    /// end of this process.
    pub fn lease(mut self, lease: Duration) -> Self {
        self.options.lease = Some(lease);
        self
    }

    /// Sets how long the service may be out of reach before requests and questions that wait for it
    /// fail with `Unreachable`; `None` lets them wait for ever. The client connects again in any
    /// case.
    pub fn unreachable_after(mut self, limit: impl Into<Option<Duration>>) -> Self {
        self.options.unreachable_after = limit.into();
        self
    }

    /// Sets how long a connected service may be silent before requests and questions that wait for
    /// it fail with `Unreachable`; `None` lets them wait for ever. By default as long as
    /// [`unreachable_after`](Self::unreachable_after), and at least a second.
    ///
    /// A service that hangs keeps its connections. So the client sends a ping while a request waits
    /// for it; a lock that is not free is no silence. Held locks stay held.
    pub fn answer_timeout(mut self, limit: impl Into<Option<Duration>>) -> Self {
        self.options.answer_timeout = Some(limit.into());
        self
    }

    /// Sets how long the first connection may take in all, with the [start](Self::start) of the
    /// user's own service; then it is [`ConnectError::TimedOut`]. Without this each attempt has at
    /// most twenty seconds.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.options.timeout = Some(timeout);
        self
    }

    /// Tries again while the service cannot be reached or refuses this client temporarily: until
    /// the [`timeout`](Self::timeout), and without one for ever. For programs that are started
    /// together with their service.
    ///
    /// Later connections, after one was lost, are always tried again.
    pub fn retry(mut self) -> Self {
        self.options.retry = true;
        self
    }

    /// Sets the certificates in PEM form of the authorities to trust for `wss:`, instead of those
    /// of the system.
    pub fn root_certificates(mut self, pem: impl Into<Vec<u8>>) -> Self {
        self.options.roots = Some(pem.into());
        self
    }

    /// Checks the settings.
    pub(super) fn prepare(self) -> Result<(Options, Attempts), ConnectError> {
        let Self { service, options } = self;
        let Settings { partition, token, lease, unreachable_after, answer_timeout, .. } = options;
        let Settings { restart, token_in_clear, roots, timeout, retry, .. } = options;
        let answer_timeout =
            answer_timeout.unwrap_or_else(|| unreachable_after.map(|limit| limit.max(SILENCE_MIN)));
        let (addresses, start) = match service {
            Service::At(url) => (Addresses::parse(&url).map_err(ConnectError::BadUrl)?, None),
            Service::Own { start } => (Addresses::one(Url::Unix(user_service::socket()?)), start),
        };
        if let (Some(_), Some(host), false) = (&token, addresses.in_clear(), token_in_clear) {
            return Err(ConnectError::TokenInClear { host: host.to_owned() });
        }
        let roots = roots.map_or(Ok(Vec::new()), |pem| certificates(&pem))?;
        let options = Options {
            addresses,
            partition,
            token,
            token_in_clear,
            lease,
            unreachable_after,
            answer_timeout,
            restart,
            own_thread: tokio::runtime::Handle::try_current().is_err(),
            roots,
        };
        Ok((options, Attempts { start, timeout, retry }))
    }

    /// Makes the connection.
    pub(crate) async fn connect(self) -> Result<Handle, ConnectError> {
        let (options, attempts) = self.prepare()?;
        // The socket belongs to the runtime that drives it, which is not always the caller's.
        let (mut tell, told) = tokio::sync::oneshot::channel();
        let runtime = DriverRuntime::here().map_err(ConnectError::Unreachable)?;
        let known = runtime.clone();
        let driver = async move {
            let begun = tokio::select! {
                begun = begin::begin(&options, attempts, Begin::Once) => begun,
                () = tell.closed() => return,
            };
            match begun {
                Ok(begun) => {
                    let handle = Handle::new(begun.session().clone(), known);
                    // The caller may be gone: then the handle is dropped here, and takes leave.
                    drop(tell.send(Ok(handle)));
                    begun.drive().await;
                }
                Err(error) => drop(tell.send(Err(error))),
            }
        };
        runtime.spawn(driver);
        told.await.unwrap_or_else(|_| Err(shut_down()))
    }
}

fn certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, ConnectError> {
    let bad = |problem: String| ConnectError::BadCertificate(problem);
    let all = CertificateDer::pem_slice_iter(pem).collect::<Result<Vec<_>, _>>();
    let all = all.map_err(|error| bad(error.to_string()))?;
    if all.is_empty() { Err(bad("there is none in the PEM text".into())) } else { Ok(all) }
}
