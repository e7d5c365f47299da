//! The events that the embedder has yet to poll.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use crate::{Event, FencingToken};

/// A queue of events. Most inputs cause one event at most, so the first has a place of its own.
#[derive(Debug, Default)]
pub(super) struct Events {
    first: Option<Event>,
    /// Empty while there is no first event.
    rest: VecDeque<Event>,
}

/// Above this many events, an empty queue drops its memory.
const IDLE_CAPACITY: usize = 1024;

impl Events {
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    #[inline]
    pub(super) fn push(&mut self, event: Event) {
        if self.first.is_none() {
            self.first = Some(event);
        } else {
            self.rest.push_back(event);
        }
    }

    /// Inserts the grant of a request that was just made: before all grants with larger tokens.
    pub(super) fn insert_grant(&mut self, event: Event, token: FencingToken) {
        let is_later = |event: &Event| match event {
            Event::Granted { token: other, .. } => *other > token,
            _ => false,
        };
        match self.first {
            None => self.first = Some(event),
            Some(first) if is_later(&first) => {
                self.rest.push_front(first);
                self.first = Some(event);
            }
            Some(_) => {
                let place = self.rest.iter().position(is_later).unwrap_or(self.rest.len());
                self.rest.insert(place, event);
            }
        }
    }

    #[inline]
    pub(super) fn pop(&mut self) -> Option<Event> {
        let event = self.first;
        self.drop_first();
        event
    }

    /// Returns the first event and keeps it.
    #[inline]
    pub(super) fn first(&self) -> Option<Event> {
        self.first
    }

    #[inline]
    pub(super) fn drop_first(&mut self) {
        self.first = None;
        if !self.rest.is_empty() {
            self.advance();
        }
    }

    #[inline(never)]
    fn advance(&mut self) {
        self.first = self.rest.pop_front();
        if self.rest.is_empty() && self.rest.capacity() > IDLE_CAPACITY {
            self.rest = VecDeque::new();
        }
    }

    /// Takes out the events that `is_wanted` selects, in order.
    pub(super) fn extract(&mut self, is_wanted: impl FnMut(&Event) -> bool) -> Vec<Event> {
        let all = self.first.take().into_iter().chain(core::mem::take(&mut self.rest));
        let (wanted, rest): (Vec<Event>, Vec<Event>) = all.partition(is_wanted);
        self.rest = rest.into();
        self.first = self.rest.pop_front();
        wanted
    }

    /// Returns how many bytes are allocated.
    pub(super) fn memory(&self) -> usize {
        self.rest.capacity() * size_of::<Event>()
    }
}
