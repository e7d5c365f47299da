//! The sides of the cases with a limit. The peers' semaphores have no names: such a side is one
//! semaphore, and its users would need a map of them.

use std::sync::Arc;

use navlocks::{Lock, Locks};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::side::Side;

/// How many holders there may be: one fewer than a hand-over has tasks, so that one of them waits.
const LIMIT: u32 = 2;

pub(super) struct Limited(Locks);

impl Side for Limited {
    type Guard<'a> = Lock;

    fn new() -> Self {
        Self(Locks::new())
    }

    #[inline]
    async fn lock(&self, name: &str) -> Lock {
        match self.0.request(name).limit(LIMIT).await {
            Ok(lock) => lock,
            Err(error) => unreachable!("the client is never ended: {error}"),
        }
    }
}

pub(super) struct Tokio(Arc<Semaphore>);

impl Side for Tokio {
    type Guard<'a> = OwnedSemaphorePermit;

    fn new() -> Self {
        Self(Arc::new(Semaphore::new(LIMIT as usize)))
    }

    #[inline]
    async fn lock(&self, _name: &str) -> OwnedSemaphorePermit {
        let semaphore = Arc::clone(&self.0);
        semaphore.acquire_owned().await.expect("it is never closed")
    }
}

pub(super) struct AsyncLock(Arc<async_lock::Semaphore>);

impl Side for AsyncLock {
    type Guard<'a> = async_lock::SemaphoreGuardArc;

    fn new() -> Self {
        Self(Arc::new(async_lock::Semaphore::new(LIMIT as usize)))
    }

    #[inline]
    async fn lock(&self, _name: &str) -> async_lock::SemaphoreGuardArc {
        self.0.acquire_arc().await
    }
}
