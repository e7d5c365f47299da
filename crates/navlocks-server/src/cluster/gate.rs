//! The gate of a slot: frames pass when every change that they depend on is durable, and while
//! the node may believe that it owns the slot.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use tokio::sync::Notify;

use super::registry::{ChangeNumber, Registry};

/// The gate of one slot, for its owner during one epoch.
#[derive(Debug)]
pub(crate) struct Gate {
    registry: Rc<dyn Registry>,
    /// Frames that are sent from now on depend on all changes up to this one.
    barrier: Cell<ChangeNumber>,
    /// Tasks with frames that may not pass yet, by the tickets of their outboxes.
    waiting: RefCell<HashMap<Ticket, Waker>>,
    /// Told when the first of them begins to wait.
    arrival: Notify,
    last_ticket: Cell<u64>,
    /// The last change that ended a session.
    last_end: Cell<ChangeNumber>,
}

/// The name of an outbox at a gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Ticket(u64);

impl Gate {
    pub(crate) fn new(registry: Rc<dyn Registry>) -> Self {
        Self {
            registry,
            barrier: Cell::default(),
            waiting: RefCell::default(),
            arrival: Notify::new(),
            last_ticket: Cell::default(),
            last_end: Cell::default(),
        }
    }

    pub(crate) fn ticket(&self) -> Ticket {
        self.last_ticket.set(self.last_ticket.get() + 1);
        Ticket(self.last_ticket.get())
    }

    /// Lets every later frame wait until this change is durable.
    pub(crate) fn hold_until(&self, change: ChangeNumber) {
        self.barrier.set(self.barrier.get().max(change));
    }

    /// Notes the change that ends a session.
    pub(crate) fn note_end(&self, change: ChangeNumber) {
        self.last_end.set(change);
    }

    /// Returns the last change that ended a session.
    pub(crate) fn last_end(&self) -> ChangeNumber {
        self.last_end.get()
    }

    /// Waits until this change is durable. Returns false if the ownership ends before.
    pub(crate) fn poll_durable(
        &self,
        change: ChangeNumber,
        ticket: Ticket,
        cx: &Context<'_>,
    ) -> Poll<bool> {
        if self.is_durable(change) || self.registry.is_over() {
            return Poll::Ready(self.is_durable(change));
        }
        self.add_waiting(ticket, cx.waker());
        Poll::Pending
    }

    /// Returns the change that a frame depends on which is sent now.
    #[inline]
    pub(crate) fn barrier(&self) -> ChangeNumber {
        self.barrier.get()
    }

    /// Returns true if all changes up to this one are durable.
    #[inline]
    pub(crate) fn is_durable(&self, change: ChangeNumber) -> bool {
        change <= self.registry.confirmed()
    }

    /// Returns true while the node may send grants, welcomes and pongs.
    #[inline]
    pub(crate) fn may_send(&self) -> bool {
        self.registry.may_send()
    }

    /// Wakes a task at the next [`open`](Self::open).
    pub(crate) fn add_waiting(&self, ticket: Ticket, waker: &Waker) {
        let mut waiting = self.waiting.borrow_mut();
        if waiting.is_empty() {
            self.arrival.notify_one();
        }
        waiting.insert(ticket, waker.clone());
    }

    /// Waits until frames wait, unless some have begun to since the last call.
    pub(crate) async fn arrival(&self) {
        self.arrival.notified().await;
    }

    /// Returns true if frames wait.
    pub(crate) fn has_waiting(&self) -> bool {
        !self.waiting.borrow().is_empty()
    }

    /// Lets the tasks that wait look again.
    pub(crate) fn open(&self) {
        self.waiting.take().into_values().for_each(Waker::wake);
    }
}
