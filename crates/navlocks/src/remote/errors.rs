//! `ConnectError`: why a service was not reached.

use std::error::Error;
use std::fmt;
use std::io;
use std::time::Duration;

use navlocks_client::{DialFailure, Failure};
use navlocks_wire::Fault;
use tokio_tungstenite::tungstenite;

/// Why a service was not reached.
#[derive(Debug)]
#[non_exhaustive]
pub enum ConnectError {
    /// The address cannot be understood.
    BadUrl(String),
    /// The token has characters that no header can carry.
    BadToken,
    /// The token would be sent to another machine unencrypted.
    TokenInClear {
        /// The machine.
        host: String,
    },
    /// Other users can write to the folder of the user's own service, so one of them may listen
    /// there.
    Unsafe(String),
    /// A certificate cannot be read.
    BadCertificate(String),
    /// No process answers there.
    Unreachable(io::Error),
    /// No connection was made within the [timeout](crate::Connect::timeout).
    TimedOut {
        /// The timeout.
        after: Duration,
        /// Why the last attempt failed, if one has ended.
        last: Option<Box<Self>>,
    },
    /// A process listens there, and sends nothing.
    Silent {
        /// For this long.
        within: Duration,
    },
    /// The process that answers is not a service of navlocks.
    Handshake(String),
    /// The service refuses this client.
    Refused(Fault),
}

impl fmt::Display for ConnectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BadUrl(problem) | Self::Unsafe(problem) => f.write_str(problem),
            Self::BadToken => f.write_str(
                "the access token has characters that no token has: is it the right file?",
            ),
            Self::TokenInClear { host } => write!(
                f,
                "the access token would go to {host} unencrypted: use wss:, or allow it by name"
            ),
            Self::BadCertificate(problem) => {
                write!(f, "a root certificate cannot be read: {problem}")
            }
            Self::Unreachable(error) => {
                write!(f, "the lock service cannot be reached: {error}")?;
                match error.kind() {
                    io::ErrorKind::NotFound => {
                        f.write_str("; is it running? Connect::start starts the user's own")
                    }
                    _ => Ok(()),
                }
            }
            Self::TimedOut { after, last } => {
                write!(f, "no connection was made within {after:?}")?;
                last.as_ref().map_or(Ok(()), |last| write!(f, ": {last}"))
            }
            Self::Silent { within } => {
                write!(
                    f,
                    "the lock service did not answer within {within:?}: is it stopped, or busy?"
                )
            }
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
            Self::TimedOut { last: Some(last), .. } => Some(&**last),
            _ => None,
        }
    }
}

impl ConnectError {
    /// Returns the failure as the machine sees it.
    pub(super) fn dial_failure(&self) -> DialFailure {
        match self {
            Self::Refused(fault) => DialFailure::Refused(fault.clone()),
            Self::Unreachable(error) if is_absent(error) => DialFailure::Absent,
            _ => DialFailure::Unreachable,
        }
    }

    /// Returns the error of an attempt that the machine has ended.
    pub(super) fn of_failure(failure: Failure) -> Option<Self> {
        Some(match failure {
            Failure::Passed => return None,
            Failure::Late(within) => {
                let late = format!("no answer within {within:?}");
                Self::Unreachable(io::Error::new(io::ErrorKind::TimedOut, late))
            }
            Failure::Silent(within) => Self::Silent { within },
            Failure::Refused(fault) => Self::Refused(fault),
            Failure::Outdated { epoch, known } => Self::Handshake(format!(
                "its epoch is {epoch}, and a service of epoch {known} was here before: end the older one, or restore its state"
            )),
            Failure::Strange(message) => Self::Handshake(format!("it began with {message:?}")),
        })
    }
}

/// Returns true if no process listens at a Unix socket.
fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused)
}

/// Returns the error of a connection that broke.
pub(super) fn broken(error: tungstenite::Error) -> ConnectError {
    ConnectError::Unreachable(match error {
        tungstenite::Error::Io(error) => error,
        other => io::Error::other(other),
    })
}
