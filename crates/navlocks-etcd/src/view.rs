//! The cluster as a node has seen it, and since when.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use etcd_client::{GetResponse, KeyValue};

use crate::clock::Moment;
use crate::error::Error;
use crate::keys::key::Keys;
use crate::keys::record::{self, ClusterRecord, Incarnation, NodeRecord, SlotRecord};

/// A node's key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SeenNode {
    pub(crate) name: String,
    pub(crate) address: String,
    pub(crate) seats: u64,
    pub(crate) revision: i64,
    /// The revision in which the key was created: the node that began earlier has the smaller one.
    pub(crate) created: i64,
    /// When the key was first seen with this revision.
    pub(crate) since: Moment,
    pub(crate) is_draining: bool,
}

/// A slot's key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SeenSlot {
    /// None if the slot is free.
    pub(crate) node: Option<Incarnation>,
    /// 0 if the slot has no key.
    pub(crate) revision: i64,
    pub(crate) epoch_floor: u64,
}

/// One consistent reading of nodes and slots.
#[derive(Clone, Debug)]
pub(crate) struct View {
    pub(crate) cluster: ClusterRecord,
    pub(crate) nodes: BTreeMap<Incarnation, SeenNode>,
    pub(crate) ended: BTreeSet<Incarnation>,
    pub(crate) drains: BTreeSet<Incarnation>,
    pub(crate) slots: Vec<SeenSlot>,
    /// Owners of slots without a key and without a record of their end: since when.
    pub(crate) missing: BTreeMap<Incarnation, Moment>,
}

/// The answers that make a view, in the order of the renewal's questions.
#[derive(Debug)]
pub(crate) struct Answers<'a> {
    pub(crate) cluster: &'a GetResponse,
    pub(crate) nodes: &'a GetResponse,
    pub(crate) ended: &'a GetResponse,
    pub(crate) drains: &'a GetResponse,
    pub(crate) slots: &'a GetResponse,
}

impl View {
    /// Reads the answers. A record that has not changed since the last view keeps its time.
    pub(crate) fn read(
        keys: &Keys,
        answers: &Answers<'_>,
        last: Option<&Self>,
        now: Moment,
    ) -> Result<Self, Error> {
        let cluster = answers.cluster.kvs().first().ok_or(Error::Restored)?;
        let cluster: ClusterRecord = record::read(cluster)?;
        let set = |pairs: &[KeyValue]| -> Result<BTreeSet<Incarnation>, Error> {
            pairs.iter().map(incarnation).collect()
        };
        let drains = set(answers.drains.kvs())?;
        let ended = set(answers.ended.kvs())?;
        let mut nodes = BTreeMap::new();
        for pair in answers.nodes.kvs() {
            let (number, value) = (incarnation(pair)?, record::read::<NodeRecord>(pair)?);
            let before = last.and_then(|last| last.nodes.get(&number));
            let same = before.filter(|before| before.revision == pair.mod_revision());
            let node = SeenNode {
                name: value.name,
                address: value.address,
                seats: value.seats,
                revision: pair.mod_revision(),
                created: pair.create_revision(),
                since: same.map_or(now, |same| same.since),
                is_draining: drains.contains(&number),
            };
            nodes.insert(number, node);
        }
        let free = SeenSlot { node: None, revision: 0, epoch_floor: 0 };
        let mut slots = vec![free; cluster.slots as usize];
        for pair in answers.slots.kvs() {
            let text = record::key_text(pair)?;
            let number = text.strip_prefix(&keys.slots()).and_then(|it| it.parse::<usize>().ok());
            let Some(slot) = number.and_then(|number| slots.get_mut(number)) else {
                let reason = format!("a cluster of {} slots has no such slot", cluster.slots);
                return Err(Error::Record { key: text.to_owned(), reason });
            };
            let SlotRecord { node, epoch_floor } = record::read(pair)?;
            *slot = SeenSlot { node, revision: pair.mod_revision(), epoch_floor };
        }
        let owners = slots.iter().filter_map(|slot| slot.node);
        let missing = owners.filter(|owner| !nodes.contains_key(owner) && !ended.contains(owner));
        let since = |owner: &Incarnation| last.and_then(|last| last.missing.get(owner).copied());
        let missing = missing.map(|owner| (owner, since(&owner).unwrap_or(now))).collect();
        Ok(Self { cluster, nodes, ended, drains, slots, missing })
    }

    pub(crate) fn node_lease(&self) -> Duration {
        Duration::from_millis(self.cluster.node_lease_ms)
    }

    /// Whether a node has been silent for a whole node lease.
    pub(crate) fn is_silent(&self, node: &SeenNode, now: Moment) -> bool {
        now.since(node.since) >= self.node_lease()
    }
}

pub(crate) fn incarnation(pair: &KeyValue) -> Result<Incarnation, Error> {
    let text = record::key_text(pair)?;
    Incarnation::of_key(text).ok_or_else(|| Error::Record {
        key: text.to_owned(),
        reason: "it does not end with the number of a node".to_owned(),
    })
}
