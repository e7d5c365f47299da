//! All partitions, by what they belong to.

mod contention;
mod early;
mod partition;
mod subscribers;

use std::collections::HashMap;
use std::hash::{BuildHasher as _, RandomState};
use std::ops::{Index, IndexMut};
use std::rc::Rc;

use navlocks_core::{FencingToken, HashKey, LockManager};

use crate::hub::Peer;
pub(crate) use partition::{Around, Asking, Partition};

/// What a lock space belongs to.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct PartitionKey {
    tenant: Rc<str>,
    origin: Rc<str>,
    bucket: Box<str>,
}

impl PartitionKey {
    /// The bucket of this name among those of a peer.
    pub(crate) fn of(peer: &Peer, bucket: &str) -> Self {
        Self { tenant: peer.tenant.clone(), origin: peer.origin.clone(), bucket: bucket.into() }
    }
}

/// The position of a partition. Used again once its partition is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PartitionIndex(u32);

/// All partitions that have a client.
#[derive(Debug, Default)]
pub(crate) struct Partitions {
    indices: HashMap<PartitionKey, PartitionIndex>,
    /// A partition that is gone leaves an empty one behind.
    partitions: Vec<Partition>,
    free: Vec<PartitionIndex>,
}

impl Partitions {
    pub(crate) fn len(&self) -> usize {
        self.indices.len()
    }

    pub(crate) fn find(&self, key: &PartitionKey) -> Option<PartitionIndex> {
        self.indices.get(key).copied()
    }

    /// Adds a partition whose tokens are at least this.
    pub(crate) fn insert(&mut self, key: PartitionKey, token: FencingToken) -> PartitionIndex {
        let mut manager = LockManager::new(hash_key());
        // Tokens of a service are far below what the engine refuses.
        let _advanced = manager.advance_token(token);
        let partition = Partition::new(key.clone(), manager);
        let index = match self.free.pop() {
            Some(index) => {
                self.partitions[index.0 as usize] = partition;
                index
            }
            None => {
                self.partitions.push(partition);
                PartitionIndex((self.partitions.len() - 1) as u32)
            }
        };
        self.indices.insert(key, index);
        index
    }

    /// Forgets a partition without clients.
    pub(crate) fn remove(&mut self, index: PartitionIndex) {
        let slot = &mut self.partitions[index.0 as usize];
        self.indices.remove(&slot.key);
        *slot = Partition::new(slot.key.clone(), LockManager::new(hash_key()));
        self.free.push(index);
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Partition> {
        self.partitions.iter()
    }

    pub(crate) fn indices(&self) -> Vec<PartitionIndex> {
        self.indices.values().copied().collect()
    }
}

/// Names come from outside, so how they hash is not to be guessed.
fn hash_key() -> HashKey {
    let random = RandomState::new();
    let (low, high) = (random.hash_one(0), random.hash_one(1));
    HashKey::from_bytes((u128::from(high) << 64 | u128::from(low)).to_ne_bytes())
}

impl Index<PartitionIndex> for Partitions {
    type Output = Partition;

    #[inline]
    fn index(&self, index: PartitionIndex) -> &Partition {
        &self.partitions[index.0 as usize]
    }
}

impl IndexMut<PartitionIndex> for Partitions {
    #[inline]
    fn index_mut(&mut self, index: PartitionIndex) -> &mut Partition {
        &mut self.partitions[index.0 as usize]
    }
}
