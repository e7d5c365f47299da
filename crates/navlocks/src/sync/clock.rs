//! A monotonic clock that is cheap to read, for ages of locks and requests.

use std::time::Duration;

/// A moment, exact to a few milliseconds: people read ages of locks, and every request pays for it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment(coarsetime::Instant);

impl Moment {
    #[inline]
    pub(crate) fn now() -> Self {
        // `now` would also write to a cache line that all threads share.
        Self(coarsetime::Instant::now_without_cache_update())
    }

    pub(crate) fn age(self) -> Duration {
        self.0.elapsed().into()
    }
}
