//! The slots of a cluster that a node serves, each with a hub, and the view over all of them.

use std::cell::{Ref, RefCell};
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;
use std::time::{Duration, Instant};

use navlocks_wire::{Fault, ServiceNode};
use tokio::sync::Notify;

use super::partitions::{Partition, PartitionKey};
use super::sessions::is_numbered_apart;
use super::{Hub, Peer};
use crate::cluster::Membership;

/// How long a node that this one does not reach is not dialled again for clients.
const UNREACHABLE_FOR: Duration = Duration::from_secs(1);

/// A hub that tasks share.
pub(crate) type SharedHub = Rc<RefCell<Hub>>;

/// The slots of a cluster, as far as this node knows them.
#[derive(Debug)]
pub(crate) struct Slots {
    pub(crate) membership: Rc<RefCell<Box<dyn Membership>>>,
    /// The name of this process, which no other one has.
    name: String,
    count: u32,
    owned: RefCell<BTreeMap<u32, SharedHub>>,
    /// The nodes that this one does not reach, and since when.
    unreachable: RefCell<HashMap<String, Instant>>,
    /// Told when slots have other owners than before.
    pub(crate) news: Notify,
}

impl Slots {
    pub(crate) fn new(membership: Box<dyn Membership>, name: String) -> Self {
        let count = membership.slots();
        let membership = Rc::new(RefCell::new(membership));
        Self {
            membership,
            name,
            count,
            owned: RefCell::default(),
            unreachable: RefCell::default(),
            news: Notify::new(),
        }
    }

    /// Returns the name of this process.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Returns how many slots the cluster has.
    pub(crate) fn count(&self) -> u32 {
        self.count
    }

    /// Returns the hub of a slot that this node serves.
    pub(crate) fn get(&self, number: u32) -> Option<SharedHub> {
        self.owned.borrow().get(&number).cloned()
    }

    /// Serves a slot.
    pub(crate) fn add(&self, number: u32, hub: Hub) -> SharedHub {
        let hub = Rc::new(RefCell::new(hub));
        self.owned.borrow_mut().insert(number, hub.clone());
        self.news.notify_waiters();
        hub
    }

    /// Serves a slot no more: its connections are sent to the node that has it, if one is known.
    pub(crate) fn remove(
        &self,
        number: u32,
        to: Option<String>,
        now: Instant,
    ) -> Option<SharedHub> {
        let hub = self.owned.borrow_mut().remove(&number)?;
        hub.borrow_mut().retire(&Fault::moved(to), now);
        Some(hub)
    }

    /// Returns the numbers of the slots that this node serves.
    pub(crate) fn numbers(&self) -> Vec<u32> {
        self.owned.borrow().keys().copied().collect()
    }

    pub(crate) fn hubs(&self) -> Vec<SharedHub> {
        self.owned.borrow().values().cloned().collect()
    }

    /// Notes that this node does not reach another one.
    pub(crate) fn note_unreachable(&self, address: String) {
        let mut unreachable = self.unreachable.borrow_mut();
        unreachable.retain(|_, since| since.elapsed() < UNREACHABLE_FOR);
        unreachable.insert(address, Instant::now());
    }

    /// Notes that this node has reached another one.
    pub(crate) fn reached(&self, address: &str) {
        self.unreachable.borrow_mut().remove(address);
    }

    /// Returns true if this node may try to reach another one. After an attempt that failed, one
    /// task tries it again at a time.
    pub(crate) fn may_dial(&self, address: &str) -> bool {
        let mut unreachable = self.unreachable.borrow_mut();
        let Some(since) = unreachable.get_mut(address) else { return true };
        let is_due = since.elapsed() >= UNREACHABLE_FOR;
        if is_due {
            *since = Instant::now();
        }
        is_due
    }

    /// Returns the address of the node that owns a slot, unless that is this one.
    pub(crate) fn owner_elsewhere(&self, slot: u32) -> Option<String> {
        let membership = self.membership.borrow();
        membership.owner(slot).filter(|owner| owner != membership.address())
    }
}

/// The hubs that have the locks of a service, by slot: one, or those of a node of a cluster.
pub(crate) struct Sight<'a> {
    count: u32,
    hubs: BTreeMap<u32, &'a Hub>,
    /// The hub of dashboards in a cluster: it has sessions, and no locks.
    apart: Option<&'a Hub>,
}

impl Sight<'_> {
    /// Returns all hubs with sessions.
    pub(crate) fn hubs(&self) -> impl Iterator<Item = &Hub> {
        self.hubs.values().copied().chain(self.apart)
    }

    /// Returns all partitions.
    pub(crate) fn partitions(&self) -> impl Iterator<Item = &Partition> {
        self.hubs.values().flat_map(|hub| hub.partitions.living())
    }

    /// Returns the hub that may have a partition.
    pub(crate) fn hub_of(&self, key: &PartitionKey) -> Option<&Hub> {
        self.hubs.get(&slot_of_key(key, self.count)).copied()
    }

    pub(crate) fn find(&self, key: &PartitionKey) -> Option<&Partition> {
        let partitions = &self.hub_of(key)?.partitions;
        partitions.find(key).map(|index| &partitions[index])
    }

    /// Returns the keys of the partitions that a peer may know of, in order.
    pub(crate) fn keys_visible_to(&self, peer: &Peer) -> Vec<PartitionKey> {
        let keys = self.partitions().map(|partition| &partition.key);
        let mut keys: Vec<PartitionKey> =
            keys.filter(|key| key.is_visible_to(peer)).cloned().collect();
        keys.sort();
        keys
    }

    /// Describes the node at this address.
    pub(crate) fn node(&self, address: &str) -> ServiceNode {
        let recovers = |(_, hub): &(&u32, &&Hub)| hub.found.hides_holders();
        ServiceNode {
            address: address.to_owned(),
            slots: self.count,
            owned: self.hubs.len() as u32,
            recovering: self.hubs.iter().filter(recovers).map(|(&number, _)| number).collect(),
        }
    }
}

impl Hub {
    /// Looks at all hubs that have the locks of the service.
    pub(crate) fn look<T>(&self, look: impl FnOnce(&Sight<'_>) -> T) -> T {
        let Some(slots) = self.common.slots.upgrade() else {
            return look(&Sight { count: 1, hubs: BTreeMap::from([(0, self)]), apart: None });
        };
        let own = self.slot.map(|slot| slot.number);
        let owned = slots.owned.borrow();
        let others = owned.iter().filter(|(number, _)| Some(**number) != own);
        let others: Vec<(u32, Ref<'_, Self>)> =
            others.map(|(&number, hub)| (number, hub.borrow())).collect();
        let mut hubs: BTreeMap<u32, &Self> =
            others.iter().map(|(number, hub)| (*number, &**hub)).collect();
        if let Some(own) = own {
            hubs.insert(own, self);
        }
        let apart = own.is_none().then_some(self);
        look(&Sight { count: slots.count, hubs, apart })
    }

    /// Takes a step in the hub that may have a partition, if this node has it.
    pub(crate) fn within_hub_of<T>(
        &mut self,
        key: &PartitionKey,
        step: impl FnOnce(&mut Self) -> T,
    ) -> Option<T> {
        self.within_slot(|count| slot_of_key(key, count), step)
    }

    /// Takes a step in the hub that may have a session, if this node has it.
    pub(crate) fn within_hub_of_session<T>(
        &mut self,
        session: u32,
        step: impl FnOnce(&mut Self) -> T,
    ) -> Option<T> {
        if is_numbered_apart(session) {
            return Some(step(self));
        }
        self.within_slot(|count| session % count, step)
    }

    fn within_slot<T>(
        &mut self,
        number: impl FnOnce(u32) -> u32,
        step: impl FnOnce(&mut Self) -> T,
    ) -> Option<T> {
        let Some(slots) = self.common.slots.upgrade() else { return Some(step(self)) };
        let number = number(slots.count);
        if self.slot.is_some_and(|slot| slot.number == number) {
            return Some(step(self));
        }
        let hub = slots.get(number)?;
        let mut hub = hub.borrow_mut();
        Some(step(&mut hub))
    }

    /// Takes a step in each hub that has locks.
    pub(crate) fn within_each_hub(&mut self, step: impl Fn(&mut Self)) {
        if self.has_locks() {
            step(self);
        }
        let Some(slots) = self.common.slots.upgrade() else { return };
        let own = self.slot.map(|slot| slot.number);
        for number in slots.numbers().into_iter().filter(|&number| Some(number) != own) {
            if let Some(hub) = slots.get(number) {
                step(&mut hub.borrow_mut());
            }
        }
    }

    /// Returns false for the hub of dashboards in a cluster.
    pub(crate) fn has_locks(&self) -> bool {
        self.slot.is_some() || self.common.slots.strong_count() == 0
    }
}

fn slot_of_key(key: &PartitionKey, count: u32) -> u32 {
    match count {
        1 => 0,
        count => key.slot(count),
    }
}
