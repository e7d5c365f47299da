//! The hubs of a service: one, or one for each slot that this node of a cluster owns.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::rc::Rc;
use std::time::Instant;

use navlocks_wire::Fault;

use crate::cluster::Membership;
use crate::config::Config;
use crate::hub::{Common, Hub, PartitionKey, Peer};
use crate::store::{StateFile, Store};

/// A hub that tasks share.
pub(crate) type SharedHub = Rc<RefCell<Hub>>;

/// The hubs of a service.
#[derive(Debug)]
pub(crate) struct Hubs {
    pub(crate) common: Common,
    /// The only hub; in a cluster that of dashboards, which has no locks.
    first: SharedHub,
    slots: Option<Slots>,
}

/// The slots of a cluster, as far as this node knows them.
#[derive(Debug)]
pub(crate) struct Slots {
    pub(crate) membership: Rc<RefCell<Box<dyn Membership>>>,
    /// The name of this process, which no other one has.
    name: String,
    count: u32,
    owned: RefCell<BTreeMap<u32, SharedHub>>,
}

impl Hubs {
    /// One hub for everything, with its state in this file.
    ///
    /// # Errors
    ///
    /// The file cannot be used.
    pub(crate) fn of_service(config: &Config, state: Option<StateFile>) -> io::Result<Self> {
        let stored = Store::new(state, &config.limits)?;
        let (limits, common) = (config.limits.clone(), Common::default());
        let hub = Hub::new(limits, config.deadlocks, stored, common.clone(), Instant::now());
        Ok(Self { common, first: Rc::new(RefCell::new(hub)), slots: None })
    }

    /// A hub for each slot that this node will own.
    ///
    /// # Errors
    ///
    /// The system's clock is wrong by centuries.
    pub(crate) fn of_cluster(config: &Config, membership: Box<dyn Membership>) -> io::Result<Self> {
        let count = membership.slots();
        let mut name = [0; 16];
        getrandom::fill(&mut name).map_err(|error| io::Error::other(error.to_string()))?;
        let name = format!("{:032x}", u128::from_le_bytes(name));
        let membership = Rc::new(RefCell::new(membership));
        let slots = Slots { membership, name, count, owned: RefCell::default() };
        Ok(Self { slots: Some(slots), ..Self::of_service(config, None)? })
    }

    /// Returns the hub that keeps what is not of a slot: of a service without a cluster, all.
    pub(crate) fn first(&self) -> &SharedHub {
        &self.first
    }

    /// Returns the slots, in a cluster.
    pub(crate) fn slots(&self) -> Option<&Slots> {
        self.slots.as_ref()
    }

    /// Returns all hubs.
    pub(crate) fn all(&self) -> Vec<SharedHub> {
        let owned = self.slots.iter().flat_map(|slots| slots.hubs());
        std::iter::once(self.first.clone()).chain(owned).collect()
    }

    /// Returns the hub for the sessions of a peer in this partition.
    ///
    /// # Errors
    ///
    /// Another node owns its slot, or none does.
    pub(crate) fn find(&self, peer: &Peer, partition: &str) -> Result<SharedHub, Fault> {
        let Some(slots) = self.slots.as_ref().filter(|_| peer.viewing.is_none()) else {
            return Ok(self.first.clone());
        };
        let number = PartitionKey::of(peer, partition).slot(slots.count);
        match slots.owned.borrow().get(&number) {
            // Without a quorum of etcd the owner may not serve, and no other node can.
            Some(hub) if hub.borrow().gate().is_some_and(|gate| !gate.may_send()) => {
                Err(Fault::moved(None))
            }
            Some(hub) => Ok(hub.clone()),
            None => Err(Fault::moved(slots.owner_elsewhere(number))),
        }
    }
}

impl Slots {
    /// Returns the name of this process.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Returns how many slots the cluster has.
    pub(crate) fn count(&self) -> u32 {
        self.count
    }

    /// Serves a slot.
    pub(crate) fn add(&self, number: u32, hub: Hub) -> SharedHub {
        let hub = Rc::new(RefCell::new(hub));
        self.owned.borrow_mut().insert(number, hub.clone());
        hub
    }

    /// Serves a slot no more: its connections are sent to the node that has it, if one is known.
    pub(crate) fn remove(&self, number: u32, to: Option<String>) -> Option<SharedHub> {
        let hub = self.owned.borrow_mut().remove(&number)?;
        hub.borrow_mut().retire(&Fault::moved(to));
        Some(hub)
    }

    /// Returns the numbers of the slots that this node serves.
    pub(crate) fn numbers(&self) -> Vec<u32> {
        self.owned.borrow().keys().copied().collect()
    }

    fn hubs(&self) -> Vec<SharedHub> {
        self.owned.borrow().values().cloned().collect()
    }

    /// Returns the address of the node that owns a slot, unless that is this one.
    pub(crate) fn owner_elsewhere(&self, slot: u32) -> Option<String> {
        let membership = self.membership.borrow();
        membership.owner(slot).filter(|owner| owner != membership.address())
    }
}
