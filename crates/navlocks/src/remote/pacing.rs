//! When the driver does something although nothing has happened.

use std::pin::Pin;
use std::task::Context;
use std::time::Duration;

use tokio::time::{Sleep, sleep};

use super::lease::Instant;

/// Wakes its task at a moment of the clock that leases are counted by.
pub(super) struct Alarm {
    timer: Pin<Box<Sleep>>,
    set_to: Instant,
}

impl Alarm {
    pub(super) fn new() -> Self {
        Self { timer: Box::pin(sleep(Duration::ZERO)), set_to: Instant::NEVER }
    }

    /// Sees to it that the task is woken then, and not at an earlier moment that was set before.
    pub(super) fn set(&mut self, at: Instant, cx: &mut Context<'_>) {
        if at == Instant::NEVER {
            return;
        }
        if at != self.set_to {
            self.set_to = at;
            let left = at.saturating_since(Instant::now());
            self.timer.as_mut().reset(tokio::time::Instant::now() + left);
        }
        if self.timer.as_mut().poll(cx).is_ready() {
            // The timer's clock is another one, and may have been too early.
            self.set_to = Instant::NEVER;
            cx.waker().wake_by_ref();
        }
    }
}

/// How long to wait before the next attempt to reach the service: not at all at first, then longer and longer.
#[derive(Debug, Default)]
pub(super) struct Pauses {
    next: Duration,
}

impl Pauses {
    const MIN: Duration = Duration::from_millis(10);
    const MAX: Duration = Duration::from_secs(1);

    pub(super) fn next(&mut self) -> Duration {
        let pause = self.next;
        self.next = (pause * 2).clamp(Self::MIN, Self::MAX);
        pause
    }

    /// A connection was there for so long. One that broke off at once is no reason to hurry.
    pub(super) fn after(&mut self, lasted: Duration) {
        if lasted >= Self::MAX {
            *self = Self::default();
        }
    }
}
