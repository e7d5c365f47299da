//! The errors of requests and questions, and the causes of losses.

mod loss;

use std::error::Error;
use std::fmt;
use std::time::Duration;

use navlocks_core::{BadLimit, Scope};

use crate::deadlock::Cycle;
use crate::query::RequestInfo;
pub use loss::{LossCause, Thief};

/// Why a lock was not downgraded. Nothing has changed then.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DowngradeError {
    /// The lock was lost, with this cause.
    Lost(LossCause),
    /// The new mode allows fewer holders. Two holders that upgrade would wait for each other.
    Upgrade,
}

impl fmt::Display for DowngradeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lost(loss) => write!(f, "there is nothing to downgrade: {loss}"),
            Self::Upgrade => navlocks_core::DowngradeError::Upgrade.fmt(f),
        }
    }
}

impl Error for DowngradeError {}

/// Why a request failed: the kind of failure, and the names. Nothing of the request is left.
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
    holders: Vec<RequestInfo>,
    /// True if the service did not answer either when the request timed out.
    silent: bool,
}

impl RequestError {
    pub(crate) fn new(kind: RequestErrorKind, scope: Scope) -> Self {
        Self::with_holders(kind, scope, Some(Vec::new()))
    }

    pub(crate) fn with_holders(
        kind: RequestErrorKind,
        scope: Scope,
        holders: Option<Vec<RequestInfo>>,
    ) -> Self {
        let silent = holders.is_none();
        Self(Box::new(About { kind, scope, holders: holders.unwrap_or_default(), silent }))
    }

    /// Returns the kind of failure.
    pub fn kind(&self) -> &RequestErrorKind {
        &self.0.kind
    }

    /// Returns the kind of failure alone.
    pub fn into_kind(self) -> RequestErrorKind {
        self.0.kind
    }

    /// Returns the names of the request.
    pub fn scope(&self) -> &Scope {
        &self.0.scope
    }

    /// Returns the locks that a request which [timed out](RequestErrorKind::TimedOut) waited for,
    /// as far as they are known; a service describes the first sixteen. Empty for every other kind,
    /// and if the request waited for pending ones only.
    pub fn holders(&self) -> &[RequestInfo] {
        &self.0.holders
    }

    /// Returns the name of the DOMException that JavaScript gets for this.
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
        let About { kind, scope, holders, .. } = &*self.0;
        f.debug_struct("RequestError")
            .field("kind", kind)
            .field("scope", scope)
            .field("holders", holders)
            .finish()
    }
}

impl fmt::Display for RequestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let About { kind, scope, holders, silent } = &*self.0;
        let scope = short(scope);
        let RequestErrorKind::TimedOut { after } = kind else {
            return write!(f, "no lock on '{scope}': {kind}");
        };
        match (after.is_zero(), silent) {
            (true, _) => write!(f, "'{scope}' is not free")?,
            (false, false) => write!(f, "'{scope}' was not free within {after:?}")?,
            (false, true) => {
                write!(
                    f,
                    "no lock on '{scope}' within {after:?}: the lock service does not answer"
                )?;
            }
        }
        for (index, holder) in holders.iter().enumerate() {
            write!(f, "{}{holder}", if index == 0 { ": held by " } else { ", " })?;
        }
        Ok(())
    }
}

impl Error for RequestError {}

/// Returns the names of a request for a sentence; longer ones are cut.
fn short(scope: &Scope) -> String {
    const SHOWN_CHARS_MAX: usize = 100;
    let text = scope.to_string();
    match text.char_indices().nth(SHOWN_CHARS_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

/// The kinds of [`RequestError`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RequestErrorKind {
    /// The lock was not granted within the timeout, although its service could be reached.
    TimedOut {
        /// The timeout.
        after: Duration,
    },
    /// Another request stole the lock before this client received the grant, or aborted the pending
    /// request.
    Stolen {
        /// The thief.
        by: Thief,
    },
    /// The lock was force-released before this client received the grant.
    ForceReleased,
    /// The client was suspended, and another client would have had to wait for it.
    Evicted,
    /// The turn of the request came while its client was suspended, under the policy that releases
    /// at once.
    Suspended,
    /// The client was [ended](crate::Locks::end_client).
    ClientEnded,
    /// The client [drains](crate::Locks::drain), and takes no new requests.
    ClientDraining,
    /// The client is suspended by its embedder.
    ClientSuspended,
    /// Waiting would close a cycle of clients that wait for each other, and this lock space refuses
    /// that.
    Deadlock(Cycle),
    /// Only a shared request can overtake the queue.
    ExclusiveOvertake,
    /// The number of [`limit`](crate::Request::limit) is no limit.
    BadLimit(BadLimit),
    /// The lock may not be [held](crate::Request::max_hold) for this time at most.
    BadMaxHold(Duration),
    /// Before the future received the lock, it was held for as long as it may be.
    HeldTooLong,
    /// The service was out of reach when the timeout was over, or for longer than the
    /// `unreachable_after` of this client. A web server answers 503, where a lock that is held by
    /// another client ([`TimedOut`](Self::TimedOut)) is 409.
    Unreachable,
    /// The session ended before the answer to a steal, or the owner of the locks in a cluster did:
    /// whether the service has done it is unknown, and it is not requested again.
    OutcomeUnknown,
    /// The thread would block until the service answers, and no other thread of its runtime carries
    /// the connection.
    BlocksConnection,
    /// The service refuses the request.
    Refused(Refusal),
}

impl RequestErrorKind {
    /// Returns the name of the DOMException that JavaScript gets for this; a bad limit is a
    /// `TypeError` there.
    pub fn dom_exception_name(&self) -> &'static str {
        match self {
            Self::TimedOut { .. } => "TimeoutError",
            Self::Stolen { .. }
            | Self::ForceReleased
            | Self::HeldTooLong
            | Self::Evicted
            | Self::Suspended
            | Self::ClientEnded
            | Self::Deadlock(_) => "AbortError",
            Self::Unreachable | Self::OutcomeUnknown => "NetworkError",
            Self::Refused(refusal) => refusal.dom_exception_name(),
            Self::ClientDraining | Self::ClientSuspended | Self::BlocksConnection => {
                "InvalidStateError"
            }
            Self::ExclusiveOvertake => "NotSupportedError",
            Self::BadLimit(_) | Self::BadMaxHold(_) => "TypeError",
        }
    }
}

impl From<LossCause> for RequestErrorKind {
    fn from(loss: LossCause) -> Self {
        match loss {
            LossCause::Stolen { by } => Self::Stolen { by },
            LossCause::ForceReleased => Self::ForceReleased,
            LossCause::HeldTooLong => Self::HeldTooLong,
            LossCause::Evicted => Self::Evicted,
            LossCause::Suspended => Self::Suspended,
            LossCause::ClientEnded => Self::ClientEnded,
            LossCause::LeaseLapsed | LossCause::ServiceGone => Self::Unreachable,
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
            Self::Stolen { by } => write!(f, "{by} stole the lock from this one"),
            Self::ForceReleased => {
                f.write_str("the lock was force-released before the client received the grant")
            }
            Self::Evicted => {
                f.write_str("the client was suspended, and another client would have waited for it")
            }
            Self::Suspended => {
                f.write_str("the request's turn came while its client was suspended")
            }
            Self::ClientEnded => {
                f.write_str("the client was ended: make a new one to request locks")
            }
            Self::ClientDraining => f.write_str(
                "the client drains and takes no new requests: ask another process",
            ),
            Self::ClientSuspended => f.write_str("the client is suspended: resume it first"),
            Self::Deadlock(cycle) => write!(f, "waiting would close a deadlock: {cycle}"),
            Self::ExclusiveOvertake => f.write_str("only a shared request can overtake the queue"),
            Self::BadLimit(bad) => bad.fmt(f),
            Self::BadMaxHold(time) => write!(
                f,
                "{time:?} is no maximum hold: give one from 1 ms to 2^53 ms, or none",
            ),
            Self::HeldTooLong => LossCause::HeldTooLong.fmt(f),
            Self::Unreachable => f.write_str(UNREACHABLE),
            Self::OutcomeUnknown => f.write_str(OUTCOME_UNKNOWN),
            Self::BlocksConnection => f.write_str(
                "a blocking request would block the runtime that carries the connection: await the request, or connect on a thread without a runtime",
            ),
            Self::Refused(refusal) => refusal.fmt(f),
        }
    }
}

const UNREACHABLE: &str = "the lock service cannot be reached: is it running?";

const OUTCOME_UNKNOWN: &str = "the connection to the lock service broke before its answer, and the outcome is not known: query the locks before another attempt";

/// A refusal of a service, in the service's own text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    message: Box<str>,
    dom_exception_name: &'static str,
}

impl Refusal {
    pub(crate) fn new(message: Box<str>, dom_exception_name: &'static str) -> Self {
        Self { message, dom_exception_name }
    }

    /// Returns the name of the DOMException that JavaScript gets for this.
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
    /// The client was [ended](crate::Locks::end_client).
    ClientEnded,
    /// The service has been out of reach for longer than the `unreachable_after` of this client.
    Unreachable,
    /// The connection broke before the answer to a question that changes locks: whether the service
    /// has done it is not known, and it is not asked again.
    OutcomeUnknown,
    /// The service refuses the question.
    Refused(Refusal),
    /// The service sent an unexpected answer: it speaks another protocol than this client.
    Misunderstood,
}

impl QueryError {
    /// Returns the name of the DOMException that JavaScript gets for this.
    pub fn dom_exception_name(&self) -> &'static str {
        match self {
            Self::ClientEnded => "InvalidStateError",
            Self::Unreachable | Self::OutcomeUnknown => "NetworkError",
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
            Self::OutcomeUnknown => f.write_str(OUTCOME_UNKNOWN),
            Self::Refused(refusal) => refusal.fmt(f),
            Self::Misunderstood => f.write_str(
                "the lock service sent an unexpected answer: use the same version on both sides",
            ),
        }
    }
}

impl Error for QueryError {}
