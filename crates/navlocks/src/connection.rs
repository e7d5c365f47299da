//! The state of a connection to a service.

use std::fmt;
use std::future::poll_fn;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};

use crate::error::Refusal;
use crate::owner::Client;

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
    /// [patience](https://docs.rs/navlocks/latest/navlocks/struct.Connect.html#method.patience):
    /// requests and questions fail at once. The connection is still being made again.
    Unreachable,
    /// The service refuses this client, and is not tried again.
    Refused(Refusal),
    /// The connection was ended here, by [`Locks::disconnect`](crate::Locks::disconnect) or with the
    /// runtime that carried it.
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

/// Changes of a connection, from [`Locks::watch_connection`](crate::Locks::watch_connection). It
/// borrows nothing and keeps no connection alive.
pub struct ConnectionWatch {
    client: Weak<Client>,
    /// How many changes were received.
    changes: u64,
    over: bool,
}

impl ConnectionWatch {
    pub(crate) fn new(client: &Arc<Client>) -> Self {
        let (now, changes) = client.backend.connection();
        Self { client: Arc::downgrade(client), changes, over: now.is_final() }
    }

    /// Waits for the next change and returns the state after it: `None` when no change can come any
    /// more. A connection that was lost and made again since the last call is one change.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses no change.
    pub async fn changed(&mut self) -> Option<Connection> {
        poll_fn(|cx| self.poll(cx)).await
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Connection>> {
        let client = self.client.upgrade().filter(|_| !self.over);
        let Some(client) = client else { return Poll::Ready(None) };
        client.backend.watch_connection(self.changes, cx.waker());
        let (now, changes) = client.backend.connection();
        if changes == self.changes {
            return Poll::Pending;
        }
        (self.changes, self.over) = (changes, now.is_final());
        Poll::Ready(Some(now))
    }
}

impl fmt::Debug for ConnectionWatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConnectionWatch").field("changes", &self.changes).finish_non_exhaustive()
    }
}
