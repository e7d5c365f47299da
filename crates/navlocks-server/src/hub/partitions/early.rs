//! Requests that are held back: after a start, a session of the earlier service that has not
//! claimed yet may have an earlier request that conflicts with them.
//!
//! Held-back requests enter the engine in order of their places, each as soon as no earlier one
//! that conflicts with it is missing. The engine then decides which of them hold.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use navlocks_core::{ClientId, Mode};

use super::Asking;
use crate::hub::recovery::Recovery;
use crate::hub::wanted::Wanted;

/// The held-back requests of a partition, by place.
#[derive(Debug, Default)]
pub(crate) struct Early {
    requests: BTreeMap<u64, (Asking, Vec<u64>)>,
    /// Those that want a name, by the hash of the name.
    by_hash: HashMap<u64, Wanted<()>>,
    by_owner: BTreeSet<(ClientId, u64)>,
    bytes: usize,
}

/// Where to look for requests that need not wait any more: from a place on, among those that want
/// the name with a hash.
pub(crate) type Walks = BTreeSet<(u64, u64)>;

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
            self.by_hash.entry(hash).or_default().insert(asking.place, (), asking.request.mode);
        }
        self.by_owner.insert((asking.owner, asking.place));
        self.requests.insert(asking.place, (asking, hashes));
    }

    /// Takes a request out, with the hashes of its names.
    pub(crate) fn remove(&mut self, place: u64) -> Option<(Asking, Vec<u64>)> {
        let (asking, hashes) = self.requests.remove(&place)?;
        self.bytes -= asking.bytes();
        self.by_owner.remove(&(asking.owner, place));
        for hash in &hashes {
            if let Some(wanted) = self.by_hash.get_mut(hash) {
                wanted.remove(place, (), asking.request.mode);
                if wanted.is_empty() {
                    self.by_hash.remove(hash);
                }
            }
        }
        Some((asking, hashes))
    }

    /// Returns true if a held-back request before this place conflicts with one of this mode.
    pub(crate) fn blocks(&self, hashes: &[u64], place: u64, mode: Mode) -> bool {
        let wanted = hashes.iter().filter_map(|hash| self.by_hash.get(hash));
        wanted.into_iter().any(|wanted| wanted.blocks(place, mode))
    }

    /// Returns the places of requests that want one of these names.
    pub(crate) fn places(&self, hashes: &[u64]) -> BTreeSet<u64> {
        let wanted = hashes.iter().filter_map(|hash| self.by_hash.get(hash));
        wanted.flat_map(|wanted| wanted.iter().map(|(place, ())| place)).collect()
    }

    /// Returns the walks along these names.
    pub(crate) fn walks(&self, hashes: &[u64]) -> Walks {
        let held_back = hashes.iter().filter(|hash| self.by_hash.contains_key(hash));
        held_back.map(|&hash| (0, hash)).collect()
    }

    /// Returns the walks from a request on.
    pub(crate) fn walks_from(&self, place: u64) -> Walks {
        let hashes = self.requests.get(&place).into_iter().flat_map(|(_, hashes)| hashes);
        hashes.map(|&hash| (place, hash)).collect()
    }

    /// Returns the walks along all names.
    pub(crate) fn all_places(&self) -> Walks {
        self.by_hash.keys().map(|&hash| (0, hash)).collect()
    }

    /// Takes the first request on these walks that nothing holds back any more. Looks at no more
    /// requests than there is room for.
    pub(crate) fn take_ready(
        &mut self,
        walks: &mut Walks,
        recovery: &Recovery,
        room: &mut usize,
    ) -> Option<Asking> {
        while *room > 0
            && let Some((from, hash)) = walks.pop_first()
        {
            let Some(place) = self.by_hash.get(&hash).and_then(|it| it.next(from)) else {
                continue;
            };
            if place > from {
                // Another walk may have an earlier one.
                walks.insert((place, hash));
                continue;
            }
            *room -= 1;
            let Some((asking, hashes)) = self.requests.get(&place) else { continue };
            let mode = asking.request.mode;
            let is_blocked = |hashes: &[u64]| {
                recovery.blocks(hashes, place, mode) || self.blocks(hashes, place, mode)
            };
            if is_blocked(&[hash]) {
                // So are all behind it that want this name.
                continue;
            }
            if is_blocked(hashes) {
                walks.insert((place + 1, hash));
                continue;
            }
            let (asking, hashes) = self.remove(place)?;
            walks.extend(hashes.into_iter().map(|hash| (place + 1, hash)));
            return Some(asking);
        }
        None
    }

    /// Returns the places of a client's requests.
    pub(crate) fn places_of(&self, client: ClientId) -> Vec<u64> {
        let own = self.by_owner.range((client, 0)..=(client, u64::MAX));
        own.map(|&(_, place)| place).collect()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Asking> {
        self.requests.values().map(|(asking, _)| asking)
    }
}
