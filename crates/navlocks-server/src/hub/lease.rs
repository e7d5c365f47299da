//! Leases: for how long a session lives on without a sign of life.

use std::time::{Duration, Instant};

use super::Hub;

impl Hub {
    /// The lease of a session, if it has one.
    pub(crate) fn lease(&self, number: u32) -> Option<Duration> {
        self.sessions.get(number).and_then(|session| session.lease)
    }

    /// Ends the session if its lease has lapsed; if not, says how much is left of it.
    pub(crate) fn check_lease(&mut self, number: u32, now: Instant) -> Option<Duration> {
        let left = self.sessions.get(number)?.lease_left(now)?;
        if left.is_zero() {
            self.lapse(number, now);
            return None;
        }
        Some(left)
    }

    /// Ends all sessions whose leases have lapsed.
    pub fn check_leases(&mut self, now: Instant) {
        let mut numbers = self.sessions.numbers();
        // For drivers that play an input again and want the same output.
        numbers.sort_unstable();
        for number in numbers {
            self.check_lease(number, now);
        }
    }

    /// Whether a session is still without a connection since this one broke.
    pub(crate) fn is_detached_since(&self, number: u32, connection: u64) -> bool {
        self.sessions
            .get(number)
            .is_some_and(|session| session.connection == connection && session.outbox.is_none())
    }
}
