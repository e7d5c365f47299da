//! The coming events, in order of time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::simulation::message::{ClientNo, Down, Up};

#[derive(Clone, Debug)]
pub(super) enum Event {
    /// A message reaches the service.
    Up { client: ClientNo, session: u32, message: Up },
    /// A message reaches a client.
    Down { client: ClientNo, session: u32, message: Down },
    /// A task of a client has waited long enough; its wait may be over already.
    Wake { client: ClientNo, task: usize, turn: u32 },
    /// The conductor acts.
    Deed,
    /// A client that was stopped for this time continues.
    Continue { client: ClientNo, stop: u32 },
    /// The lease of a client that was stopped for this time is over.
    Lapse { client: ClientNo, stop: u32 },
    /// The service notices that a client is dead.
    Buried(ClientNo),
    /// The service restarts.
    Restart,
}

/// Events at the same time happen in the order in which they were added.
#[derive(Debug)]
pub(crate) struct Events<E> {
    heap: BinaryHeap<Reverse<(u64, u64)>>,
    events: std::collections::HashMap<u64, E>,
    next: u64,
}

impl<E> Default for Events<E> {
    fn default() -> Self {
        Self { heap: BinaryHeap::new(), events: std::collections::HashMap::new(), next: 0 }
    }
}

impl<E> Events<E> {
    pub(crate) fn put(&mut self, at: u64, event: E) {
        self.heap.push(Reverse((at, self.next)));
        self.events.insert(self.next, event);
        self.next += 1;
    }

    pub(crate) fn take(&mut self) -> Option<(u64, E)> {
        let Reverse((at, number)) = self.heap.pop()?;
        self.events.remove(&number).map(|event| (at, event))
    }
}
