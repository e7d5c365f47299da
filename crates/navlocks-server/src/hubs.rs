//! The hubs of a service: one, or one for each slot that this node of a cluster owns.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::rc::Rc;
use std::time::Instant;

use navlocks_wire::Fault;

use crate::cluster::Membership;
use crate::config::Config;
use crate::hub::{Common, Hub, PartitionKey, Peer, SharedHub, Slots};
use crate::store::{StateFile, Store};

/// The hubs of a service.
#[derive(Clone, Debug)]
pub(crate) struct Hubs {
    pub(crate) common: Common,
    by_slot: BySlot,
}

#[derive(Clone, Debug)]
enum BySlot {
    /// One hub for everything.
    Single(SharedHub),
    /// A hub for each slot that this node of a cluster owns.
    Slots(Rc<Slots>),
}

impl Hubs {
    /// One hub for everything, with its state in this file. `fresh` says that the service is the
    /// first one if the file has no record of another.
    ///
    /// # Errors
    ///
    /// The file cannot be used.
    pub(crate) fn of_service(
        config: &Config,
        state: Option<StateFile>,
        fresh: bool,
    ) -> io::Result<Self> {
        let (limits, common) = (config.limits.clone(), Common::default());
        let stored = Store::new(state, &limits, fresh)?;
        let hub = Hub::new(limits, config.deadlocks, stored, common.clone(), Instant::now());
        Ok(Self { common, by_slot: BySlot::Single(Rc::new(RefCell::new(hub))) })
    }

    /// A hub for each slot that this node will own.
    ///
    /// # Errors
    ///
    /// The system has no randomness to give.
    pub(crate) fn of_cluster(membership: Box<dyn Membership>, common: Common) -> io::Result<Self> {
        let mut name = [0; 16];
        getrandom::fill(&mut name).map_err(|error| io::Error::other(error.to_string()))?;
        let name = format!("{:032x}", u128::from_le_bytes(name));
        let slots = Rc::new(Slots::new(membership, name));
        Ok(Self { common, by_slot: BySlot::Slots(slots) })
    }

    /// Returns the hub of a service that is no node.
    pub(crate) fn single(&self) -> Option<&SharedHub> {
        match &self.by_slot {
            BySlot::Single(hub) => Some(hub),
            BySlot::Slots(_) => None,
        }
    }

    /// Returns the slots, in a cluster.
    pub(crate) fn slots(&self) -> Option<&Slots> {
        match &self.by_slot {
            BySlot::Single(_) => None,
            BySlot::Slots(slots) => Some(slots),
        }
    }

    /// Returns all hubs by slot: without a cluster one, as slot 0.
    pub(crate) fn by_slot(&self) -> BTreeMap<u32, SharedHub> {
        match &self.by_slot {
            BySlot::Single(hub) => BTreeMap::from([(0, hub.clone())]),
            BySlot::Slots(slots) => slots.hubs(),
        }
    }

    /// Returns all hubs.
    pub(crate) fn all(&self) -> Vec<SharedHub> {
        self.by_slot().into_values().collect()
    }

    /// Returns why no lock can be granted now, if none can.
    pub(crate) fn unready(&self) -> Option<String> {
        let mut reason = Some(
            "no lock is granted: the node owns no slot, because it is new, is drained, or cannot reach a quorum of etcd".to_owned(),
        );
        for hub in self.all() {
            reason = Some(hub.borrow().unready()?);
        }
        reason
    }

    /// Returns the hub for the sessions of a peer in this partition.
    ///
    /// # Errors
    ///
    /// Another node owns its slot, or none does.
    pub(crate) fn find(&self, peer: &Peer, partition: &str) -> Result<SharedHub, Fault> {
        let slots = match &self.by_slot {
            BySlot::Single(hub) => return Ok(hub.clone()),
            BySlot::Slots(slots) => slots,
        };
        let number = PartitionKey::of(peer, partition).slot(slots.count());
        match slots.get(number) {
            // Without a quorum of etcd the owner may not serve, and no other node can.
            Some(hub) if hub.borrow().gate().is_some_and(|gate| !gate.may_send()) => {
                Err(Fault::moved(None))
            }
            Some(hub) => Ok(hub),
            None => Err(Fault::moved(slots.owner_elsewhere(number))),
        }
    }
}
