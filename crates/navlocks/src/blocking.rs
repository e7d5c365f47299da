//! Blocking calls, for threads and programs without an async runtime.
//!
//! A request blocks with [`Request::lock_blocking`](crate::Request::lock_blocking); any other
//! future of this crate with [`block_on`].

use std::future::{Future, IntoFuture};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

/// Wakes a parked thread.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.0.unpark();
    }
}

/// Polls until the future is ready, at most for the given time. Returns whether it was ready.
#[cfg(feature = "client")]
pub(crate) fn wait_for(
    mut poll: impl FnMut(&Waker) -> Poll<()>,
    limit: std::time::Duration,
) -> bool {
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let until = std::time::Instant::now() + limit;
    while poll(&waker).is_pending() {
        let left = until.saturating_duration_since(std::time::Instant::now());
        if left.is_zero() {
            return false;
        }
        thread::park_timeout(left);
    }
    true
}

/// Runs a future to its end on this thread, which sleeps between polls. For threads and programs
/// without an async runtime.
///
/// ```
/// let locks = navlocks::Locks::new();
/// let lock = navlocks::blocking::block_on(locks.request("a").shared()).expect("it is free");
/// # drop(lock);
/// let snapshot = navlocks::blocking::block_on(locks.query())?;
/// assert!(snapshot.held.is_empty());
/// # Ok::<(), navlocks::QueryError>(())
/// ```
pub fn block_on<T>(future: impl IntoFuture<Output = T>) -> T {
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut cx = Context::from_waker(&waker);
    let mut future = pin!(future.into_future());
    loop {
        match future.as_mut().poll(&mut cx) {
            Poll::Ready(output) => return output,
            // A wakeup that came before this makes it return at once.
            Poll::Pending => thread::park(),
        }
    }
}
