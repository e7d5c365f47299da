//! Members of etcd that are killed, stopped, full or compacted, and keys that are deleted by hand.

use navlocks_etcd::{Change, Inspection, Registry as _, TlsFiles};

use super::*;

#[tokio::test]
async fn owner_goes_on_while_members_are_killed_and_stopped_in_turn() {
    let mut etcd = etcd(3);
    let mut node = Node::join(config(&etcd, "n1")).await.unwrap();
    node.until_all_slots().await;
    for number in 0..3 {
        etcd.pause(number);
        let (slot, _) = node.slots.get_mut(&0).unwrap();
        slot.write(Change::Begin(session(number as u128)));
        timeout(PATIENCE, slot.flushed()).await.unwrap().unwrap();
        node.renewals(2).await;
        etcd.resume(number);
        etcd.kill(number);
        node.renewals(2).await;
        etcd.restart(number).unwrap();
    }
    assert!(node.member.may_serve_until() > now());
    assert!(node.lost.is_empty() && node.ended.is_none());
}

#[tokio::test]
async fn owner_without_quorum_stops_believing_and_resumes_with_it() {
    let etcd = etcd(3);
    let mut node = Node::join(config(&etcd, "n1")).await.unwrap();
    node.until_all_slots().await;
    [0, 1].into_iter().for_each(|number| etcd.pause(number));
    let (slot, _) = node.slots.get_mut(&0).unwrap();
    slot.write(Change::Reserve(7));
    // The time of a belief is the subject here.
    while slot.may_serve_until() > now() {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert!(timeout(Duration::from_millis(100), slot.flushed()).await.is_err());
    let refused = timeout(PATIENCE, Node::join(config(&etcd, "n2"))).await.unwrap();
    let refused = refused.map(|_| ()).unwrap_err();
    assert!(matches!(refused, Error::NoQuorum(_) | Error::Unreachable { .. }), "{refused:?}");
    [0, 1].into_iter().for_each(|number| etcd.resume(number));
    node.renewals(1).await;
    let (slot, _) = &node.slots[&0];
    timeout(PATIENCE, slot.flushed()).await.unwrap().unwrap();
    assert!(slot.may_serve_until() > now());
}

#[tokio::test]
async fn outage_of_etcd_moves_no_slot() {
    let mut etcd = etcd(1);
    let mut first = Node::join(config(&etcd, "n1")).await.unwrap();
    first.until_all_slots().await;
    let mut second = Node::join(config(&etcd, "n2")).await.unwrap();
    let half = |node: &Node| node.slots.len() == SLOTS as usize / 2;
    tokio::join!(first.until(half), second.until(half));
    let moved = first.lost.len();
    etcd.kill(0);
    // Each node would find the other one silent after a whole lease.
    let over = now().plus(NODE_LEASE * 2);
    while now() < over {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    etcd.restart(0).unwrap();
    let renewals = |node: &Node| node.member.views().borrow().nodes.len();
    for _ in 0..5 {
        tokio::join!(first.renewals(1), second.renewals(1));
        assert_eq!((renewals(&first), renewals(&second)), (2, 2));
    }
    for node in [&mut first, &mut second] {
        assert!(
            timeout(Duration::ZERO, node.member.next_event()).await.is_err(),
            "a slot has moved"
        );
    }
    assert_eq!((first.lost.len(), second.lost.len()), (moved, 0));
}

#[tokio::test]
async fn compaction_under_a_watch_is_survived() {
    let etcd = etcd(1);
    let mut first = Node::join(config(&etcd, "n1")).await.unwrap();
    first.until_all_slots().await;
    let mut second = Node::join(config(&etcd, "n2")).await.unwrap();
    let some = |node: &Node| !node.slots.is_empty();
    tokio::join!(first.until(|node| !node.lost.is_empty()), second.until(some));
    let mut operator = client(&etcd).await;
    for _ in 0..3 {
        let revision = operator.put("/other", "x", None).await.unwrap();
        let revision = revision.header().unwrap().revision();
        operator.compact(revision, None).await.unwrap();
    }
    drop(first);
    second.until_all_slots().await;
}

#[tokio::test]
async fn node_whose_key_is_deleted_by_hand_ends_and_is_still_waited_for() {
    let etcd = etcd(1);
    let mut first = Node::join(config(&etcd, "n1")).await.unwrap();
    first.until_all_slots().await;
    let key = format!("/navlocks/nodes/{}", first.member.incarnation());
    let believed_until = first.member.may_serve_until();
    client(&etcd).await.delete(key, None).await.unwrap();
    let mut second = Node::join(config(&etcd, "n2")).await.unwrap();
    first.until(|node| node.ended.is_some()).await;
    assert_eq!(first.ended, Some(Error::Ended));
    assert!(first.slots.is_empty() && first.member.may_serve_until() < now());
    second.until_all_slots().await;
    assert!(second.slots.values().all(|(_, inherited)| won_at(inherited) > believed_until));
}

#[tokio::test]
async fn full_store_is_told_and_left_when_there_is_room() {
    let etcd = EtcdMembers::start(1, &["--quota-backend-bytes", "3000000"]).unwrap();
    let mut node = Node::join(config(&etcd, "n1")).await.unwrap();
    node.until_all_slots().await;
    let mut operator = client(&etcd).await;
    let filler = vec![b'x'; 500_000];
    let mut writes = 0;
    while operator.put(format!("/filler/{writes}"), filler.clone(), None).await.is_ok() {
        writes += 1;
    }
    let refused = Node::join(config(&etcd, "n2")).await.map(|_| ()).unwrap_err();
    assert_eq!(refused, Error::StoreFull);
    let doctor = Inspection::new(&address(&etcd), &TlsFiles::default()).unwrap();
    assert!(doctor.health().await.unwrap().is_full);
    // The owner cannot renew either.
    while node.member.may_serve_until() > now() {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let all = etcd_client::DeleteOptions::new().with_prefix();
    let deleted = operator.delete("/filler/", Some(all)).await.unwrap();
    let revision = deleted.header().unwrap().revision();
    operator.compact(revision, None).await.unwrap();
    operator.defragment().await.unwrap();
    disarm(&mut operator).await;
    node.renewals(1).await;
    assert!(node.member.may_serve_until() > now());
    let health = doctor.health().await.unwrap();
    assert!(!health.is_full && health.write > Duration::ZERO, "{health:?}");
}

async fn disarm(operator: &mut etcd_client::Client) {
    use etcd_client::{AlarmAction, AlarmOptions, AlarmType};
    let armed = operator.alarm(AlarmAction::Get, AlarmType::None, None).await.unwrap();
    for alarm in armed.alarms() {
        let mut member = AlarmOptions::new();
        member.with_member(alarm.member_id());
        operator.alarm(AlarmAction::Deactivate, alarm.alarm(), Some(member)).await.unwrap();
    }
}

#[tokio::test]
async fn nodes_compact_the_history_of_etcd() {
    let etcd = etcd(1);
    let compact_after = Duration::from_millis(100);
    let config = |name| config(&etcd, name).with(|it| it.compact_after = compact_after);
    let first = Node::join(config("n1")).await.unwrap();
    let second = Node::join(config("n2")).await.unwrap();
    let mut client = client(&etcd).await;
    let old = client.put("/elsewhere", "1", None).await.unwrap();
    let old = old.header().unwrap().revision();
    let options = || etcd_client::GetOptions::new().with_revision(old);
    assert!(client.get("/elsewhere", Some(options())).await.is_ok());
    let compacted = async {
        while client.get("/elsewhere", Some(options())).await.is_ok() {
            client.put("/elsewhere", "2", None).await.unwrap();
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    timeout(PATIENCE, compacted).await.expect("one of the nodes compacts");
    // Both go on.
    tokio::join!(first.renewals(2), second.renewals(2));
    assert!(first.ended.is_none() && second.ended.is_none());
}
