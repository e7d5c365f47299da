//! `navigator.locks.acquire`: the third draft, one name and a callback.

use navlocks_core::{Mode, Name};

use crate::error::{QueryError, RequestError};
use crate::lock::Lock;
use crate::locks::Locks;

/// Options of [`acquire`]. By default exclusive, and queued.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AcquireOptions {
    /// Shared or exclusive.
    pub mode: Mode,
    /// Runs the work without the lock when it is not available.
    pub if_available: bool,
    /// Steals the lock from its holders, and aborts all pending requests for it.
    pub steal: bool,
}

/// Runs `work` under the lock and returns its result: `navigator.locks.acquire(name, options,
/// callback)`.
///
/// The work gets `None` when the lock was requested only [if
/// available](AcquireOptions::if_available) and is not.
///
/// ```
/// # navlocks::blocking::block_on(async {
/// # let locks = navlocks::Locks::new();
/// use navlocks::{Mode, lineage};
///
/// let options = lineage::AcquireOptions { mode: Mode::Shared, ..Default::default() };
/// let sum = lineage::acquire(&locks, "till", options, async |lock| {
///     assert!(lock.is_some());
///     1 + 2
/// });
/// assert_eq!(sum.await?, 3);
/// # Ok::<(), navlocks::RequestError>(())
/// # }).unwrap();
/// ```
///
/// # What changed since
///
/// - `steal` was true by default, by a mistake in the draft. Here it is not.
/// - A steal still aborts pending requests, with
///   [`RequestErrorKind::Stolen`](crate::RequestErrorKind::Stolen). Today's
///   [`steal`](crate::Request::steal) leaves them in the queue. No options exclude each other: a
///   steal is always available, and may be shared.
/// - Work whose lock is stolen continues, and [`Lock::lost`] reports the loss. The draft rejected
///   the promise meanwhile.
/// - The draft's signal, after the grant, rejected the promise while the callback went on under the
///   lock. Here a caller can drop the future, which ends the work and releases the lock, or stop
///   polling and keep it, which keeps the lock held. Work never continues without being polled.
///
/// # Errors
///
/// As awaiting a [`Request`](crate::Request); the work has not begun then.
///
/// # Cancel safety
///
/// Dropping the future while it waits leaves the queue at once, and later requests are granted.
/// Dropping it later drops the work and releases the lock.
pub async fn acquire<T>(
    locks: &Locks,
    name: impl Into<Name>,
    options: AcquireOptions,
    work: impl AsyncFnOnce(Option<&Lock>) -> T,
) -> Result<T, RequestError> {
    let request = locks.request(name.into()).mode(options.mode);
    let lock = if options.steal {
        Some(request.steal_all().await?)
    } else if options.if_available {
        request.if_available().await?
    } else {
        Some(request.await?)
    };
    Ok(work(lock.as_ref()).await)
}

/// Takes away all locks held on a name, in one step, and returns how many:
/// `navigator.locks.forceRelease(name)`.
///
/// ```
/// # navlocks::blocking::block_on(async {
/// # let locks = navlocks::Locks::new();
/// use navlocks::{LossCause, lineage};
///
/// let stuck = locks.request("printer").await?;
/// assert_eq!(lineage::force_release(&locks, "printer").await?, 1);
/// assert_eq!(stuck.loss(), Some(LossCause::ForceReleased));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # }).unwrap();
/// ```
///
/// # What changed since
///
/// The draft had lost its algorithm and did not define how holders are informed. Here they receive
/// the loss, and the queue is processed.
///
/// # Errors
///
/// [`QueryError::ClientEnded`] when this client was ended.
pub async fn force_release(locks: &Locks, name: impl Into<Name>) -> Result<usize, QueryError> {
    locks.force_release(name).await
}
