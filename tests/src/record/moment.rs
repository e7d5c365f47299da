//! Moments of the one clock that all processes of a machine share.

use std::fmt;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

/// A moment, in nanoseconds since the machine started, independent of the wall clock.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Moment(pub u64);

/// Runs while the machine sleeps, as the leases of a service must.
#[cfg(target_os = "linux")]
const CLOCK: ClockId = ClockId::Boottime;
#[cfg(not(target_os = "linux"))]
const CLOCK: ClockId = ClockId::Monotonic;

impl Moment {
    /// Before all others.
    pub const START: Self = Self(0);
    /// After all others.
    pub const NEVER: Self = Self(u64::MAX);

    /// Returns the present moment.
    pub fn now() -> Self {
        let time = clock_gettime(CLOCK);
        let since_start =
            Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs() as u32);
        Self(nanoseconds(since_start))
    }

    /// Returns the moment this much later.
    #[must_use]
    pub fn after(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(nanoseconds(duration)))
    }
}

/// Returns the nanoseconds of a duration; centuries count as for ever.
fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (seconds, rest) = (self.0 / 1_000_000_000, self.0 % 1_000_000_000);
        write!(f, "{seconds}.{rest:09} s")
    }
}
