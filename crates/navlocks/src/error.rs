//! What can go wrong, in the caller's words.

use std::error::Error;
use std::fmt;
use std::time::Duration;

use navlocks_core::{Cause, RequestId, Scope};

use crate::deadlock::Cycle;
use crate::query::LockInfo;

/// Why a held lock was taken away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Loss {
    /// Another request stole it.
    Stolen {
        /// The thief.
        by: RequestId,
    },
    /// Somebody force-released a name of its scope.
    ForceReleased,
    /// Its client was suspended and somebody else needed the lock.
    Evicted,
    /// Its client was suspended, under the policy that releases at once.
    Suspended,
    /// Its client was [ended](crate::Locks::end).
    ClientEnded,
    /// The service could not be reached in time to renew the lease, and may have given the lock to somebody else.
    LeaseLapsed,
    /// The service that kept it is gone, or has ended the session.
    ServiceGone,
}

impl Loss {
    /// The name of the DOMException that this is in JavaScript.
    pub fn dom_exception_name(&self) -> &'static str {
        "AbortError"
    }
}

impl From<Cause> for Loss {
    fn from(cause: Cause) -> Self {
        match cause {
            Cause::Stolen { by } => Self::Stolen { by },
            Cause::ForceReleased => Self::ForceReleased,
            Cause::Evicted => Self::Evicted,
            Cause::Suspended => Self::Suspended,
        }
    }
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stolen { by } => write!(f, "the lock was stolen by request {by}"),
            Self::ForceReleased => f.write_str("the lock was force-released"),
            Self::Evicted => {
                f.write_str("the client was suspended, and somebody else needed the lock")
            }
            Self::Suspended => f.write_str("the client was suspended, which released its locks"),
            Self::ClientEnded => f.write_str("the client that held the lock was ended"),
            Self::LeaseLapsed => {
                f.write_str("the lock service was out of reach for longer than the lease")
            }
            Self::ServiceGone => f.write_str("the lock service that kept the lock is gone"),
        }
    }
}

impl Error for Loss {}

/// Why a request did not give a lock: the kind of failure, and the lock that it is about. Nothing
/// of the request is left then.
///
/// ```
/// # navlocks::blocking::block_on(async {
/// use navlocks::{Locks, RequestErrorKind};
/// use std::time::Duration;
///
/// let locks = Locks::new();
/// let _held = locks.request("invoice/42").tag("nightly").await?;
/// let error = locks.request("invoice/42").timeout(Duration::from_millis(1)).await.unwrap_err();
/// assert!(matches!(error.kind(), RequestErrorKind::TimedOut { .. }));
/// assert!(error.to_string().starts_with("'invoice/42' was not free within 1ms: held by nightly"));
/// # Ok::<(), navlocks::RequestError>(())
/// # }).unwrap();
/// ```
#[derive(Clone, PartialEq, Eq)]
// Boxed, because errors are rare and the result of a request is moved often.
pub struct RequestError(Box<About>);

#[derive(Clone, PartialEq, Eq)]
struct About {
    kind: RequestErrorKind,
    scope: Scope,
    holders: Vec<LockInfo>,
}

impl RequestError {
    pub(crate) fn new(kind: RequestErrorKind, scope: Scope) -> Self {
        Self::with_holders(kind, scope, Vec::new())
    }

    pub(crate) fn with_holders(
        kind: RequestErrorKind,
        scope: Scope,
        holders: Vec<LockInfo>,
    ) -> Self {
        Self(Box::new(About { kind, scope, holders }))
    }

    /// The kind of failure.
    pub fn kind(&self) -> &RequestErrorKind {
        &self.0.kind
    }

    /// Returns the kind of failure alone.
    pub fn into_kind(self) -> RequestErrorKind {
        self.0.kind
    }

    /// The names that were requested.
    pub fn scope(&self) -> &Scope {
        &self.0.scope
    }

    /// The locks that a request which [timed out](RequestErrorKind::TimedOut) waited for, as far as
    /// they are known; a service describes the first sixteen. Empty for every other kind, and if
    /// all were waiting themselves.
    pub fn holders(&self) -> &[LockInfo] {
        &self.0.holders
    }

    /// The name of the DOMException that this is in JavaScript.
    pub fn dom_exception_name(&self) -> &'static str {
        self.kind().dom_exception_name()
    }
}

impl PartialEq<RequestErrorKind> for RequestError {
    fn eq(&self, kind: &RequestErrorKind) -> bool {
        self.kind() == kind
    }
}

impl fmt::Debug for RequestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let About { kind, scope, holders } = &*self.0;
        f.debug_struct("RequestError")
            .field("kind", kind)
            .field("scope", scope)
            .field("holders", holders)
            .finish()
    }
}

impl fmt::Display for RequestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let About { kind, scope, holders } = &*self.0;
        let RequestErrorKind::TimedOut { after } = kind else {
            return write!(f, "no lock on '{scope}': {kind}");
        };
        match after.is_zero() {
            true => write!(f, "'{scope}' is not free")?,
            false => write!(f, "'{scope}' was not free within {after:?}")?,
        }
        for (index, holder) in holders.iter().enumerate() {
            write!(f, "{}{holder}", if index == 0 { ": held by " } else { ", " })?;
        }
        Ok(())
    }
}

impl Error for RequestError {}

/// The kinds of [`RequestError`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RequestErrorKind {
    /// The lock was not free within the time given.
    TimedOut {
        /// That time.
        after: Duration,
    },
    /// Another request stole the lock before this one had heard of getting it, or threw it out of the queue.
    Stolen {
        /// The thief.
        by: RequestId,
    },
    /// The lock was force-released before this request had heard of getting it.
    ForceReleased,
    /// The client was suspended, and somebody would have had to wait for it.
    Evicted,
    /// The request's turn came while its client was suspended, under the policy that releases at once.
    Suspended,
    /// The client was [ended](crate::Locks::end).
    ClientEnded,
    /// The client is suspended, by whoever serves it.
    ClientSuspended,
    /// Waiting would have closed a cycle of clients that wait for each other, and this lock space refuses that.
    Deadlock(Cycle),
    /// Only a shared request can overtake the queue.
    ExclusiveOvertake,
    /// The service has been out of reach for longer than anybody was to wait.
    Unreachable,
    /// The thread was to block until the service answers, and its runtime has no other that carries
    /// the connection.
    BlocksConnection,
    /// The service does not take the request.
    Refused(Refusal),
}

impl RequestErrorKind {
    /// The name of the DOMException that this is in JavaScript.
    pub fn dom_exception_name(&self) -> &'static str {
        match self {
            Self::TimedOut { .. } => "TimeoutError",
            Self::Stolen { .. }
            | Self::ForceReleased
            | Self::Evicted
            | Self::Suspended
            | Self::ClientEnded
            | Self::Deadlock(_) => "AbortError",
            Self::Unreachable => "NetworkError",
            Self::Refused(refusal) => refusal.dom_exception_name(),
            Self::ClientSuspended | Self::BlocksConnection => "InvalidStateError",
            Self::ExclusiveOvertake => "NotSupportedError",
        }
    }
}

impl From<Loss> for RequestErrorKind {
    fn from(loss: Loss) -> Self {
        match loss {
            Loss::Stolen { by } => Self::Stolen { by },
            Loss::ForceReleased => Self::ForceReleased,
            Loss::Evicted => Self::Evicted,
            Loss::Suspended => Self::Suspended,
            Loss::ClientEnded => Self::ClientEnded,
            Loss::LeaseLapsed | Loss::ServiceGone => Self::Unreachable,
        }
    }
}

impl From<navlocks_core::RequestError> for RequestErrorKind {
    fn from(error: navlocks_core::RequestError) -> Self {
        match error {
            navlocks_core::RequestError::UnknownClient => Self::ClientEnded,
            navlocks_core::RequestError::ClientSuspended => Self::ClientSuspended,
            navlocks_core::RequestError::ExclusiveOvertake => Self::ExclusiveOvertake,
        }
    }
}

impl fmt::Display for RequestErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TimedOut { after } => write!(f, "the lock was not free within {after:?}"),
            Self::Stolen { by } => write!(f, "request {by} stole the lock from this one"),
            Self::ForceReleased => {
                f.write_str("the lock was force-released before the request heard of it")
            }
            Self::Evicted => {
                f.write_str("the client was suspended, and somebody would have had to wait for it")
            }
            Self::Suspended => {
                f.write_str("the request's turn came while its client was suspended")
            }
            Self::ClientEnded => {
                f.write_str("the client was ended: make a new one to request locks")
            }
            Self::ClientSuspended => f.write_str("the client is suspended: resume it first"),
            Self::Deadlock(cycle) => write!(f, "waiting would close a deadlock: {cycle}"),
            Self::ExclusiveOvertake => f.write_str("only a shared request can overtake the queue"),
            Self::Unreachable => f.write_str(UNREACHABLE),
            Self::BlocksConnection => f.write_str(
                "a blocking request would block the runtime that carries the connection: await the request, or connect on a thread without a runtime",
            ),
            Self::Refused(refusal) => refusal.fmt(f),
        }
    }
}

const UNREACHABLE: &str = "the lock service cannot be reached: is it running?";

/// What a service does not do, in its own words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    message: Box<str>,
    dom_exception_name: &'static str,
}

impl Refusal {
    #[cfg(feature = "client")]
    pub(crate) fn new(message: Box<str>, dom_exception_name: &'static str) -> Self {
        Self { message, dom_exception_name }
    }

    /// The name of the DOMException that this is in JavaScript.
    pub fn dom_exception_name(&self) -> &'static str {
        self.dom_exception_name
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

/// Why a question was not answered.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum QueryError {
    /// The client was [ended](crate::Locks::end).
    ClientEnded,
    /// The service has been out of reach for longer than anybody was to wait.
    Unreachable,
    /// The service does not answer this.
    Refused(Refusal),
    /// The service answered something else: it is of another kind than this client.
    Misunderstood,
}

impl QueryError {
    /// The name of the DOMException that this is in JavaScript.
    pub fn dom_exception_name(&self) -> &'static str {
        match self {
            Self::ClientEnded => "InvalidStateError",
            Self::Unreachable => "NetworkError",
            Self::Refused(refusal) => refusal.dom_exception_name(),
            Self::Misunderstood => "OperationError",
        }
    }
}

impl fmt::Display for QueryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ClientEnded => {
                f.write_str("the client was ended: make a new one to ask about locks")
            }
            Self::Unreachable => f.write_str(UNREACHABLE),
            Self::Refused(refusal) => refusal.fmt(f),
            Self::Misunderstood => f.write_str(
                "the lock service answered something that was not asked: are both of one version?",
            ),
        }
    }
}

impl Error for QueryError {}
