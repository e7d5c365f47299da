//! Notes and tags of requests, which a space keeps beside its engine.

use super::{Embedder, Notes, Space};
use crate::RequestId;

impl<E: Embedder> Space<E> {
    /// Returns what is attached to the requests.
    #[inline]
    pub fn notes(&self) -> &Notes<E> {
        &self.notes
    }

    /// Returns the note of a live request, to change it.
    #[inline]
    pub fn note_mut(&mut self, id: RequestId) -> Option<&mut E::Note> {
        self.notes.get_mut(id)
    }

    /// Returns the tag of a live request.
    pub fn tag(&self, id: RequestId) -> Option<&E::Tag> {
        self.tags.get(&id)
    }

    /// Returns how many requests have a tag.
    pub fn tag_count(&self) -> usize {
        self.tags.len()
    }

    /// Returns true if no request is left, and no holder watches.
    pub fn is_idle(&self) -> bool {
        let published = self.described.is_some() && self.forgotten_in.is_none();
        self.manager.name_count() == 0 && self.contention.is_empty() && !published
    }

    /// Returns how many bytes the space takes, names and tags that are longer than a few words
    /// aside.
    pub fn memory(&self) -> usize {
        self.manager.memory()
            + self.notes.memory()
            + self.tags.capacity() * size_of::<(RequestId, E::Tag)>()
    }
}
