//! A request on its way into the engine.

use std::time::Instant;

use navlocks_core::kit::Space;
use navlocks_core::{ClientId, Name, Request, Wait};
use navlocks_wire::{ClientKey, QueuePlace, RequestKey, TraceParent};

use super::address::{Label, Served};
use crate::store::Slot;

/// Bytes of memory that a request takes besides its names and its tag: its session's books, and a
/// tag's.
const REQUEST_BYTES: usize = 160;

/// A request on its way into the engine.
#[derive(Debug)]
pub(crate) struct NewRequest {
    pub(crate) owner: ClientId,
    pub(crate) client: ClientKey,
    pub(crate) number: u64,
    pub(crate) request: Request,
    pub(crate) tag: Option<Name>,
    pub(crate) traceparent: Option<TraceParent>,
    pub(crate) since: Instant,
    /// Its place among all requests of the service.
    pub(crate) place: u64,
    /// Its client knows its place, or need not know it.
    pub(crate) is_placed: bool,
    /// Its slot in the registry.
    pub(crate) slot: Slot,
    /// The longest time for which it may hold its lock, in milliseconds; zero if there is none.
    pub(crate) max_hold_ms: u64,
    /// The request within which it was made.
    pub(crate) within: Option<RequestKey>,
}

impl NewRequest {
    pub(crate) fn key(&self) -> RequestKey {
        RequestKey::new(self.client.session, self.number)
    }

    /// Takes its texts, if it has some.
    #[inline]
    pub(super) fn take_label(&mut self) -> Option<Label> {
        let (tag, traceparent) = (self.tag.take(), self.traceparent.take());
        (tag.is_some() || traceparent.is_some()).then_some(Label { tag, traceparent })
    }

    /// Returns a copy of its texts, if it has some.
    pub(super) fn label(&self) -> Option<Label> {
        let label = || Label { tag: self.tag.clone(), traceparent: self.traceparent.clone() };
        (self.tag.is_some() || self.traceparent.is_some()).then(label)
    }

    /// Returns the bytes of its names and texts.
    #[inline]
    pub(crate) fn bytes(&self) -> usize {
        let names = self.request.scope.names().iter().map(Name::len_bytes);
        let trace = self.traceparent.as_ref().map_or(0, |trace| trace.as_str().len());
        names.sum::<usize>() + self.tag.as_ref().map_or(0, Name::len_bytes) + trace
    }

    /// Returns the place that its client is to be told.
    #[inline]
    pub(crate) fn queue_place(&self, epoch: Option<u64>) -> Option<QueuePlace> {
        self.place_in(epoch.filter(|_| !self.is_placed))
    }

    /// Returns its place, if there are places.
    pub(crate) fn place_in(&self, epoch: Option<u64>) -> Option<QueuePlace> {
        let epoch = epoch?;
        // Requests that overtake count down through all epochs, before all others.
        let overtakes = self.request.wait == Wait::Overtake;
        Some(QueuePlace { epoch: if overtakes { 0 } else { epoch }, number: self.place })
    }

    /// Returns the bytes of memory that it takes, in the engine and around it.
    #[inline]
    pub(crate) fn memory(&self) -> usize {
        let names = self.request.scope.names().len();
        REQUEST_BYTES + names * Space::<Served>::BYTES_PER_NAME + self.bytes()
    }
}
