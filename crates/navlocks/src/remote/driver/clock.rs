//! The clock of a session.

use navlocks_client::Moment;

/// Reads a clock that runs while the process is stopped and the machine sleeps, and that cannot be
/// set.
pub(crate) fn now() -> Moment {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    const CLOCK: rustix::time::ClockId = rustix::time::ClockId::Boottime;
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    const CLOCK: rustix::time::ClockId = rustix::time::ClockId::Monotonic;
    let time = rustix::time::clock_gettime(CLOCK);
    // This clock starts with the machine, and is never negative.
    Moment::from_nanoseconds((time.tv_sec as u64) * 1_000_000_000 + time.tv_nsec as u64)
}

/// Returns true if this moment has come. Reads no clock for a moment that never comes.
pub(crate) fn has_come(at: Moment) -> bool {
    at != Moment::NEVER && now() >= at
}
