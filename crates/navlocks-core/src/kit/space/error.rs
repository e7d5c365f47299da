//! Why a space refuses a request.

use core::fmt;

use crate::{Deadlock, RequestError};

/// Why a space refused a request. Nothing of it is left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SpaceError {
    /// The engine refused it.
    Request(RequestError),
    /// To wait would close a cycle: under [`Refuse`](crate::DeadlockPolicy::Refuse), or of a holder
    /// that would wait for itself.
    Deadlock(Deadlock),
}

impl From<RequestError> for SpaceError {
    fn from(error: RequestError) -> Self {
        Self::Request(error)
    }
}

impl fmt::Display for SpaceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Request(error) => error.fmt(f),
            Self::Deadlock(deadlock) => match deadlock.outer {
                Some(outer) => f.write_str(&Deadlock::describe_own(outer)),
                None => f.write_str(
                    "waiting for this would close a deadlock: release what you hold, then ask \
                     again",
                ),
            },
        }
    }
}

impl core::error::Error for SpaceError {}
