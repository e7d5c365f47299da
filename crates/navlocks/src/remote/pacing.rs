//! Timers of the driver.

use std::pin::Pin;
use std::task::Context;
use std::time::Duration;

use tokio::time::{Sleep, sleep};

use super::addresses::Addresses;
use super::lease::Instant;
use super::own;

/// Wakes its task at a moment of the clock that leases are counted by.
pub(super) struct Alarm {
    timer: Pin<Box<Sleep>>,
    set_to: Instant,
}

impl Alarm {
    pub(super) fn new() -> Self {
        Self { timer: Box::pin(sleep(Duration::ZERO)), set_to: Instant::NEVER }
    }

    /// Wakes the task at this moment. If an earlier one was set before, the task is woken then, and
    /// sets it again: that is rare, and every message moves the moment.
    pub(super) fn set(&mut self, at: Instant, cx: &mut Context<'_>) {
        if at == Instant::NEVER {
            return;
        }
        if at < self.set_to {
            self.set_to = at;
            let left = at.saturating_since(Instant::now());
            self.timer.as_mut().reset(tokio::time::Instant::now() + left);
        }
        if self.timer.as_mut().poll(cx).is_ready() {
            // The timer has another clock, and may have fired too early.
            self.set_to = Instant::NEVER;
            cx.waker().wake_by_ref();
        }
    }
}

/// The pause before the next attempt: none at first, then longer and longer.
#[derive(Debug)]
pub(super) struct Pauses {
    next: Duration,
    max: Duration,
}

impl Pauses {
    const MIN: Duration = Duration::from_millis(10);
    const TAKEOVER_MAX: Duration = Duration::from_millis(200);

    /// Between attempts to reach a service. One on the same machine is started again within
    /// moments, and an attempt costs next to nothing.
    pub(super) fn between_dials(addresses: &Addresses) -> Self {
        let max = match addresses.socket() {
            Some(_) => Duration::from_millis(100),
            None => Duration::from_secs(1),
        };
        Self { next: Duration::ZERO, max }
    }

    pub(super) fn next(&mut self) -> Duration {
        let pause = self.next;
        self.next = (pause * 2).clamp(Self::MIN, self.max);
        pause
    }

    /// As `next`, for a client that the next owner of its locks waits for. The pause differs from
    /// client to client.
    pub(super) fn next_in_takeover(&mut self) -> Duration {
        let half = self.next().min(Self::TAKEOVER_MAX) / 2;
        half + own::jitter(half)
    }

    /// The next attempt is made at once.
    pub(super) fn restart(&mut self) {
        self.next = Duration::ZERO;
    }

    /// A connection was there for so long. One that broke off at once is no reason to hurry: then
    /// returns false.
    pub(super) fn after(&mut self, lasted: Duration) -> bool {
        let is_reason = lasted >= self.max;
        if is_reason {
            self.restart();
        }
        is_reason
    }
}

/// When a service is restarted: at once, and then after longer and longer pauses, so that a broken
/// one does not keep the machine busy.
#[derive(Debug)]
pub(super) struct Starts {
    pauses: Pauses,
    not_before: Instant,
}

impl Default for Starts {
    fn default() -> Self {
        let pauses = Pauses { next: Pauses::MIN, max: Duration::from_secs(2) };
        Self { pauses, not_before: Instant::from_raw(0) }
    }
}

impl Starts {
    pub(super) fn is_due(&self) -> bool {
        Instant::now() >= self.not_before
    }

    /// Notes an attempt.
    pub(super) fn done(&mut self) {
        self.not_before = Instant::now().saturating_add(self.pauses.next());
    }

    /// Notes how long a connection lasted.
    pub(super) fn after(&mut self, lasted: Duration) {
        if lasted >= self.pauses.max {
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
        let mut pauses = Pauses::between_dials(&here);
        let longest = (0..100).map(|_| pauses.next()).max();
        assert_eq!(longest, Some(Duration::from_millis(100)));
    }

    #[test]
    fn cluster_is_dialled_five_times_a_second_during_a_takeover() {
        let there = Addresses::parse("wss://a,b").unwrap();
        let mut pauses = Pauses::between_dials(&there);
        let longest = (0..100).map(|_| pauses.next_in_takeover()).max();
        let longest = longest.unwrap_or_default();
        assert!(longest <= Duration::from_millis(200), "{longest:?}");
        assert!(longest >= Duration::from_millis(100), "{longest:?}");
        assert_eq!(pauses.next(), Duration::from_secs(1));
    }
}
