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
/// The lock is released when a task awaits [`released`](AutoLock::released) and no work is left,
/// not a microtask after the grant. When some work fails, the rest is dropped with it; promises
/// would have gone on without the lock.
///
/// # Errors
///
/// As awaiting a [`Request`](crate::Request).
///
/// # Cancel safety
///
/// Dropping the future while it waits leaves the queue at once, as the draft's signal did. Once the
/// lock is granted, there is no future left to drop, and the signal had no effect either.
pub async fn request_lock(
    locks: &Locks,
    scope: impl Into<Scope>,
    mode: Mode,
) -> Result<AutoLock, RequestError> {
    locks.request(scope).mode(mode).auto().await
}
