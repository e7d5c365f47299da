//! Time that goes on while a machine sleeps.

use std::fmt;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// A point in time, comparable on one machine since its last start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment(Duration);

impl Moment {
    /// Later than every other moment.
    pub const MAX: Self = Self(Duration::MAX);
    /// Earlier than every other moment.
    pub const MIN: Self = Self(Duration::ZERO);

    /// The moment so long after the start of the clock.
    pub fn new(since_start: Duration) -> Self {
        Self(since_start)
    }

    /// The moment so much later.
    #[must_use]
    pub fn plus(self, time: Duration) -> Self {
        Self(self.0.saturating_add(time))
    }

    /// The time since an earlier moment; zero if it is later.
    pub fn since(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }

    /// The time since the start of the clock.
    pub fn since_start(self) -> Duration {
        self.0
    }
}

/// A source of moments. Tests have one that they move by hand.
pub trait Clock: fmt::Debug + Send + Sync {
    /// The present moment.
    fn now(&self) -> Moment;
}

/// The system's clock since its start, sleep included.
#[derive(Clone, Copy, Debug, Default)]
pub struct BootClock;

impl Clock for BootClock {
    fn now(&self) -> Moment {
        let time = clock_gettime(ClockId::Boottime);
        let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
        let nanos = u32::try_from(time.tv_nsec).unwrap_or_default();
        Moment(Duration::new(seconds, nanos))
    }
}

/// Belief lasts seven eighths of a lease, so that both sides never disagree about its end.
pub fn belief(lease: Duration) -> Duration {
    lease / 8 * 7
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boot_clock_does_not_go_back() {
        let earlier = BootClock.now();
        assert!(BootClock.now() >= earlier);
        assert!(earlier > Moment::MIN && earlier < Moment::MAX);
    }

    #[test]
    fn belief_ends_before_the_lease() {
        assert_eq!(belief(Duration::from_secs(8)), Duration::from_secs(7));
    }
}
