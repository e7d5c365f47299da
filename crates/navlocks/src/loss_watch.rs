//! A watch for the loss of a lock that borrows nothing.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Weak;
use std::task::{Context, Poll};

use navlocks_core::RequestId;

use crate::backend::Watched;
use crate::error::Loss;
use crate::owner::Owner;

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
    type Output = Option<Loss>;

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
