//! The live requests of one client, by the numbers that it gave them.

use hashbrown::HashTable;

use crate::{HashKey, RequestId};

/// Request ids by number.
///
/// Most clients have one request at a time, so the first has a place of its own. A client may
/// choose its numbers so that they collide, so the hash of the others has a secret key.
#[derive(Default)]
pub(super) struct Numbers {
    first: Option<(u64, RequestId)>,
    others: HashTable<(u64, RequestId)>,
}

/// The key of the hash.
#[derive(Clone, Copy)]
pub(super) struct Secret {
    mask: u64,
    factor: u64,
}

/// Above this many places, an empty table drops its memory.
const IDLE_CAPACITY: usize = 1024;

impl Secret {
    pub(super) fn new(key: HashKey) -> Self {
        Self { mask: key.hash_bytes(b"mask"), factor: key.hash_bytes(b"factor") | 1 }
    }

    #[inline]
    fn hash(self, number: u64) -> u64 {
        let product = u128::from(number ^ self.mask) * u128::from(self.factor);
        product as u64 ^ (product >> 64) as u64
    }
}

impl Numbers {
    #[inline]
    pub(super) fn len(&self) -> usize {
        usize::from(self.first.is_some()) + self.others.len()
    }

    #[inline]
    pub(super) fn get(&self, number: u64, secret: Secret) -> Option<RequestId> {
        match self.first {
            Some((known, id)) if known == number => Some(id),
            _ if self.others.is_empty() => None,
            _ => self.get_other(number, secret),
        }
    }

    #[inline(never)]
    fn get_other(&self, number: u64, secret: Secret) -> Option<RequestId> {
        let found = self.others.find(secret.hash(number), |&(known, _)| known == number);
        found.map(|&(_, id)| id)
    }

    /// Adds a number that is not there.
    #[inline]
    pub(super) fn insert(&mut self, number: u64, id: RequestId, secret: Secret) {
        if self.first.is_none() {
            self.first = Some((number, id));
        } else {
            self.insert_other(number, id, secret);
        }
    }

    #[inline(never)]
    fn insert_other(&mut self, number: u64, id: RequestId, secret: Secret) {
        let hash = |&(number, _): &(u64, RequestId)| secret.hash(number);
        self.others.insert_unique(secret.hash(number), (number, id), hash);
    }

    #[inline]
    pub(super) fn remove(&mut self, number: u64, secret: Secret) {
        if self.first.is_some_and(|(known, _)| known == number) {
            self.first = None;
        } else if !self.others.is_empty() {
            self.remove_other(number, secret);
        }
    }

    #[inline(never)]
    fn remove_other(&mut self, number: u64, secret: Secret) {
        let same = |&(known, _): &(u64, RequestId)| known == number;
        if let Ok(found) = self.others.find_entry(secret.hash(number), same) {
            found.remove();
            if self.others.is_empty() && self.others.capacity() > IDLE_CAPACITY {
                self.others = HashTable::new();
            }
        }
    }

    pub(super) fn memory(&self) -> usize {
        self.others.allocation_size()
    }
}
