//! Events: what an input causes for other requests.

use core::fmt;

use crate::{ClientId, FencingToken, RequestId};

/// An effect of an input on another request than the one that it names, in engine order. Polled
/// from [`LockManager::poll_event`](crate::LockManager::poll_event).
///
/// The outcome of the named request itself is the return value of the input and never an event.
/// Exhaustive, so that an embedder must handle every kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A pending request now holds its lock.
    Granted {
        /// The request, and from now on the lock.
        request: RequestId,
        /// The client of the request.
        client: ClientId,
        /// Larger than every token granted before.
        token: FencingToken,
    },
    /// A held lock was taken away.
    Lost {
        /// The lock that was lost.
        request: RequestId,
        /// The client of the request.
        client: ClientId,
        /// Why it ended.
        cause: LossCause,
    },
    /// A pending request was taken out of the queue, not by its client.
    Aborted {
        /// The request that is over.
        request: RequestId,
        /// The client of the request.
        client: ClientId,
        /// Why it ended.
        cause: LossCause,
    },
    /// A suspended client blocked another one and lost all its requests. Sent at once, so that the
    /// embedder can discard the client; the client receives each loss when it is resumed.
    Evicted {
        /// The evicted client. It stays known, and suspended.
        client: ClientId,
    },
}

impl Event {
    /// Returns the client that the event is for.
    pub fn client(&self) -> ClientId {
        match *self {
            Self::Granted { client, .. }
            | Self::Lost { client, .. }
            | Self::Aborted { client, .. }
            | Self::Evicted { client } => client,
        }
    }
}

/// Why a lock was lost, or a pending request aborted by another client.
/// Exhaustive, so that an embedder must have a word for every cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LossCause {
    /// Another request stole it.
    Stolen {
        /// The thief.
        by: RequestId,
    },
    /// A name of its scope was force-released.
    ForceReleased,
    /// It was held for as long as its request allowed.
    HeldTooLong,
    /// Its client was suspended, and another client needed the lock or queried.
    Evicted,
    /// Its client was suspended under [`ReleaseAtOnce`](crate::SuspendPolicy::ReleaseAtOnce).
    Suspended,
}

impl fmt::Display for LossCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stolen { by } => write!(f, "stolen by {by}"),
            Self::ForceReleased => f.write_str("force-released"),
            Self::HeldTooLong => f.write_str("held for as long as it may be"),
            Self::Evicted => f.write_str("evicted while its client was suspended"),
            Self::Suspended => f.write_str("released because its client was suspended"),
        }
    }
}
