//! The timer of the driver.

use std::pin::Pin;
use std::task::Context;

use tokio::time::{Sleep, sleep};

use super::clock;
use navlocks_client::Moment;

/// Wakes its task at a moment of the clock that leases are counted by.
pub(crate) struct Alarm {
    /// Made in the runtime of its task.
    timer: Option<Pin<Box<Sleep>>>,
    set_to: Moment,
}

impl Alarm {
    pub(crate) fn new() -> Self {
        Self { timer: None, set_to: Moment::NEVER }
    }

    /// Wakes the task at this moment. If an earlier one was set before, the task is woken then, and
    /// sets it again: that is rare, and every message moves the moment.
    pub(crate) fn set(&mut self, at: Moment, cx: &mut Context<'_>) {
        if at == Moment::NEVER {
            return;
        }
        if at < self.set_to {
            self.set_to = at;
            let left = at.saturating_since(clock::now());
            match &mut self.timer {
                Some(timer) => timer.as_mut().reset(tokio::time::Instant::now() + left),
                None => self.timer = Some(Box::pin(sleep(left))),
            }
        }
        if self.timer.as_mut().is_some_and(|timer| timer.as_mut().poll(cx).is_ready()) {
            // The timer has another clock, and may have fired too early.
            self.set_to = Moment::NEVER;
            cx.waker().wake_by_ref();
        }
    }
}
