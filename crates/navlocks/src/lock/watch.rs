//! Watches that borrow nothing, for tasks of their own.

use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};

use navlocks_core::RequestId;

use crate::backend::Watched;
use crate::connection::Connection;
use crate::error::LossCause;
use crate::owner::{Client, Owner};

/// Resolves when a lock is taken away, with the cause; with `None` once its guard is released or
/// dropped. Made by [`Lock::watch_loss`](crate::Lock::watch_loss).
///
/// It borrows nothing, so it can be spawned and sent. It keeps neither the lock nor its client.
///
/// # Cancel safety
///
/// Dropping the future and asking again loses nothing.
#[must_use = "futures do nothing until they are awaited"]
pub struct LossWatch {
    owner: Weak<Owner>,
    lock: RequestId,
    /// The number of the watch, once it is registered.
    watch: Option<u64>,
}

impl LossWatch {
    pub(crate) fn new(owner: Weak<Owner>, lock: RequestId) -> Self {
        Self { owner, lock, watch: None }
    }
}

impl Future for LossWatch {
    type Output = Option<LossCause>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Some(owner) = self.owner.upgrade() else { return Poll::Ready(None) };
        let lock = self.lock;
        let polled = owner.backend.poll_watch(lock, Watched::Loss, &mut self.watch, cx.waker());
        polled.map(Result::err)
    }
}

impl Clone for LossWatch {
    fn clone(&self) -> Self {
        Self::new(self.owner.clone(), self.lock)
    }
}

impl Drop for LossWatch {
    fn drop(&mut self) {
        if let (Some(watch), Some(owner)) = (self.watch, self.owner.upgrade()) {
            owner.backend.unwatch(self.lock, watch);
        }
    }
}

impl fmt::Debug for LossWatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LossWatch").field("lock", &self.lock).finish_non_exhaustive()
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
