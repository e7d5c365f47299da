//! The interface of a side to the cases: an exclusive lock on a name, held until its guard is
//! dropped.

use std::future::Future;

use navlocks::{Lock, Locks};

/// One side. The call converts the name, as its user would.
pub(super) trait Side: Send + Sync + 'static {
    type Guard<'a>: Send;

    fn new() -> Self;
    fn lock<'a>(&'a self, name: &str) -> impl Future<Output = Self::Guard<'a>> + Send;
}

impl Side for Locks {
    type Guard<'a> = Lock;

    fn new() -> Self {
        Self::new()
    }

    #[inline]
    async fn lock(&self, name: &str) -> Lock {
        match self.request(name).await {
            Ok(lock) => lock,
            Err(error) => unreachable!("the client is never ended: {error}"),
        }
    }
}
