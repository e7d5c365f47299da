//! The events of a lock space: what happens to its requests, for subscribers.
//!
//! [`Locks::events`](crate::Locks::events) makes a stream of them.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

use navlocks_core::{ClientId, FencingToken, Mode, RequestId, Scope};

use crate::deadlock::Cycle;
use crate::error::LossCause;

/// Something that happened to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Event {
    /// The request, and once granted the lock.
    pub request: RequestId,
    /// The client of the request.
    pub client: ClientId,
    /// The names of the request.
    pub scope: Scope,
    /// Shared or exclusive.
    pub mode: Mode,
    /// The text given with [`tag`](crate::Request::tag).
    pub tag: Option<Arc<str>>,
    /// The text given with [`traceparent`](crate::Request::traceparent) through a service.
    pub traceparent: Option<Arc<str>>,
    /// The process of the client, where a service knows it. In process there is only one.
    pub pid: Option<u32>,
    /// The kind of the event.
    pub kind: EventKind,
}

/// The kinds of events. Each request begins with `Requested`; `Granted` comes once at most; exactly
/// one of the others but `Downgraded` and `Deadlock` is the last.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EventKind {
    /// The request was made.
    Requested,
    /// The request holds its lock.
    Granted(FencingToken),
    /// The request wanted the lock only if available, and it is not.
    Unavailable,
    /// The holder gave the lock the mode that this event has, which allows more holders.
    Downgraded,
    /// The client released the lock.
    Released,
    /// The client aborted the pending request: dropped, timed out, or refused for a deadlock.
    Withdrawn,
    /// The pending request was aborted, not by its client.
    Aborted(LossCause),
    /// The lock was lost.
    Lost(LossCause),
    /// The request is pending, and closes a cycle of clients that wait for each other.
    Deadlock(Cycle),
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { request, client, scope, mode, tag, pid, .. } = self;
        write!(f, "{request} of {client}")?;
        if let Some(tag) = tag {
            write!(f, " [{tag}]")?;
        }
        if let Some(pid) = pid {
            write!(f, " (pid {pid})")?;
        }
        write!(f, " ({mode} {scope}) ")?;
        match &self.kind {
            EventKind::Requested => f.write_str("requested"),
            EventKind::Granted(token) => write!(f, "granted with token {token}"),
            EventKind::Unavailable => f.write_str("unavailable"),
            EventKind::Downgraded => f.write_str("downgraded"),
            EventKind::Released => f.write_str("released"),
            EventKind::Withdrawn => f.write_str("withdrawn"),
            EventKind::Aborted(loss) => write!(f, "aborted: {loss}"),
            EventKind::Lost(loss) => write!(f, "lost: {loss}"),
            EventKind::Deadlock(cycle) => write!(f, "deadlocked: {cycle}"),
        }
    }
}

/// A place in a stream where events are missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Gap {
    /// The subscriber read too slowly, and its stream dropped the oldest events.
    Lagged {
        /// How many events are missing.
        missed: u64,
    },
    /// The connection to the service was lost. Events from this moment on may be missing, until the
    /// next one that is received.
    ConnectionLost,
    /// The service refused the subscription, because the lock space has too many. The stream ends.
    Refused,
}

impl fmt::Display for Gap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lagged { missed } => write!(
                f,
                "{missed} events were dropped: read the stream faster, or give it more room"
            ),
            Self::ConnectionLost => {
                f.write_str("the connection to the service was lost: events may be missing")
            }
            Self::Refused => f.write_str(
                "the service refused the subscription, which has too many: end other streams first",
            ),
        }
    }
}

impl Error for Gap {}
