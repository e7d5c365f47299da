//! The fencing tokens that the owner of a slot has reserved.

use std::rc::Rc;

use crate::cluster::{Change, ChangeNumber, Gate, Registry};

/// The reservations of a slot. They are written in the background, long before they are needed.
#[derive(Debug)]
pub(super) struct SlotTokens {
    registry: Rc<dyn Registry>,
    gate: Rc<Gate>,
    /// A reservation that is not durable yet, and how far it goes.
    reserving: Option<(ChangeNumber, u64)>,
}

impl SlotTokens {
    /// Writes the first reservation. The end of grace depends on it, and every grant on that.
    pub(super) fn new(registry: Rc<dyn Registry>, gate: Rc<Gate>, upto: u64) -> Self {
        registry.write(Change::Reserve(upto));
        Self { registry, gate, reserving: None }
    }

    /// Reserves tokens up to here, once. Returns how far they are reserved if that has changed.
    /// With `must_wait` every later frame waits until they are.
    pub(super) fn reserve(&mut self, upto: u64, must_wait: bool) -> Option<u64> {
        let (change, upto) = *self
            .reserving
            .get_or_insert_with(|| (self.registry.write(Change::Reserve(upto)), upto));
        if self.gate.is_durable(change) {
            self.reserving = None;
            return Some(upto);
        }
        if must_wait {
            self.gate.hold_until(change);
        }
        None
    }
}
