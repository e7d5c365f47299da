//! An etcd that has lost what nodes wrote to it: deleted, replaced or restored from a backup.

use std::future::poll_fn;

use navlocks_etcd::{Change, Epoch, Inspection, Registry, TlsFiles};
use navlocks_server::cluster::{self, Membership as _};

use super::*;

/// A node that joins again by itself, and the slots that it owns.
struct Service {
    node: navlocks_etcd::Node,
    slots: BTreeMap<u32, (Box<dyn Registry>, Inherited)>,
    gains: usize,
}

impl Service {
    /// Starts the only node, which ends the grace of all its slots and reserves tokens.
    async fn start(etcd: &EtcdMembers) -> Self {
        let node = navlocks_etcd::Node::join(config(etcd, "n1")).await.unwrap();
        let mut service = Self { node, slots: BTreeMap::new(), gains: 0 };
        service.until_gains(SLOTS as usize).await;
        service.write(Change::Reserve(1_000_000)).await;
        service.write(Change::GraceOver(Vec::new())).await;
        service
    }

    /// Writes a change to each slot.
    async fn write(&self, change: Change) {
        for (slot, _) in self.slots.values() {
            slot.write(change.clone());
            while !slot.is_flushed() {
                timeout(PATIENCE, slot.news().notified()).await.unwrap();
            }
        }
    }

    /// Takes part until so many slots were gained in all.
    async fn until_gains(&mut self, gains: usize) {
        while self.gains < gains {
            let event = timeout(PATIENCE, poll_fn(|cx| self.node.poll_event(cx))).await;
            match event.expect("an event in time").expect("the node lives") {
                cluster::Event::Gained(slot, inherited) => {
                    self.gains += 1;
                    self.slots.insert(slot.slot(), (slot, inherited));
                }
                cluster::Event::Lost(slot) => _ = self.slots.remove(&slot),
                cluster::Event::Moved => {}
                cluster::Event::Give { .. } => panic!("there is no other node"),
            }
        }
    }

    fn epoch(&self) -> Epoch {
        self.slots.values().map(|(slot, _)| slot.epoch()).max().unwrap()
    }

    /// Checks that a fault lets the node wait in all its slots, and that no number goes back.
    async fn assert_waits_after(mut self, fault: impl AsyncFnOnce()) {
        assert!(self.slots.values().all(|(_, inherited)| inherited.is_complete));
        let epoch = self.epoch();
        fault().await;
        self.until_gains(2 * SLOTS as usize).await;
        for (slot, inherited) in self.slots.values() {
            assert!(!inherited.is_complete, "{inherited:?}");
            assert!(inherited.tokens_reserved_to >= 1_000_000, "{inherited:?}");
            assert!(slot.epoch() > epoch);
        }
    }
}

async fn delete_prefix(etcd: &EtcdMembers) {
    let all = etcd_client::DeleteOptions::new().with_prefix();
    client(etcd).await.delete("/navlocks/", Some(all)).await.unwrap();
}

#[tokio::test]
async fn node_waits_after_an_operator_deleted_the_prefix() {
    let etcd = etcd(1);
    Service::start(&etcd).await.assert_waits_after(async || delete_prefix(&etcd).await).await;
}

#[tokio::test]
async fn node_waits_after_a_restore_that_keeps_the_id_of_etcd() {
    let mut etcd = etcd(1);
    let service = Service::start(&etcd).await;
    etcd.save().unwrap();
    service.write(Change::Begin(session(1))).await;
    service.assert_waits_after(async || etcd.restore().unwrap()).await;
}

#[tokio::test]
async fn node_waits_after_a_restore_that_others_have_outwritten() {
    let mut etcd = etcd(1);
    let service = Service::start(&etcd).await;
    etcd.save().unwrap();
    let mut operator = client(&etcd).await;
    let renewal = async |operator: &mut etcd_client::Client| {
        let found = operator.get("/navlocks/nodes/", Some(all())).await.unwrap();
        found.kvs()[0].mod_revision()
    };
    let before = renewal(&mut operator).await;
    while renewal(&mut operator).await == before {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let lost = renewal(&mut operator).await - before;
    let restore = async || {
        // The node cannot renew meanwhile, because its task waits for this thread.
        etcd.restore().unwrap();
        for _ in 0..lost + 5 {
            etcd.etcdctl(&["put", "/other", "x"]).unwrap();
        }
    };
    service.assert_waits_after(restore).await;
}

#[tokio::test]
async fn node_waits_after_a_batch_of_an_owner_is_lost() {
    let etcd = etcd(1);
    let service = Service::start(&etcd).await;
    let mut operator = client(&etcd).await;
    operator.delete("/navlocks/batches/0000", None).await.unwrap();
    service.slots[&0].0.write(Change::Begin(session(1)));
    service.assert_waits_after(async || ()).await;
}

#[tokio::test]
async fn node_waits_after_an_empty_etcd_replaced_its_own() {
    let mut etcd = etcd(1);
    let service = Service::start(&etcd).await;
    service.assert_waits_after(async || etcd.replace().unwrap()).await;
}

#[tokio::test]
async fn node_waits_after_an_operator_noted_a_restore() {
    let etcd = etcd(1);
    let service = Service::start(&etcd).await;
    let operator = Inspection::new(&address(&etcd), &TlsFiles::default()).unwrap();
    service.assert_waits_after(async || operator.note_restored().await.unwrap()).await;
}

#[tokio::test]
async fn node_uses_the_secret_of_the_record_that_it_joined_last() {
    let etcd = etcd(1);
    let mut service = Service::start(&etcd).await;
    let secret = service.node.secret();
    delete_prefix(&etcd).await;
    service.until_gains(2 * SLOTS as usize).await;
    assert_ne!(service.node.secret(), secret);
    let found = client(&etcd).await.get("/navlocks/cluster", None).await.unwrap();
    let record = found.kvs()[0].value_str().unwrap().to_owned();
    assert!(record.contains(&service.node.secret()), "{record}");
}

/// Starts a node and returns whether it waits for the longest lease.
async fn waits(etcd: &EtcdMembers, name: &str) -> bool {
    let mut node = Node::join(config(etcd, name)).await.unwrap();
    node.until_all_slots().await;
    let waiting = node.slots.values().filter(|(_, inherited)| !inherited.is_complete).count();
    assert!(waiting == 0 || waiting == SLOTS as usize, "{waiting}");
    waiting > 0
}

#[tokio::test]
async fn first_node_waits_unless_the_history_shows_that_no_cluster_was_there() {
    let etcd = etcd(1);
    let mut operator = client(&etcd).await;
    operator.put("/other", "x", None).await.unwrap();
    assert!(!waits(&etcd, "n1").await);
    let found = operator.get("/navlocks/cluster-begins", None).await.unwrap();
    assert_eq!(found.count(), 0);
    delete_prefix(&etcd).await;
    assert!(waits(&etcd, "n2").await);
    let deleted = client(&etcd).await.delete("/other", None).await.unwrap();
    delete_prefix(&etcd).await;
    let revision = deleted.header().unwrap().revision();
    operator.compact(revision, None).await.unwrap();
    assert!(waits(&etcd, "n3").await);
}

#[tokio::test]
async fn nodes_that_start_after_a_restore_wait_if_the_operator_says_so() {
    let mut etcd = etcd(1);
    drop(Service::start(&etcd).await);
    etcd.save().unwrap();
    etcd.restore().unwrap();
    let operator = Inspection::new(&address(&etcd), &TlsFiles::default()).unwrap();
    operator.note_restored().await.unwrap();
    assert!(waits(&etcd, "n2").await);
}
