//! The state of a connection to a service.

use std::fmt;

use crate::error::Refusal;

/// The state of the connection to a service, from [`Locks::connection`](crate::Locks::connection).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Connection {
    /// The lock space is in this process, and there is no connection.
    InProcess,
    /// The service can be reached.
    Up,
    /// The connection is lost and is being made again. Requests and questions wait.
    Down,
    /// The service has been out of reach for longer than the
    /// [limit](https://docs.rs/navlocks/latest/navlocks/struct.Connect.html#method.unreachable_after):
    /// requests and questions fail at once. The connection is still being made again.
    Unreachable,
    /// The service refuses this client, and is not tried again.
    Refused(Refusal),
    /// The connection was ended here, by [`Locks::disconnect`](crate::Locks::disconnect) or with
    /// the runtime that carried it.
    Closed,
}

impl Connection {
    /// Returns true if the state will never change.
    pub fn is_final(&self) -> bool {
        matches!(self, Self::InProcess | Self::Refused(_) | Self::Closed)
    }
}

impl fmt::Display for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InProcess => f.write_str("the locks are in this process"),
            Self::Up => f.write_str("the lock service is connected"),
            Self::Down => {
                f.write_str("the connection to the lock service is lost and being made again")
            }
            Self::Unreachable => f.write_str("the lock service has been out of reach for too long"),
            Self::Refused(refusal) => write!(f, "the lock service refuses this client: {refusal}"),
            Self::Closed => f.write_str("the connection to the lock service was ended"),
        }
    }
}
