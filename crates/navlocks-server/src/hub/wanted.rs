//! The requests that want one name and that the engine does not have yet.

use std::collections::BTreeSet;

use navlocks_core::Mode;

/// Requests that want one name, by mode, in order of their places. Two requests that have one place
/// differ in their keys. One with a limit counts as exclusive: it is held back a little longer, and
/// the engine decides then.
#[derive(Debug)]
pub(crate) struct Wanted<K> {
    exclusive: BTreeSet<(u64, K)>,
    shared: BTreeSet<(u64, K)>,
}

impl<K> Default for Wanted<K> {
    fn default() -> Self {
        Self { exclusive: BTreeSet::new(), shared: BTreeSet::new() }
    }
}

impl<K: Copy + Ord> Wanted<K> {
    fn of(&mut self, mode: Mode) -> &mut BTreeSet<(u64, K)> {
        match mode {
            Mode::Exclusive | Mode::Limited(_) => &mut self.exclusive,
            Mode::Shared => &mut self.shared,
        }
    }

    pub(crate) fn insert(&mut self, place: u64, key: K, mode: Mode) {
        self.of(mode).insert((place, key));
    }

    pub(crate) fn remove(&mut self, place: u64, key: K, mode: Mode) {
        self.of(mode).remove(&(place, key));
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.exclusive.is_empty() && self.shared.is_empty()
    }

    /// Returns true if a request before this place conflicts with one of this mode. The cost does
    /// not grow with the number of requests.
    pub(crate) fn blocks(&self, place: u64, mode: Mode) -> bool {
        let before =
            |requests: &BTreeSet<(u64, K)>| requests.first().is_some_and(|(its, _)| *its < place);
        before(&self.exclusive) || mode != Mode::Shared && before(&self.shared)
    }

    /// Returns the place of the first request that is not before this place.
    pub(crate) fn next(&self, place: u64) -> Option<u64>
    where
        K: Default,
    {
        let from = (place, K::default());
        let next = [&self.exclusive, &self.shared].map(|requests| requests.range(from..).next());
        next.into_iter().flatten().map(|(place, _)| *place).min()
    }

    /// Returns the places and keys of all requests.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, K)> {
        self.exclusive.iter().chain(&self.shared).copied()
    }
}
