//! All partitions, by what they belong to.

mod partition;
mod subscribers;

use std::collections::HashMap;
use std::hash::RandomState;
use std::ops::{Index, IndexMut};
use std::rc::Rc;

use navlocks_core::{DeadlockPolicy, FencingToken, HashKey, LockManager};
use navlocks_wire as wire;

use crate::cluster::slot_of;
use crate::hub::Peer;
use crate::hub::questions::Answered;
use crate::hub::shares::Share;
pub(crate) use partition::{HubContext, Looks, NewRequest, Partition, TooMany};

/// The tenant, the origin and the name of a lock space.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PartitionKey {
    tenant: Rc<str>,
    origin: Rc<str>,
    bucket: Box<str>,
}

impl PartitionKey {
    /// The bucket of this name among those of a peer.
    pub(crate) fn of(peer: &Peer, bucket: &str) -> Self {
        Self { tenant: peer.tenant.clone(), origin: peer.origin.clone(), bucket: bucket.into() }
    }

    /// The partition of this tenant, web origin and name; each may be empty.
    pub fn new(tenant: &str, origin: &str, name: &str) -> Self {
        Self { tenant: tenant.into(), origin: origin.into(), bucket: name.into() }
    }

    /// Returns the tenant that it belongs to.
    pub fn tenant(&self) -> &str {
        &self.tenant
    }

    /// Returns the web origin that it belongs to.
    pub fn origin(&self) -> &str {
        &self.origin
    }

    /// Returns its name.
    pub fn name(&self) -> &str {
        &self.bucket
    }

    /// Returns the key of the hashes of names in this partition: a name of another one has another
    /// hash.
    fn derive(&self, key: HashKey) -> HashKey {
        let Self { tenant, origin, bucket } = self;
        let text = format!("{tenant}\0{origin}\0{bucket}");
        let (low, high) =
            (key.hash_bytes(text.as_bytes()), key.hash_bytes((text + "\0").as_bytes()));
        HashKey::from_bytes((u128::from(high) << 64 | u128::from(low)).to_le_bytes())
    }

    /// Returns the slot that it belongs to in a cluster with so many.
    pub(crate) fn slot(&self, slots: u32) -> u32 {
        slot_of(&[&self.tenant, &self.origin, &self.bucket], slots)
    }

    /// Whether a peer may know of it: all of them, if it is the service's own user.
    pub(crate) fn is_visible_to(&self, peer: &Peer) -> bool {
        peer.sees_all() || (&self.tenant, &self.origin) == (&peer.tenant, &peer.origin)
    }

    /// Describes its tenant, origin and name, without its locks.
    pub(crate) fn describe(&self) -> wire::Partition {
        let Self { tenant, origin, bucket } = self;
        let (tenant, origin) = (tenant.to_string(), origin.to_string());
        let partition = bucket.to_string();
        wire::Partition { partition, tenant, origin, held: Vec::new(), pending: Vec::new() }
    }
}

/// The position of a partition. Used again once its partition is gone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct PartitionIndex(u32);

/// All partitions that have a client.
#[derive(Debug, Default)]
pub(crate) struct Partitions {
    indices: HashMap<PartitionKey, PartitionIndex>,
    /// A partition that is gone leaves an empty one behind.
    partitions: Vec<Partition>,
    free: Vec<PartitionIndex>,
    /// The last answer to a query.
    pub(crate) answered: Option<Answered>,
}

impl Partitions {
    pub(crate) fn len(&self) -> usize {
        self.indices.len()
    }

    pub(crate) fn find(&self, key: &PartitionKey) -> Option<PartitionIndex> {
        self.indices.get(key).copied()
    }

    /// Adds a partition whose tokens are at least this.
    pub(crate) fn insert(
        &mut self,
        key: PartitionKey,
        token: FencingToken,
        deadlocks: DeadlockPolicy,
        share: Rc<Share>,
        table_key: HashKey,
    ) -> PartitionIndex {
        share.partitions.add(1);
        let table_key = key.derive(table_key);
        let mut manager = manager();
        // Tokens of a service are far below what the engine refuses.
        let _advanced = manager.advance_token(token);
        let partition = Partition::new(key.clone(), manager, deadlocks, share, table_key);
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
        self[index].index = index;
        self.indices.insert(key, index);
        index
    }

    /// Forgets a partition without clients.
    pub(crate) fn remove(&mut self, index: PartitionIndex) {
        self.answered.take_if(|answered| answered.partition == index);
        let slot = &mut self.partitions[index.0 as usize];
        self.indices.remove(&slot.key);
        slot.share.partitions.sub(1);
        if slot.behind {
            slot.share.catch_up();
        }
        let (key, none) = (slot.key.clone(), HashKey::from_bytes([0; 16]));
        *slot = Partition::new(key, manager(), DeadlockPolicy::Ignore, Rc::default(), none);
        self.free.push(index);
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Partition> {
        self.partitions.iter()
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Partition> {
        self.partitions.iter_mut()
    }

    /// Returns those that are not gone.
    pub(crate) fn living(&self) -> impl Iterator<Item = &Partition> {
        self.indices.values().map(|&index| &self[index])
    }

    pub(crate) fn indices(&self) -> Vec<PartitionIndex> {
        self.indices.values().copied().collect()
    }
}

/// Makes an engine with a hash key that clients cannot guess.
pub(crate) fn manager() -> LockManager {
    LockManager::new(HashKey::drawn_from(&RandomState::new()))
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
