//! `Locks::connect`: how to reach a service.

use std::error::Error;
use std::fmt;
use std::io;
use std::time::Duration;

use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject;

use super::driver;
use super::handle::Handle;
use super::runtime;
use super::url::Url;
use navlocks_wire::Fault;

/// A connection in the making, from [`Locks::connect`](crate::Locks::connect). Nothing happens until it is awaited.
#[derive(Clone, Debug)]
#[must_use = "a connection is not made until it is awaited"]
pub struct Connect {
    url: String,
    options: Settings,
}

/// All that a driver must know to reach its service, again and again.
#[derive(Clone)]
pub(crate) struct Options {
    pub(crate) url: Url,
    pub(crate) partition: String,
    pub(crate) token: Option<String>,
    pub(crate) lease: Option<Duration>,
    pub(crate) patience: Option<Duration>,
    pub(crate) roots: Vec<CertificateDer<'static>>,
}

#[derive(Clone)]
struct Settings {
    partition: String,
    token: Option<String>,
    lease: Option<Duration>,
    patience: Option<Duration>,
    roots: Vec<u8>,
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings")
            .field("partition", &self.partition)
            .field("token", &self.token.as_ref().map(|_| "…"))
            .field("lease", &self.lease)
            .field("patience", &self.patience)
            .finish_non_exhaustive()
    }
}

impl Connect {
    /// How long a service may be out of reach before requests that wait for it fail. See [`patience`](Self::patience).
    pub const DEFAULT_PATIENCE: Duration = Duration::from_secs(60);

    pub(crate) fn new(url: &str) -> Self {
        let options = Settings {
            partition: String::new(),
            token: None,
            lease: None,
            patience: Some(Self::DEFAULT_PATIENCE),
            roots: Vec::new(),
        };
        Self { url: url.to_owned(), options }
    }

    /// The partition of the service to use, the default one otherwise. Partitions know nothing of each other.
    pub fn partition(mut self, name: impl Into<String>) -> Self {
        self.options.partition = name.into();
        self
    }

    /// What proves to the service who asks. Services that listen beyond their own machine require one.
    pub fn token(mut self, token: impl Into<String>) -> Self {
        self.options.token = Some(token.into());
        self
    }

    /// For how long the service should keep the locks of this client when the network breaks; the service may give less or more.
    /// Of no meaning over a Unix socket, where a connection ends with one of its two processes and never otherwise.
    pub fn lease(mut self, lease: Duration) -> Self {
        self.options.lease = Some(lease);
        self
    }

    /// How long the service may be out of reach before requests and questions that wait for it fail with `Unreachable`; `None`
    /// lets them wait for ever. The connection is tried again in any case.
    pub fn patience(mut self, patience: impl Into<Option<Duration>>) -> Self {
        self.options.patience = patience.into();
        self
    }

    /// Certificates in PEM form of the authorities to trust for `wss:`, instead of those that the system trusts.
    pub fn root_certificates(mut self, pem: impl Into<Vec<u8>>) -> Self {
        self.options.roots = pem.into();
        self
    }

    /// Makes the connection.
    pub(crate) async fn connect(self) -> Result<Handle, ConnectError> {
        let Self { url, options } = self;
        let Settings { partition, token, lease, patience, roots } = options;
        let url = Url::parse(&url).map_err(ConnectError::BadUrl)?;
        let roots = CertificateDer::pem_slice_iter(&roots)
            .collect::<Result<_, _>>()
            .map_err(|error| ConnectError::BadCertificate(error.to_string()))?;
        let options = Options { url, partition, token, lease, patience, roots };
        // The socket belongs to the runtime that drives it, which is not always the caller's.
        let (mut tell, told) = tokio::sync::oneshot::channel();
        let driver = async move {
            let begun = tokio::select! {
                begun = driver::begin(options) => begun,
                () = tell.closed() => return,
            };
            match begun {
                Ok((session, link)) => {
                    let handle = Handle::new(session.clone());
                    // Nobody waits for the connection any more: the handle, sent back, takes leave.
                    drop(tell.send(Ok(handle)));
                    driver::drive(session, link).await;
                }
                Err(error) => drop(tell.send(Err(error))),
            }
        };
        runtime::spawn(driver).map_err(ConnectError::Unreachable)?;
        match told.await {
            Ok(connected) => connected,
            Err(_) => Err(ConnectError::Unreachable(io::Error::other("the runtime has shut down"))),
        }
    }
}

/// Why a service was not reached.
#[derive(Debug)]
#[non_exhaustive]
pub enum ConnectError {
    /// The address cannot be understood.
    BadUrl(String),
    /// The token has characters that no header can carry.
    BadToken,
    /// A certificate cannot be read.
    BadCertificate(String),
    /// Nobody answers there.
    Unreachable(io::Error),
    /// Somebody answers who is no service of this kind.
    Handshake(String),
    /// The service refuses this client.
    Refused(Fault),
}

impl fmt::Display for ConnectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BadUrl(problem) => f.write_str(problem),
            Self::BadToken => f.write_str(
                "the access token has characters that no token has: is it the right file?",
            ),
            Self::BadCertificate(problem) => {
                write!(f, "a root certificate cannot be read: {problem}")
            }
            Self::Unreachable(error) => write!(f, "the lock service cannot be reached: {error}"),
            Self::Handshake(problem) => {
                write!(f, "what answers there is no lock service for this client: {problem}")
            }
            Self::Refused(fault) => write!(f, "the lock service refuses the connection: {fault}"),
        }
    }
}

impl Error for ConnectError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Unreachable(error) => Some(error),
            _ => None,
        }
    }
}
