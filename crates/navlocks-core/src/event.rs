//! What the engine tells: the outcome of requests, and what was taken from whom.

use core::fmt;

use crate::{ClientId, FencingToken, RequestId};

/// Something that happened, in the order it happened. Polled from
/// [`LockManager::poll_event`](crate::LockManager::poll_event).
///
/// A request ends its wait with exactly one of `Granted`, `Unavailable` and `Aborted`, unless it was
/// [answered](crate::LockManager::request_answer) by return, or its own [`abort`](crate::LockManager::abort) or its client's
/// end comes first; then there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The request now holds its lock.
    Granted {
        /// The request, and from now on the lock.
        request: RequestId,
        /// Whose it is.
        client: ClientId,
        /// Larger than every token granted before.
        token: FencingToken,
    },
    /// The request wanted the lock only if available, and it is not. Nothing of it is left.
    Unavailable {
        /// The request that is over.
        request: RequestId,
        /// Whose it was.
        client: ClientId,
    },
    /// A held lock was taken away.
    Lost {
        /// The lock that is no more.
        request: RequestId,
        /// Whose it was.
        client: ClientId,
        /// By what.
        cause: Cause,
    },
    /// A pending request was taken out of the queue by somebody else.
    Aborted {
        /// The request that is over.
        request: RequestId,
        /// Whose it was.
        client: ClientId,
        /// By what.
        cause: Cause,
    },
    /// A suspended client stood in somebody's way and lost all it had. Told at once, for an embedder that
    /// wants to discard the client; the client itself hears of each loss when it is resumed.
    Evicted {
        /// Who was evicted. It stays known, and suspended.
        client: ClientId,
    },
}

impl Event {
    /// Whom the event concerns.
    pub fn client(&self) -> ClientId {
        match *self {
            Self::Granted { client, .. }
            | Self::Unavailable { client, .. }
            | Self::Lost { client, .. }
            | Self::Aborted { client, .. }
            | Self::Evicted { client } => client,
        }
    }
}

/// Why a lock was lost or a pending request aborted by somebody else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// Another request stole it.
    Stolen {
        /// The thief.
        by: RequestId,
    },
    /// A name of its scope was force-released.
    ForceReleased,
    /// Its client was suspended and somebody else needed the lock, or queried.
    Evicted,
    /// Its client was suspended under [`ReleaseAtOnce`](crate::SuspendPolicy::ReleaseAtOnce).
    Suspended,
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stolen { by } => write!(f, "stolen by {by}"),
            Self::ForceReleased => f.write_str("force-released"),
            Self::Evicted => f.write_str("evicted while its client was suspended"),
            Self::Suspended => f.write_str("released because its client was suspended"),
        }
    }
}
