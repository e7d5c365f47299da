//! The pauses between attempts to reach or to start a service.

use std::time::Duration;

use crate::addresses::Addresses;
use crate::moment::Moment;

/// The pause before the next attempt: none at first, then longer and longer.
#[derive(Debug)]
pub struct Backoff {
    next: Duration,
    max: Duration,
}

impl Backoff {
    const MIN: Duration = Duration::from_millis(10);
    const TAKEOVER_MAX: Duration = Duration::from_millis(200);

    /// Between attempts to reach a service. One on the same machine is started again within
    /// moments, and an attempt costs next to nothing.
    pub fn between_dials(addresses: &Addresses) -> Self {
        let max = match addresses.socket() {
            Some(_) => Duration::from_millis(100),
            None => Duration::from_secs(1),
        };
        Self { next: Duration::ZERO, max }
    }

    /// Returns the pause before the next attempt.
    pub fn next_pause(&mut self) -> Duration {
        let pause = self.next;
        self.next = (pause * 2).clamp(Self::MIN, self.max);
        pause
    }

    /// Returns the pause of a client that the next owner of its locks waits for: shorter, and
    /// different from client to client.
    pub fn next_in_takeover(&mut self, random: u64) -> Duration {
        let half = self.next_pause().min(Self::TAKEOVER_MAX) / 2;
        half + jitter(half, random)
    }

    /// The next attempt is made at once.
    pub fn restart(&mut self) {
        self.next = Duration::ZERO;
    }

    /// A connection was there for so long. One that broke off at once is no reason to hurry: then
    /// returns false.
    pub fn after(&mut self, lasted: Duration) -> bool {
        let is_reason = lasted >= self.max;
        if is_reason {
            self.restart();
        }
        is_reason
    }
}

/// Returns a time up to `max`, by a random number.
pub fn jitter(max: Duration, random: u64) -> Duration {
    let share = random >> 32;
    Duration::from_nanos((max.as_nanos() as u64 >> 8).saturating_mul(share) >> 24)
}

/// Numbers that look random, from one that is: each follows from the one before.
#[derive(Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns the next number, by the generator splitmix64.
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

/// When a service is restarted: at once, and then after longer and longer pauses, so that a broken
/// one does not keep the machine busy.
#[derive(Debug)]
pub(crate) struct Starts {
    backoff: Backoff,
    not_before: Moment,
}

impl Default for Starts {
    fn default() -> Self {
        let backoff = Backoff { next: Backoff::MIN, max: Duration::from_secs(2) };
        Self { backoff, not_before: Moment::from_nanoseconds(0) }
    }
}

impl Starts {
    /// Returns true if the pause since the last attempt is over.
    pub(crate) fn is_due(&self, now: Moment) -> bool {
        now >= self.not_before
    }

    /// Notes an attempt.
    pub(crate) fn done(&mut self, now: Moment) {
        self.not_before = now.saturating_add(self.backoff.next_pause());
    }

    /// Notes how long a connection lasted.
    pub(crate) fn after(&mut self, lasted: Duration) {
        if lasted >= self.backoff.max {
            *self = Self::default();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::url::Url;
    use super::*;

    #[test]
    fn service_on_the_same_machine_is_dialled_ten_times_a_second() {
        let here = Addresses::one(Url::Unix("/nowhere".into()));
        let mut backoff = Backoff::between_dials(&here);
        let longest = (0..100).map(|_| backoff.next_pause()).max();
        assert_eq!(longest, Some(Duration::from_millis(100)));
    }

    #[test]
    fn cluster_is_dialled_five_times_a_second_during_a_takeover() {
        let there = Addresses::parse("wss://a,b").unwrap();
        let mut backoff = Backoff::between_dials(&there);
        let longest = (0..100).map(|n| backoff.next_in_takeover(n << 58 | n << 52)).max();
        let longest = longest.unwrap_or_default();
        assert!(longest <= Duration::from_millis(200), "{longest:?}");
        assert!(longest >= Duration::from_millis(100), "{longest:?}");
        assert_eq!(backoff.next_pause(), Duration::from_secs(1));
    }
}
