//! Notes: what an embedder attached to each live request, and since when it is pending or held.

use alloc::vec::Vec;
use core::fmt;

use super::Embedder;
use super::ids::IdMap;
use crate::RequestId;
use crate::id::{Index, Shard};

/// The notes of a [`Space`](super::Space), by request.
pub struct Notes<E: Embedder> {
    /// By the slot of the request in its shard.
    slots: Vec<Noted<E>>,
    shard: Shard,
    /// The notes of suspended clients: their requests may be over, and their slots reused, before
    /// their last notices are handled.
    aside: IdMap<Noted<E>>,
}

struct Noted<E: Embedder> {
    note: E::Note,
    /// When the request was made, and once held when it was granted.
    since: E::Time,
}

/// Above this many slots, the notes of an idle space drop their memory.
const IDLE_CAPACITY: usize = 1024;

impl<E: Embedder> Notes<E> {
    pub(super) const BYTES_PER_NAME: usize = size_of::<Noted<E>>();

    pub(super) fn new(shard: Shard) -> Self {
        Self { slots: Vec::new(), shard, aside: IdMap::default() }
    }

    /// Returns the note of a live request, or of one whose last notice is being handled.
    #[inline]
    pub fn get(&self, id: RequestId) -> Option<&E::Note> {
        self.noted(id).map(|noted| &noted.note)
    }

    /// Returns the same, to change it.
    #[inline]
    pub fn get_mut(&mut self, id: RequestId) -> Option<&mut E::Note> {
        self.noted_mut(id).map(|noted| &mut noted.note)
    }

    /// Returns when a live request was made, or once held when it was granted.
    ///
    /// # Panics
    ///
    /// When no request ever had this id.
    #[inline]
    pub fn since(&self, id: RequestId) -> E::Time {
        match self.noted(id) {
            Some(noted) => noted.since,
            None => panic!("{id} was never requested here"),
        }
    }

    #[inline]
    fn noted(&self, id: RequestId) -> Option<&Noted<E>> {
        if !self.aside.is_empty()
            && let Some(noted) = self.aside.get(&id)
        {
            return Some(noted);
        }
        self.slots.get(self.shard.own(id.slot()))
    }

    #[inline]
    fn noted_mut(&mut self, id: RequestId) -> Option<&mut Noted<E>> {
        if !self.aside.is_empty()
            && let Some(noted) = self.aside.get_mut(&id)
        {
            return Some(noted);
        }
        self.slots.get_mut(self.shard.own(id.slot()))
    }

    /// Keeps the note of a request of a client that is suspended apart from its slot.
    pub(super) fn set_aside(&mut self, id: RequestId) {
        if let Some(noted) = self.slots.get_mut(self.shard.own(id.slot())) {
            let note = core::mem::take(&mut noted.note);
            self.aside.insert(id, Noted { note, since: noted.since });
        }
    }

    /// Puts the note of a live request back into its slot, or drops it if the request is over.
    pub(super) fn put_back(&mut self, id: RequestId, live: bool) {
        if let Some(noted) = self.aside.remove(&id)
            && live
        {
            self.attach(id, noted.note, noted.since);
        }
    }

    #[inline]
    pub(super) fn attach(&mut self, id: RequestId, note: E::Note, now: E::Time) {
        let slot = self.shard.own(id.slot());
        if slot >= self.slots.len() {
            self.make_room(slot + 1, now);
        }
        let noted = &mut self.slots[slot];
        (noted.note, noted.since) = (note, now);
    }

    /// Marks a request as granted. Returns when it was made.
    #[inline]
    pub(super) fn grant(&mut self, id: RequestId, now: E::Time) -> E::Time {
        match self.noted_mut(id) {
            Some(noted) => core::mem::replace(&mut noted.since, now),
            None => now,
        }
    }

    /// Does the same for a request in this slot of the shard, of a client that is not suspended.
    #[inline]
    pub(super) fn grant_in(&mut self, slot: Index, now: E::Time) -> E::Time {
        match self.slots.get_mut(slot as usize) {
            Some(noted) => core::mem::replace(&mut noted.since, now),
            None => now,
        }
    }

    /// Takes the notes of shard `number` of `count`.
    pub(super) fn absorb(&mut self, shard: &mut Self, number: usize, count: usize) {
        for (own, noted) in core::mem::take(&mut shard.slots).into_iter().enumerate() {
            let slot = own * count + number;
            if slot >= self.slots.len() {
                self.make_room(slot + 1, noted.since);
            }
            self.slots[slot] = noted;
        }
    }

    /// Adds slots up to `count`: a scope takes one slot a name, so some slots have no note.
    #[cold]
    fn make_room(&mut self, count: usize, since: E::Time) {
        self.slots.resize_with(count, || Noted { note: E::Note::default(), since });
    }

    /// Returns how many slots there are.
    pub fn slot_count(&self) -> usize {
        self.slots.len()
    }

    #[inline]
    pub(super) fn has_idle_memory(&self) -> bool {
        self.slots.capacity() > IDLE_CAPACITY
    }

    pub(super) fn clear(&mut self) {
        self.slots = Vec::new();
    }

    pub(super) fn memory(&self) -> usize {
        self.slots.capacity() * size_of::<Noted<E>>()
    }
}

impl<E: Embedder<Note: fmt::Debug, Time: fmt::Debug>> fmt::Debug for Notes<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let slots = self.slots.iter().map(|noted| (&noted.note, &noted.since));
        f.debug_list().entries(slots).finish()
    }
}
