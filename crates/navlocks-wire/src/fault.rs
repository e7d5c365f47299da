//! Faults: refusals of a service.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Why a message, a request or a whole connection is refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fault {
    /// The kind of the refusal, for programs.
    pub code: FaultCode,
    /// The text for people: what happened, and what to do.
    pub message: String,
    /// With `moved`: the address of the node to connect to. Missing while no node owns the locks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
}

/// The kinds of refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum FaultCode {
    /// The frame is no message of this protocol.
    BadMessage,
    /// The message makes no sense here: a number used twice, a client that was never opened.
    BadState,
    /// The other side speaks another version.
    Version,
    /// The token is missing or wrong.
    Unauthorized,
    /// The origin is opaque or not on the list.
    ForbiddenOrigin,
    /// The session is over, or never existed.
    UnknownSession,
    /// A limit of the service was reached; the message says which.
    Limit,
    /// The client does not read the messages sent to it.
    SlowReader,
    /// The service received nothing from the client for the length of its lease.
    LeaseLapsed,
    /// The session goes on over another connection.
    Replaced,
    /// The service is shutting down.
    ShuttingDown,
    /// Another node of the cluster owns the locks, or none does at the moment.
    Moved,
    /// Waiting would close a deadlock, and the service refuses that.
    Deadlock,
    /// Only a shared request can overtake the queue.
    ExclusiveOvertake,
    /// The service itself failed.
    Internal,
    /// A kind that this version does not know.
    #[serde(other)]
    Other,
}

impl Fault {
    /// Makes a refusal of this kind.
    pub fn new(code: FaultCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), to: None }
    }

    /// A refusal of a node that does not own the locks, with the address of the one that does.
    pub fn moved(to: Option<String>) -> Self {
        let message = match &to {
            Some(to) => format!("the locks are at another node of the cluster: connect to {to}"),
            None => "no node of the cluster owns the locks at the moment: try again".to_owned(),
        };
        Self { code: FaultCode::Moved, message, to }
    }
}

impl FaultCode {
    /// Returns the name of the DOMException that JavaScript gets for this.
    pub fn dom_exception_name(self) -> &'static str {
        match self {
            Self::ForbiddenOrigin | Self::Unauthorized => "SecurityError",
            Self::Limit => "QuotaExceededError",
            Self::ExclusiveOvertake | Self::Version => "NotSupportedError",
            Self::BadMessage | Self::BadState => "InvalidStateError",
            Self::Internal | Self::Other => "OperationError",
            Self::UnknownSession
            | Self::SlowReader
            | Self::LeaseLapsed
            | Self::Replaced
            | Self::Deadlock => "AbortError",
            Self::ShuttingDown | Self::Moved => "NetworkError",
        }
    }

    /// Returns true if the next attempt of the client will be refused too.
    pub fn is_final(self) -> bool {
        !matches!(
            self,
            Self::Limit
                | Self::ShuttingDown
                | Self::Moved
                | Self::Internal
                | Self::UnknownSession
                | Self::Deadlock
        )
    }

    /// Returns true if the messages of the client were wrong or too many: the next session that
    /// begins with the same ones may end alike.
    pub fn is_of_client(self) -> bool {
        matches!(self, Self::BadMessage | Self::BadState | Self::Limit)
    }

    /// All codes that a service of this version sends.
    pub const ALL: [Self; 15] = [
        Self::BadMessage,
        Self::BadState,
        Self::Version,
        Self::Unauthorized,
        Self::ForbiddenOrigin,
        Self::UnknownSession,
        Self::Limit,
        Self::SlowReader,
        Self::LeaseLapsed,
        Self::Replaced,
        Self::ShuttingDown,
        Self::Moved,
        Self::Deadlock,
        Self::ExclusiveOvertake,
        Self::Internal,
    ];
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Fault {}
