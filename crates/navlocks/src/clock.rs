//! Since when: a monotonic clock that is cheap to read.

use std::time::Duration;

/// A moment, a few milliseconds exact: people read how long a lock is held or waited for, and every
/// request pays for it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment(coarsetime::Instant);

impl Moment {
    #[inline]
    pub(crate) fn now() -> Self {
        // Not `now`, which also writes what it read to one place for all threads.
        Self(coarsetime::Instant::now_without_cache_update())
    }

    pub(crate) fn age(self) -> Duration {
        self.0.elapsed().into()
    }
}
