//! Moments, which the driver of a session reads from its clock.

use std::time::Duration;

/// A moment in nanoseconds since any start. Its clock must run while the process is stopped and
/// the machine sleeps, and nothing may set it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment(u64);

impl Moment {
    /// Later than any other.
    pub const NEVER: Self = Self(u64::MAX);

    /// Makes a moment of the reading of a clock.
    pub const fn from_nanoseconds(nanoseconds: u64) -> Self {
        Self(nanoseconds)
    }

    /// Returns the reading of the clock.
    pub fn nanoseconds(self) -> u64 {
        self.0
    }

    /// Returns the moment that is later by this duration.
    pub fn saturating_add(self, duration: Duration) -> Self {
        let nanoseconds = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        Self(self.0.saturating_add(nanoseconds))
    }

    /// Returns the moment that is earlier by this duration.
    pub fn saturating_sub(self, duration: Duration) -> Self {
        let nanoseconds = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        Self(self.0.saturating_sub(nanoseconds))
    }

    /// Returns the time from the earlier moment to this one, or zero.
    pub fn saturating_since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}
