//! Failures on the way to a service, each with a remedy.

use std::io::ErrorKind;
use std::time::Duration;

use navlocks::{ConnectError, QueryError};
use navlocks_wire::FaultCode;

use super::super::duration;
use crate::exit::{Exit, Failure};
use crate::service_dir::ServiceDir;

/// The reason why there is no connection.
pub(super) enum Missed {
    /// No service listens. An error where none can be started.
    Absent(Failure),
    /// A service was there and ended.
    Left(Failure),
    /// Another attempt would fail alike.
    Failed(Failure),
}

pub(crate) fn silent(url: &str, limit: Duration) -> Failure {
    let limit = duration::say(limit);
    let is_own = ServiceDir::of_user().is_ok_and(|place| place.url() == url);
    let remedy = if is_own { " navlocks stop --force ends it, and locks stay held" } else { "" };
    let message = format!(
        "the service at {url} did not answer within {limit}, so what it holds is not known: is it stopped, or busy?{remedy}"
    );
    Failure::new(Exit::Silent, message)
}

pub(super) fn leaving(place: &ServiceDir) -> Failure {
    let url = place.url();
    Failure::new(Exit::Service, format!("the service at {url} ends when a client connects"))
}

pub(crate) fn without_socket(place: &ServiceDir) -> Failure {
    let (folder, socket) = (place.folder().display(), place.socket());
    let message = format!(
        "a service lives in {folder}, but its socket {} is gone, so what it holds is not known: end that process",
        socket.display()
    );
    Failure::new(Exit::Silent, message)
}

pub(super) fn missed(url: &str, error: ConnectError) -> Missed {
    let failed = |exit, message: String| Missed::Failed(Failure::new(exit, message));
    match error {
        ConnectError::Unreachable(error) => {
            let unix = url.starts_with("unix:");
            let absent = |exit, why| {
                Missed::Absent(Failure::new(exit, format!("no service listens at {url}: {why}")))
            };
            match error.kind() {
                ErrorKind::NotFound => absent(Exit::Unavailable, "there is no such socket"),
                ErrorKind::ConnectionRefused if unix => {
                    absent(Exit::StaleSocket, "its service has ended and left the socket behind")
                }
                ErrorKind::ConnectionRefused => {
                    absent(Exit::Unavailable, "the connection is refused")
                }
                ErrorKind::PermissionDenied => {
                    failed(Exit::Refused, format!("{url} belongs to another user: {error}"))
                }
                _ => {
                    let is_plain =
                        url.starts_with("wss://") && error.kind() == ErrorKind::InvalidData;
                    let plain = if is_plain { ", or it takes no TLS (ws://)" } else { "" };
                    let message = format!("the service at {url} cannot be reached{plain}: {error}");
                    Missed::Left(Failure::new(Exit::Unavailable, message))
                }
            }
        }
        ConnectError::Silent { within } => Missed::Failed(silent(url, within)),
        ConnectError::Handshake(problem) if problem.starts_with("its certificate ") => failed(
            Exit::Refused,
            // A certificate that has expired, or is for another name, is not mended by that.
            match problem.contains("an authority that is not trusted") {
                true => format!(
                    "the service at {url} is not trusted: {problem}; --ca-file names the certificates to trust"
                ),
                false => format!("the service at {url} is not trusted: {problem}"),
            },
        ),
        ConnectError::Handshake(problem) => {
            let tls = if url.starts_with("ws://") { ", or it takes TLS (wss://)" } else { "" };
            let message =
                format!("what answers at {url} is no lock service of this version{tls}: {problem}");
            Missed::Left(Failure::new(Exit::Version, message))
        }
        ConnectError::Refused(fault) => match fault.code {
            FaultCode::Version => failed(
                Exit::Version,
                format!("{fault}: update one of them, or end it with navlocks stop"),
            ),
            FaultCode::Unauthorized => failed(
                Exit::Refused,
                format!("{url} refuses this client: {fault}; --token-file names a file with one"),
            ),
            FaultCode::ForbiddenOrigin => failed(Exit::Refused, fault.to_string()),
            FaultCode::Limit => failed(Exit::Limit, fault.to_string()),
            FaultCode::ShuttingDown => {
                Missed::Left(Failure::new(Exit::Unavailable, fault.to_string()))
            }
            _ => failed(Exit::Service, fault.to_string()),
        },
        ConnectError::TokenInClear { host } => failed(
            Exit::Usage,
            format!(
                "the access token would go to {host} unencrypted: use wss://, or say --token-in-clear"
            ),
        ),
        ConnectError::BadUrl(_) | ConnectError::BadToken | ConnectError::BadCertificate(_) => {
            failed(Exit::Usage, error.to_string())
        }
        other => failed(Exit::Service, other.to_string()),
    }
}

/// Returns the failure of a question without an answer.
pub(crate) fn unanswered(error: QueryError) -> Failure {
    let exit = match error {
        QueryError::Unreachable | QueryError::OutcomeUnknown => Exit::Unavailable,
        QueryError::Refused(_) => Exit::Refused,
        _ => Exit::Service,
    };
    Failure::new(exit, error.to_string())
}
