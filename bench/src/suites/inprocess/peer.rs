//! The peers: two crates, and common hand-written code around a concurrent map.

use std::sync::Arc;

use dashmap::DashMap;
use keyed_lock::r#async::{Guard as KeyedGuard, KeyedLock};
use lockable::LockPool;
use tokio::sync::{OwnedRwLockWriteGuard, RwLock};

use super::side::Side;

pub(super) type Lockable = LockPool<String>;

impl Side for Lockable {
    type Guard<'a> = <Self as lockable::Lockable<String, ()>>::Guard<'a>;

    fn new() -> Self {
        Self::new()
    }

    #[inline]
    async fn lock<'a>(&'a self, name: &str) -> Self::Guard<'a> {
        self.async_lock(name.to_string()).await
    }
}

pub(super) type Keyed = KeyedLock<String>;

impl Side for Keyed {
    type Guard<'a> = KeyedGuard<'a, String>;

    fn new() -> Self {
        Self::new()
    }

    #[inline]
    async fn lock<'a>(&'a self, name: &str) -> KeyedGuard<'a, String> {
        self.lock(name.to_string()).await
    }
}

type Map = DashMap<String, Arc<RwLock<()>>>;

/// A map of locks that keeps every name: [`Clean`] without the cleaning.
pub(super) struct Leak(Map);

impl Side for Leak {
    type Guard<'a> = OwnedRwLockWriteGuard<()>;

    fn new() -> Self {
        Self(Map::new())
    }

    #[inline]
    async fn lock(&self, name: &str) -> OwnedRwLockWriteGuard<()> {
        let lock = Arc::clone(&self.0.entry(name.to_string()).or_default());
        lock.write_owned().await
    }
}

/// The same for names that are known already, as almost all are if none is dropped: it reads before
/// it inserts.
pub(super) struct LeakKnown(Leak);

impl Side for LeakKnown {
    type Guard<'a> = OwnedRwLockWriteGuard<()>;

    fn new() -> Self {
        Self(Leak::new())
    }

    #[inline]
    async fn lock(&self, name: &str) -> OwnedRwLockWriteGuard<()> {
        let known = self.0.0.get(name).map(|lock| Arc::clone(&lock));
        match known {
            Some(lock) => lock.write_owned().await,
            None => self.0.lock(name).await,
        }
    }
}

/// A map of locks that drops a name with its last user.
pub(super) struct Clean(Map);

/// Fields are dropped in this order: the share of the lock goes before the user.
pub(super) struct CleanGuard<'a> {
    _guard: OwnedRwLockWriteGuard<()>,
    _user: User<'a>,
}

/// A holder of the lock of a name, or a waiter.
struct User<'a> {
    map: &'a Map,
    name: String,
}

impl Drop for User<'_> {
    #[inline]
    fn drop(&mut self) {
        // Shares are only taken under the lock of the shard, which is held here. If the map has the
        // only share, the lock is unused.
        self.map.remove_if(&self.name, |_, lock| Arc::strong_count(lock) == 1);
    }
}

impl Side for Clean {
    type Guard<'a> = CleanGuard<'a>;

    fn new() -> Self {
        Self(Map::new())
    }

    #[inline]
    async fn lock<'a>(&'a self, name: &str) -> CleanGuard<'a> {
        // Before the wait, so that cancellation cleans up as well.
        let user = User { map: &self.0, name: name.to_string() };
        let lock = Arc::clone(&self.0.entry(user.name.clone()).or_default());
        CleanGuard { _guard: lock.write_owned().await, _user: user }
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future as _;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use super::*;

    #[test]
    fn last_user_of_a_name_removes_it() {
        let side = Clean::new();
        let mut cx = Context::from_waker(Waker::noop());
        let mut first = pin!(side.lock("a"));
        let Poll::Ready(held) = first.as_mut().poll(&mut cx) else { panic!("the name is free") };
        {
            let mut waiting = pin!(side.lock("a"));
            assert!(waiting.as_mut().poll(&mut cx).is_pending());
            drop(held);
            assert_eq!(side.0.len(), 1, "a task waits");
        }
        assert!(side.0.is_empty(), "the one who waited gave up");
    }
}
