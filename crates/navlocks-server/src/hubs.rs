//! The hubs of a service: one, or one for each slot that this node of a cluster owns.

use std::cell::RefCell;
use std::io;
use std::rc::Rc;
use std::time::Instant;

use navlocks_wire::Fault;

use crate::cluster::Membership;
use crate::config::Config;
use crate::hub::{Common, Hub, PartitionKey, Peer, SharedHub, Slots};
use crate::store::{Registry, StateFile, Store};

/// The hubs of a service.
#[derive(Clone, Debug)]
pub(crate) struct Hubs {
    pub(crate) common: Common,
    /// The only hub; in a cluster that of dashboards, which has no locks.
    first: SharedHub,
    slots: Option<Rc<Slots>>,
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
        Self::new(config, Store::new(state, &config.limits, fresh)?, None)
    }

    /// A hub for each slot that this node will own.
    ///
    /// # Errors
    ///
    /// The system's clock is wrong by centuries.
    pub(crate) fn of_cluster(config: &Config, membership: Box<dyn Membership>) -> io::Result<Self> {
        let mut name = [0; 16];
        getrandom::fill(&mut name).map_err(|error| io::Error::other(error.to_string()))?;
        let name = format!("{:032x}", u128::from_le_bytes(name));
        let stored = Store::new(None, &config.limits, true)?;
        Self::new(config, stored, Some(Rc::new(Slots::new(membership, name))))
    }

    fn new(
        config: &Config,
        stored: (Store, Registry),
        slots: Option<Rc<Slots>>,
    ) -> io::Result<Self> {
        let (limits, mut common) = (config.limits.clone(), Common::default());
        if let Some(slots) = &slots {
            common.slots = Rc::downgrade(slots);
        }
        let mut hub = Hub::new(limits, config.deadlocks, stored, common.clone(), Instant::now());
        if slots.is_some() {
            hub.sessions.number_apart();
        }
        Ok(Self { common, first: Rc::new(RefCell::new(hub)), slots })
    }

    /// Returns the hub that keeps what is not of a slot: of a service without a cluster, all.
    pub(crate) fn first(&self) -> &SharedHub {
        &self.first
    }

    /// Returns the slots, in a cluster.
    pub(crate) fn slots(&self) -> Option<&Slots> {
        self.slots.as_deref()
    }

    /// Returns all hubs.
    pub(crate) fn all(&self) -> Vec<SharedHub> {
        let owned = self.slots.iter().flat_map(|slots| slots.hubs());
        std::iter::once(self.first.clone()).chain(owned).collect()
    }

    /// Returns why no lock can be granted now, if none can.
    pub(crate) fn unready(&self) -> Option<String> {
        let Some(slots) = &self.slots else { return self.first.borrow().unready() };
        let mut reason = Some(
            "no lock is granted: the node owns no slot, because it is new, is drained, or cannot reach a quorum of etcd".to_owned(),
        );
        for hub in slots.hubs() {
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
        let Some(slots) = self.slots.as_ref().filter(|_| peer.viewing.is_none()) else {
            return Ok(self.first.clone());
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
