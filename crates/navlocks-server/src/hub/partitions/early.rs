//! Requests that are held back: after a start, a session of the earlier service that has not
//! claimed yet may have an earlier request that conflicts with them.
//!
//! Held-back requests enter the engine in order of their places, each as soon as no earlier one
//! that conflicts with it is missing. The engine then decides which of them hold.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use navlocks_core::{ClientId, Mode};

use super::Asking;
use crate::hub::recovery::Recovery;

/// The held-back requests of a partition, by place.
#[derive(Debug, Default)]
pub(crate) struct Early {
    requests: BTreeMap<u64, (Asking, Vec<u64>)>,
    /// The places and modes of those that want a name, by the hash of the name.
    by_hash: HashMap<u64, BTreeMap<u64, Mode>>,
    bytes: usize,
}

impl Early {
    pub(crate) fn len(&self) -> usize {
        self.requests.len()
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Adds a request at its place.
    pub(crate) fn push(&mut self, asking: Asking, hashes: Vec<u64>) {
        self.bytes += asking.bytes();
        for &hash in &hashes {
            self.by_hash.entry(hash).or_default().insert(asking.place, asking.request.mode);
        }
        self.requests.insert(asking.place, (asking, hashes));
    }

    /// Takes a request out, with the hashes of its names.
    pub(crate) fn remove(&mut self, place: u64) -> Option<(Asking, Vec<u64>)> {
        let (asking, hashes) = self.requests.remove(&place)?;
        self.bytes -= asking.bytes();
        for hash in &hashes {
            if let Some(places) = self.by_hash.get_mut(hash) {
                places.remove(&place);
                if places.is_empty() {
                    self.by_hash.remove(hash);
                }
            }
        }
        Some((asking, hashes))
    }

    /// Returns true if a held-back request before this place conflicts with one of this mode.
    pub(crate) fn blocks(&self, hashes: &[u64], place: u64, mode: Mode) -> bool {
        hashes
            .iter()
            .filter_map(|hash| self.by_hash.get(hash))
            .any(|places| places.range(..place).any(|(_, &earlier)| earlier.conflicts_with(mode)))
    }

    /// Returns the places of requests that want one of these names.
    pub(crate) fn places(&self, hashes: &[u64]) -> BTreeSet<u64> {
        let wanting = hashes.iter().filter_map(|hash| self.by_hash.get(hash));
        wanting.flat_map(|places| places.keys().copied()).collect()
    }

    /// Takes the first of these requests that nothing holds back any more.
    pub(crate) fn take_ready(
        &mut self,
        candidates: &mut BTreeSet<u64>,
        recovery: &Recovery,
    ) -> Option<Asking> {
        while let Some(place) = candidates.pop_first() {
            let Some((asking, hashes)) = self.requests.get(&place) else { continue };
            let mode = asking.request.mode;
            if recovery.blocks(hashes, place, mode) || self.blocks(hashes, place, mode) {
                continue;
            }
            let (asking, hashes) = self.remove(place)?;
            candidates.extend(self.places(&hashes));
            return Some(asking);
        }
        None
    }

    /// Returns the places of a client's requests.
    pub(crate) fn places_of(&self, client: ClientId) -> Vec<u64> {
        let own = self.requests.values().filter(|(asking, _)| asking.owner == client);
        own.map(|(asking, _)| asking.place).collect()
    }

    pub(crate) fn all_places(&self) -> BTreeSet<u64> {
        self.requests.keys().copied().collect()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Asking> {
        self.requests.values().map(|(asking, _)| asking)
    }
}
