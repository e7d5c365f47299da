//! Origin flags: the first draft, with timeouts instead of signals.

use std::time::Duration;

use navlocks_core::{Mode, Scope};

use super::auto::AutoLock;
use crate::error::RequestError;
use crate::locks::Locks;

/// The first name of a lock.
pub type Flag = AutoLock;

/// Waits for a flag: `requestFlag(scope, mode, {timeout})`.
///
/// ```
/// # navlocks::blocking::block_on(async {
/// # let locks = navlocks::Locks::new();
/// # async fn save() -> Result<(), std::io::Error> { Ok(()) }
/// use std::time::Duration;
/// use navlocks::{Mode, lineage};
///
/// let timeout = Some(Duration::from_millis(200));
/// let flag = lineage::request_flag(&locks, ["draft", "log"], Mode::Exclusive, timeout).await?;
/// flag.wait_until(save()).await?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # }).unwrap();
/// ```
///
/// # What changed since
/// The draft counted microseconds in its text and milliseconds in its examples; a [`Duration`] is
/// unambiguous. `None` waits for ever. Zero tries once, as the draft's open question suggested, and
/// never enters the queue. A flag that is granted just when its timeout is over is either granted
/// or not, never both.
///
/// # Errors
///
/// [`RequestErrorKind::TimedOut`](crate::RequestErrorKind::TimedOut) when the timeout is over, and
/// as awaiting a [`Request`](crate::Request).
///
/// # Cancel safety
///
/// Dropping the future while it waits leaves the queue at once.
pub async fn request_flag(
    locks: &Locks,
    scope: impl Into<Scope>,
    mode: Mode,
    timeout: Option<Duration>,
) -> Result<Flag, RequestError> {
    let request = locks.request(scope).mode(mode);
    let request = match timeout {
        Some(timeout) => request.timeout(timeout),
        None => request,
    };
    request.auto().await
}
