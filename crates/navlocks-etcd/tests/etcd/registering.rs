//! An owner inherits all that the one before wrote, and a former owner writes nothing.

use navlocks_etcd::{Change, Epoch, Registry as _, TakenRecord};

use super::*;

#[tokio::test]
async fn next_owner_inherits_what_was_confirmed() {
    let etcd = etcd(1);
    let one = config(&etcd, "n1").with(|it| it.slots = 1);
    let mut first = Node::join(one.clone()).await.unwrap();
    first.until(|node| node.slots.len() == 1).await;
    let (slot, inherited) = first.slots.get_mut(&0).unwrap();
    assert_eq!((inherited.sessions.len(), inherited.tokens_reserved_to), (0, 0));
    // More than a page, so that the next owner reads several.
    let count = 4_500;
    (0..count).for_each(|number| _ = slot.write(Change::Begin(session(number))));
    slot.write(Change::End(SessionKey(3)));
    let robbed = TakenRecord { victim: (SessionKey(1), 7), thief: Some((SessionKey(2), 9)) };
    let released = TakenRecord { victim: (SessionKey(1), 8), thief: None };
    slot.write(Change::Taken(robbed.clone()));
    slot.write(Change::Taken(released));
    slot.write(Change::Heard(SessionKey(1), 8));
    slot.write(Change::Taken(TakenRecord { victim: (SessionKey(4), 1), thief: None }));
    slot.write(Change::Reserve(1_000));
    slot.write(Change::Reserve(2_000));
    let last = slot.write(Change::GraceOver(vec![SessionKey(4), SessionKey(5)]));
    slot.flushed().await.unwrap();
    assert_eq!(slot.confirmed(), last);
    let epoch = slot.epoch();
    drop(first);

    let mut second = Node::join(one.with(|it| it.name = "n2".to_owned())).await.unwrap();
    second.until(|node| node.slots.len() == 1).await;
    let (slot, inherited) = &second.slots[&0];
    assert!(slot.epoch() > epoch);
    let ended = [3, 4, 5];
    let expected: Vec<_> = (0..count).filter(|it| !ended.contains(it)).map(session).collect();
    assert!(inherited.sessions == expected, "{} sessions", inherited.sessions.len());
    assert_eq!(inherited.taken, [robbed]);
    assert_eq!(inherited.tokens_reserved_to, 2_000);
    assert_eq!(inherited.grace_over, Some(epoch));
    assert!(epoch > Epoch(0) && inherited.is_complete);
}

/// Lets the cluster look as if etcd was restored from a backup since it was last written.
async fn forge_restore(etcd: &EtcdMembers) {
    let mut operator = client(etcd).await;
    let found = operator.get("/navlocks/cluster", None).await.unwrap();
    let text = found.kvs()[0].value_str().unwrap().to_owned();
    let (before, rest) = text.split_once("\"etcd\":\"").unwrap();
    let (_, after) = rest.split_once('"').unwrap();
    let forged = format!("{before}\"etcd\":\"of the backup\"{after}");
    operator.put("/navlocks/cluster", forged, None).await.unwrap();
}

#[tokio::test]
async fn registry_of_a_restored_etcd_is_complete_when_an_owner_has_ended_its_grace() {
    let etcd = etcd(1);
    let node = |name: &str| config(&etcd, name).with(|it| it.slots = 1);
    let mut is_complete = Vec::new();
    for (name, ends_grace) in [("n1", true), ("n2", false), ("n3", true), ("n4", false)] {
        let mut owner = Node::join(node(name)).await.unwrap();
        owner.until(|node| node.slots.len() == 1).await;
        let (slot, inherited) = &owner.slots[&0];
        is_complete.push(inherited.is_complete);
        if ends_grace {
            slot.write(Change::GraceOver(Vec::new()));
            slot.flushed().await.unwrap();
        }
        drop(owner);
        if name == "n1" {
            forge_restore(&etcd).await;
        }
    }
    // The second owner died during its grace, so the third one waits as well.
    assert_eq!(is_complete, [true, false, false, true]);
}

#[tokio::test]
async fn former_owner_cannot_write_any_more() {
    let etcd = etcd(1);
    let mut first = Node::join(config(&etcd, "n1")).await.unwrap();
    first.until_all_slots().await;
    // The node stops renewing, as if it was stopped, but its slots are still there.
    let Node { member, mut slots, .. } = first;
    drop(member);
    let mut second = Node::join(config(&etcd, "n2")).await.unwrap();
    second.until_all_slots().await;
    let (slot, _) = slots.get_mut(&0).unwrap();
    assert!(slot.may_serve_until() < now());
    let number = slot.write(Change::Begin(session(1)));
    assert_eq!(slot.flushed().await, Err(Ended::Lost));
    assert!(slot.confirmed() < number);
    let keys = client(&etcd).await.get("/navlocks/sessions/", Some(all())).await.unwrap();
    assert_eq!(keys.count(), 0);
}
