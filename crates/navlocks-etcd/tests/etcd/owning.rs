//! Slots are spread, move and are taken over.

use std::collections::BTreeSet;

use etcd_client::{AlarmAction, AlarmType};
use navlocks_etcd::{Change, Epoch, Inspection, Registry as _, TlsFiles};

use super::*;

#[tokio::test]
async fn first_node_gets_all_slots_and_shares_them_with_the_second() {
    let etcd = etcd(1);
    let mut first = Node::join(config(&etcd, "n1")).await.unwrap();
    first.until_all_slots().await;
    let epochs: Vec<_> = first.slots.values().map(|(slot, _)| slot.epoch()).collect();
    assert!(
        first.slots.values().all(|(slot, it)| it.is_complete && slot.may_serve_until() > now())
    );
    let mut second = Node::join(config(&etcd, "n2")).await.unwrap();
    // Rendezvous hashing gives the second node the same slots each time.
    let moved = 4;
    tokio::join!(
        first.until(|node| node.slots.len() == SLOTS as usize - moved),
        second.until(|node| node.slots.len() == moved),
    );
    assert!(first.lost.iter().all(|(slot, _)| second.slots.contains_key(slot)));
    let last = epochs.iter().max().unwrap();
    assert!(second.slots.values().all(|(slot, _)| slot.epoch() > *last));

    let view = Inspection::new(&address(&etcd), &TlsFiles::default()).unwrap();
    let view = view.look().await.unwrap();
    let slots: Vec<_> = view.nodes.iter().map(|node| (node.name.as_str(), node.slots)).collect();
    assert_eq!(slots, [("n1", SLOTS as usize - moved), ("n2", moved)]);
    for number in second.slots.keys() {
        let slot = &view.slots[*number as usize];
        assert_eq!(slot.address.as_deref(), Some("ws://n2.example:7400"));
    }
}

#[tokio::test]
async fn slots_of_a_dead_node_are_taken_after_its_belief_is_over() {
    let etcd = etcd(1);
    let mut first = Node::join(config(&etcd, "n1")).await.unwrap();
    first.until_all_slots().await;
    let believed_until = first.member.may_serve_until();
    drop(first.member);
    let mut second = Node::join(config(&etcd, "n2")).await.unwrap();
    second.until_all_slots().await;
    for (_, inherited) in second.slots.values() {
        assert!(won_at(inherited) > believed_until, "{inherited:?}");
    }
}

#[tokio::test]
async fn all_slots_of_a_dead_node_are_taken_in_few_transactions() {
    let etcd = etcd(1);
    let many = |name| config(&etcd, name).with(|it| it.slots = 64);
    let mut first = Node::join(many("n1")).await.unwrap();
    first.until(|node| node.slots.len() == 64).await;
    drop(first);
    let mut second = Node::join(many("n2")).await.unwrap();
    second.until(|node| node.slots.len() == 64).await;
    let epochs: BTreeSet<Epoch> = second.slots.values().map(|(slot, _)| slot.epoch()).collect();
    assert_eq!(epochs.len(), 4, "one for each transaction");
}

#[tokio::test]
async fn node_that_starts_again_takes_its_own_slots_like_a_strangers() {
    let etcd = etcd(1);
    let mut first = Node::join(config(&etcd, "n1")).await.unwrap();
    first.until_all_slots().await;
    let believed_until = first.member.may_serve_until();
    drop(first);
    let mut again = Node::join(config(&etcd, "n1")).await.unwrap();
    again.until_all_slots().await;
    assert!(again.slots.values().all(|(_, inherited)| won_at(inherited) > believed_until));
}

#[tokio::test]
async fn node_that_leaves_is_not_waited_for() {
    let etcd = etcd(1);
    let mut first = Node::join(config(&etcd, "n1")).await.unwrap();
    first.until_all_slots().await;
    let mut second = Node::join(config(&etcd, "n2")).await.unwrap();
    let start = now();
    let (left, ()) = tokio::join!(first.member.leave(), second.until_all_slots());
    left.unwrap();
    let took = now().since(start);
    assert!(took < NODE_LEASE / 2, "{took:?}");
}

#[tokio::test]
async fn epochs_grow_above_one_that_a_client_has_seen() {
    let etcd = etcd(1);
    let mut node = Node::join(config(&etcd, "n1")).await.unwrap();
    node.until_all_slots().await;
    let seen = Epoch(1_000_000);
    node.member.raise_epochs(seen).await.unwrap();
    node.until(|node| node.lost.len() == SLOTS as usize).await;
    node.until_all_slots().await;
    assert!(node.slots.values().all(|(slot, _)| slot.epoch() > seen));
}

#[tokio::test]
async fn epoch_that_no_cluster_ever_had_is_refused_and_costs_no_slot() {
    let etcd = etcd(1);
    let mut node = Node::join(config(&etcd, "n1")).await.unwrap();
    node.until_all_slots().await;
    for seen in [u64::MAX, 1 << 53, (1 << 52) + 1] {
        assert_eq!(node.member.raise_epochs(Epoch(seen)).await, Err(Error::Epoch(seen)));
    }
    // One that is below those of the slots costs none either.
    node.member.raise_epochs(Epoch(1)).await.unwrap();
    let mut operator = client(&etcd).await;
    operator.delete("/navlocks/batches/0000", None).await.unwrap();
    node.slots[&0].0.write(Change::Reserve(7));
    node.until(|node| node.ended.is_some()).await;
    assert!(node.lost.iter().all(|(_, cause)| *cause == Ended::Node(Error::Restored)));
}

#[tokio::test]
async fn slot_that_could_not_be_given_is_taken_again_and_given() {
    let etcd = etcd(1);
    let mut first = Node::join(config(&etcd, "n1")).await.unwrap();
    first.until_all_slots().await;
    let mut second = Node::join(config(&etcd, "n2")).await.unwrap();
    let given = first.member.next_event().await;
    let Some(Event::Give { slot, .. }) = given else { panic!("{given:?}") };
    let mut operator = client(&etcd).await;
    // An etcd whose store is full refuses all writes.
    operator.alarm(AlarmAction::Activate, AlarmType::Nospace, None).await.unwrap();
    assert_eq!(first.member.give(slot).await, Err(Error::StoreFull));
    operator.alarm(AlarmAction::Deactivate, AlarmType::Nospace, None).await.unwrap();
    tokio::join!(
        first.until(|node| node.slots.len() == SLOTS as usize - 4),
        second.until(|node| node.slots.len() == 4),
    );
}

#[tokio::test]
async fn drain_of_a_killed_node_is_removed() {
    let etcd = etcd(1);
    let mut first = Node::join(config(&etcd, "n1")).await.unwrap();
    first.until_all_slots().await;
    let mut second = Node::join(config(&etcd, "n2")).await.unwrap();
    let operator = Inspection::new(&address(&etcd), &TlsFiles::default()).unwrap();
    operator.drain("n1", true).await.unwrap();
    tokio::join!(first.until(|node| node.slots.is_empty()), second.until_all_slots());
    drop(first);
    let mut client = client(&etcd).await;
    while client.get("/navlocks/drain/", Some(all())).await.unwrap().count() > 0 {
        second.renewals(1).await;
    }
}

#[tokio::test]
async fn drained_node_gives_all_its_slots_away_and_gets_them_back() {
    let etcd = etcd(1);
    let mut first = Node::join(config(&etcd, "n1")).await.unwrap();
    first.until_all_slots().await;
    let mut second = Node::join(config(&etcd, "n2")).await.unwrap();
    let operator = Inspection::new(&address(&etcd), &TlsFiles::default()).unwrap();
    operator.drain("n1", true).await.unwrap();
    tokio::join!(first.until(|node| node.slots.is_empty()), second.until_all_slots());
    operator.drain("n1", false).await.unwrap();
    tokio::join!(
        first.until(|node| !node.slots.is_empty()),
        second.until(|node| node.slots.len() < SLOTS as usize),
    );
    assert_eq!(operator.drain("n3", true).await, Err(Error::NoSuchNode("n3".to_owned())));
}
