//! The keys of a cluster in etcd.

use super::record::Incarnation;
use navlocks_server::cluster::SessionKey;

/// All keys below one prefix.
#[derive(Clone, Debug)]
pub(crate) struct Keys {
    prefix: String,
}

impl Keys {
    pub(crate) fn new(prefix: &str) -> Self {
        Self { prefix: prefix.to_owned() }
    }

    /// The constants of the cluster.
    pub(crate) fn cluster(&self) -> String {
        format!("{}cluster", self.prefix)
    }

    /// A mark in etcd's history while a node makes the record of a cluster.
    pub(crate) fn beginning(&self) -> String {
        format!("{}-begins", self.cluster())
    }

    pub(crate) fn nodes(&self) -> String {
        format!("{}nodes/", self.prefix)
    }

    /// A node, as long as it renews.
    pub(crate) fn node(&self, node: Incarnation) -> String {
        format!("{}{node}", self.nodes())
    }

    pub(crate) fn ended_nodes(&self) -> String {
        format!("{}ended/", self.prefix)
    }

    /// A node whose belief is known to be over, until no slot names it any more.
    pub(crate) fn ended_node(&self, node: Incarnation) -> String {
        format!("{}{node}", self.ended_nodes())
    }

    pub(crate) fn drains(&self) -> String {
        format!("{}drain/", self.prefix)
    }

    /// A node that is to give its slots away.
    pub(crate) fn drain(&self, node: Incarnation) -> String {
        format!("{}{node}", self.drains())
    }

    pub(crate) fn slots(&self) -> String {
        format!("{}slots/", self.prefix)
    }

    /// The owner of a slot; the revision is its epoch.
    pub(crate) fn slot(&self, slot: u32) -> String {
        format!("{}{slot:04}", self.slots())
    }

    /// The last batch of changes that was applied.
    pub(crate) fn batch(&self, slot: u32) -> String {
        format!("{}batches/{slot:04}", self.prefix)
    }

    pub(crate) fn tokens(&self, slot: u32) -> String {
        format!("{}tokens/{slot:04}", self.prefix)
    }

    pub(crate) fn graces(&self) -> String {
        format!("{}grace/", self.prefix)
    }

    pub(crate) fn grace(&self, slot: u32) -> String {
        format!("{}{slot:04}", self.graces())
    }

    pub(crate) fn all_sessions(&self) -> String {
        format!("{}sessions/", self.prefix)
    }

    /// Returns the slot that a key below such a prefix belongs to.
    pub(crate) fn slot_of(prefix: &str, key: &[u8]) -> Option<usize> {
        let key = std::str::from_utf8(key).ok()?.strip_prefix(prefix)?;
        key.split('/').next()?.parse().ok()
    }

    pub(crate) fn sessions(&self, slot: u32) -> String {
        format!("{}sessions/{slot:04}/", self.prefix)
    }

    pub(crate) fn session(&self, slot: u32, session: SessionKey) -> String {
        format!("{}{session:?}", self.sessions(slot))
    }

    pub(crate) fn taken(&self, slot: u32) -> String {
        format!("{}taken/{slot:04}/", self.prefix)
    }

    pub(crate) fn taken_from(&self, slot: u32, session: SessionKey) -> String {
        format!("{}{session:?}/", self.taken(slot))
    }

    pub(crate) fn taken_request(&self, slot: u32, session: SessionKey, request: u64) -> String {
        format!("{}{request}", self.taken_from(slot, session))
    }
}
