//! Draining a client: no new requests, and a wakeup when the last one is over.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::task::Waker;

use crate::sync::wakes::wake_all;

/// Whether a client takes no new requests, and the tasks that wait for its last one.
///
/// The model checker does not see these: each request and each release loads the flag.
#[derive(Default)]
pub(crate) struct Drain {
    begun: AtomicBool,
    wakers: Mutex<Vec<Waker>>,
}

impl Drain {
    /// Refuses requests from now on.
    pub(crate) fn begin(&self) {
        self.begun.store(true, Ordering::SeqCst);
    }

    #[inline]
    pub(crate) fn has_begun(&self) -> bool {
        self.begun.load(Ordering::Relaxed)
    }

    /// Wakes the tasks that wait, after a request was over.
    #[cold]
    pub(crate) fn wake(&self) {
        let wakers = std::mem::take(&mut *self.lock());
        wake_all(wakers);
    }

    pub(crate) fn register(&self, waker: &Waker) {
        let mut wakers = self.lock();
        if !wakers.iter().any(|known| known.will_wake(waker)) {
            wakers.push(waker.clone());
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Waker>> {
        self.wakers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
