//! Locks that release themselves: the second draft.

use navlocks_core::{Mode, Scope};

use super::auto::AutoLock;
use crate::error::RequestError;
use crate::locks::Locks;

/// Waits for a lock that releases itself: `requestLock(scope, {mode})`.
///
/// ```
/// # navlocks::blocking::block_on(async {
/// # let locks = navlocks::Locks::new();
/// # async fn read() -> Result<(), std::io::Error> { Ok(()) }
/// use navlocks::{Mode, lineage};
///
/// let lock = lineage::request_lock(&locks, "resource", Mode::Shared).await?;
/// lock.wait_until(read()).await?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # }).unwrap();
/// ```
///
/// # What changed since
///
/// The lock is released when somebody awaits [`released`](AutoLock::released) and there is nothing
/// to wait for, and not a microtask after the grant. When one work fails, the others are dropped
/// with it; promises would have gone on without the lock.
///
/// # Errors
///
/// As awaiting a [`Request`](crate::Request).
///
/// # Cancel safety
///
/// Dropping the future while it waits leaves the queue at once. That is what the draft's signal
/// did; once the lock is granted there is no future left to drop, as the signal had no effect any
/// more.
pub async fn request_lock(
    locks: &Locks,
    scope: impl Into<Scope>,
    mode: Mode,
) -> Result<AutoLock, RequestError> {
    locks.request(scope).mode(mode).auto().await
}
