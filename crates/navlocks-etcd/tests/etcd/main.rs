//! The crate against a real etcd, with one member and with three.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed, and says where")]

mod faults;
mod joining;
mod owning;
mod registering;
mod restoring;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use navlocks_etcd::{
    Address, BootClock, Clock as _, Config, Ended, Error, Event, Inherited, Member, Moment,
    OwnedSlot, SessionKey, SessionRecord,
};
use servers::EtcdMembers;
use tokio::time::timeout;

/// Far more than anything here takes.
const PATIENCE: Duration = Duration::from_secs(60);
const SLOTS: u32 = 8;
/// Long enough for a machine that is busy with other tests.
const NODE_LEASE: Duration = Duration::from_secs(3);

fn etcd(count: usize) -> EtcdMembers {
    EtcdMembers::start_in_memory(count).unwrap()
}

fn address(etcd: &EtcdMembers) -> Address {
    Address::parse(&format!("etcd://{}", etcd.addresses().join(","))).unwrap()
}

fn config(etcd: &EtcdMembers, name: &str) -> Config {
    let advertise = format!("ws://{name}.example:7400");
    let config = Config::new(address(etcd), name, &advertise);
    config.with(|it| (it.slots, it.node_lease) = (SLOTS, NODE_LEASE))
}

async fn client(etcd: &EtcdMembers) -> etcd_client::Client {
    etcd_client::Client::connect(etcd.addresses(), None).await.unwrap()
}

/// The options to read all keys below a prefix.
fn all() -> etcd_client::GetOptions {
    etcd_client::GetOptions::new().with_prefix()
}

fn now() -> Moment {
    BootClock.now()
}

/// The moment when a slot was won.
fn won_at(inherited: &Inherited) -> Moment {
    Moment::new(now().since_start() - inherited.won_at.elapsed())
}

fn session(number: u128) -> SessionRecord {
    let (lease, proof) = (Duration::from_secs(10), format!("proof {number}"));
    SessionRecord { key: SessionKey(number), lease, proof }
}

/// A node and the slots that it owns.
struct Node {
    member: Member,
    slots: BTreeMap<u32, (OwnedSlot, Inherited)>,
    lost: Vec<(u32, Ended)>,
    ended: Option<Error>,
}

impl Node {
    async fn join(config: Config) -> Result<Self, Error> {
        let member = Member::join(config, Arc::new(BootClock)).await?;
        Ok(Self { member, slots: BTreeMap::new(), lost: Vec::new(), ended: None })
    }

    /// Takes part until the condition is true: gives slots away when it is told to.
    async fn until(&mut self, condition: impl Fn(&Self) -> bool) {
        let wait = async {
            while !condition(self) {
                match self.member.next_event().await {
                    Some(Event::Gained(slot, inherited)) => {
                        self.slots.insert(slot.slot(), (slot, inherited));
                    }
                    Some(Event::Lost(slot, cause)) => {
                        self.slots.remove(&slot);
                        self.lost.push((slot, cause));
                    }
                    Some(Event::Give { slot, .. }) => {
                        let (owned, _) = &self.slots[&slot];
                        owned.flushed().await.unwrap();
                        self.member.give(slot).await.unwrap();
                    }
                    Some(Event::Moved) => {}
                    Some(Event::Ended(error)) => self.ended = Some(error),
                    None => panic!("no more events"),
                }
            }
        };
        timeout(PATIENCE, wait).await.expect("the condition becomes true in time");
    }

    async fn until_all_slots(&mut self) {
        self.until(|node| node.slots.len() == SLOTS as usize).await;
    }

    /// Waits for so many further renewals.
    async fn renewals(&self, count: usize) {
        let mut views = self.member.views();
        views.borrow_and_update();
        let wait = async {
            for _ in 0..count {
                views.changed().await.unwrap();
            }
        };
        timeout(PATIENCE, wait).await.expect("the node renews in time");
    }
}
