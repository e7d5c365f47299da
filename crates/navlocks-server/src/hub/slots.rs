//! The slots of a cluster that a node serves, each with a hub.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;
use std::time::{Duration, Instant};

use navlocks_wire::Fault;
use tokio::sync::Notify;

use super::Hub;
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

    /// Returns the hubs by slot.
    pub(crate) fn hubs(&self) -> BTreeMap<u32, SharedHub> {
        self.owned.borrow().clone()
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
