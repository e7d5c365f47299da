//! Why a lock was lost.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

use navlocks_core::RequestId;

/// The request that stole a lock. Two are equal if they are the same request.
///
/// Its `Display` is for people: over a service the thief's tag or program and its process, as far
/// as the service knows them, else the number of the request.
#[derive(Clone, Debug)]
pub struct Thief {
    request: RequestId,
    words: Option<Arc<str>>,
}

impl Thief {
    #[cfg(feature = "client")]
    pub(crate) fn described(self, words: Option<Box<str>>) -> Self {
        Self { words: words.map(Into::into), ..self }
    }

    /// Returns the number of the request.
    pub fn request_id(&self) -> RequestId {
        self.request
    }
}

impl From<RequestId> for Thief {
    fn from(request: RequestId) -> Self {
        Self { request, words: None }
    }
}

impl PartialEq for Thief {
    fn eq(&self, other: &Self) -> bool {
        self.request == other.request
    }
}

impl Eq for Thief {}

impl fmt::Display for Thief {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.words {
            Some(words) => f.write_str(words),
            None => write!(f, "request {}", self.request),
        }
    }
}

/// Why a held lock was taken away.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LossCause {
    /// Another request stole it.
    Stolen {
        /// The thief.
        by: Thief,
    },
    /// A name of its scope was force-released.
    ForceReleased,
    /// It was held for as long as [`max_hold`](crate::Request::max_hold) allows.
    HeldTooLong,
    /// Its client was suspended and another client needed the lock.
    Evicted,
    /// Its client was suspended, under the policy that releases at once.
    Suspended,
    /// Its client was [ended](crate::Locks::end_client).
    ClientEnded,
    /// The client could not reach the service in time to renew the lease, and another client may
    /// hold the lock.
    LeaseLapsed,
    /// The service that kept the lock is gone, or has ended the session.
    ServiceGone,
}

impl LossCause {
    /// Returns the name of the DOMException that JavaScript gets for this.
    pub fn dom_exception_name(&self) -> &'static str {
        "AbortError"
    }
}

impl From<navlocks_core::LossCause> for LossCause {
    fn from(cause: navlocks_core::LossCause) -> Self {
        match cause {
            navlocks_core::LossCause::Stolen { by } => Self::Stolen { by: by.into() },
            navlocks_core::LossCause::ForceReleased => Self::ForceReleased,
            navlocks_core::LossCause::HeldTooLong => Self::HeldTooLong,
            navlocks_core::LossCause::Evicted => Self::Evicted,
            navlocks_core::LossCause::Suspended => Self::Suspended,
        }
    }
}

impl fmt::Display for LossCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stolen { by } => write!(f, "the lock was stolen by {by}"),
            Self::ForceReleased => f.write_str("the lock was force-released"),
            Self::HeldTooLong => {
                f.write_str("the lock was held for as long as its maximum hold allows")
            }
            Self::Evicted => {
                f.write_str("the client was suspended, and another client needed the lock")
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

impl Error for LossCause {}
