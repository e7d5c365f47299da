//! Requests that come while nothing is granted yet: after an unclean end, earlier holders may still
//! believe in their locks.

use std::collections::BTreeMap;

use navlocks_core::ClientId;

use super::Asking;

/// The requests that wait for the first grant of a partition, in order of arrival.
#[derive(Debug, Default)]
pub(crate) struct Early {
    requests: BTreeMap<u64, Asking>,
    next: u64,
    bytes: usize,
}

impl Early {
    pub(crate) fn len(&self) -> usize {
        self.requests.len()
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Adds a request. Returns its place.
    pub(crate) fn push(&mut self, asking: Asking) -> u64 {
        self.next += 1;
        self.bytes += asking.bytes();
        self.requests.insert(self.next, asking);
        self.next
    }

    pub(crate) fn remove(&mut self, place: u64) {
        if let Some(asking) = self.requests.remove(&place) {
            self.bytes -= asking.bytes();
        }
    }

    /// Removes all of a client. Returns their numbers.
    pub(crate) fn remove_client(&mut self, client: ClientId) -> Vec<u64> {
        let gone: Vec<(u64, u64)> = self
            .requests
            .iter()
            .filter(|(_, asking)| asking.owner == client)
            .map(|(&place, asking)| (place, asking.number))
            .collect();
        gone.iter().for_each(|&(place, _)| self.remove(place));
        gone.into_iter().map(|(_, number)| number).collect()
    }

    /// Takes all out, in order.
    pub(crate) fn take(&mut self) -> impl Iterator<Item = Asking> + use<> {
        self.bytes = 0;
        std::mem::take(&mut self.requests).into_values()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Asking> {
        self.requests.values()
    }
}
