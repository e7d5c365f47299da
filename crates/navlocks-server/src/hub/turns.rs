//! Turns: what a tenant has left of its time on the thread, and its tasks that wait for more.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

/// The rest of a tenant's turn, and its tasks that wait for the next one.
#[derive(Debug, Default)]
pub(crate) struct Turns {
    /// Nanoseconds. Below zero after a step that took longer than a turn.
    left: Cell<i64>,
    waiting: RefCell<VecDeque<(Rc<Cell<TaskState>>, Waker)>>,
}

/// The state of a task in the turns of its tenant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum TaskState {
    #[default]
    Running,
    Waiting,
    /// It waited, and runs now.
    Called,
}

impl Turns {
    /// Waits until the tenant has a turn, in order of arrival.
    #[inline]
    pub(crate) fn poll_turn(&self, place: &Rc<Cell<TaskState>>, cx: &Context<'_>) -> Poll<()> {
        match place.get() {
            TaskState::Running if self.left.get() > 0 && self.waiting.borrow().is_empty() => {
                Poll::Ready(())
            }
            TaskState::Running => {
                place.set(TaskState::Waiting);
                self.waiting.borrow_mut().push_back((place.clone(), cx.waker().clone()));
                Poll::Pending
            }
            TaskState::Waiting => Poll::Pending,
            TaskState::Called => {
                place.set(TaskState::Running);
                Poll::Ready(())
            }
        }
    }

    /// Counts time that a task has used, and lets the next one run if there is time left.
    #[inline]
    pub(crate) fn used(&self, time: Duration) {
        let nanoseconds = i64::try_from(time.as_nanos()).unwrap_or(i64::MAX);
        self.left.set(self.left.get().saturating_sub(nanoseconds));
        if self.left.get() > 0 {
            self.call();
        }
    }

    /// Lets the task run that has waited longest.
    fn call(&self) {
        let next = self.waiting.borrow_mut().pop_front();
        if let Some((place, waker)) = next {
            place.set(TaskState::Called);
            waker.wake();
        }
    }

    /// Begins a turn. The rest of the last one does not add to it.
    pub(crate) fn begin(&self, turn: Duration) {
        let turn = i64::try_from(turn.as_nanos()).unwrap_or(i64::MAX);
        self.left.set(self.left.get().saturating_add(turn).min(turn));
        if self.left.get() > 0 {
            self.call();
        }
    }

    pub(crate) fn has_waiting(&self) -> bool {
        !self.waiting.borrow().is_empty()
    }
}
