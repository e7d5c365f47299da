//! An etcd whose store is full, below a cluster that serves.

use std::thread::sleep;
use std::time::{Duration, Instant};

use etcd_client::{AlarmAction, AlarmOptions, AlarmType, Client, DeleteOptions};
use servers::EtcdMembers;

use super::failovers::Queue;
use super::nodes::{Nodes, PATIENCE};

/// Enough for a cluster, and filled by a few large values.
const QUOTA: &str = "4000000";

async fn fill(mut etcd: Client) {
    let filler = vec![b'x'; 500_000];
    let mut writes = 0;
    while etcd.put(format!("/filler/{writes}"), filler.clone(), None).await.is_ok() {
        writes += 1;
        assert!(writes < 100, "the store has no limit");
    }
}

/// As an operator does it.
async fn make_room(mut etcd: Client) {
    let all = DeleteOptions::new().with_prefix();
    let deleted = etcd.delete("/filler/", Some(all)).await.expect("it takes no room");
    let revision = deleted.header().expect("a header").revision();
    etcd.compact(revision, None).await.expect("it is compacted");
    etcd.defragment().await.expect("it is defragmented");
    let armed = etcd.alarm(AlarmAction::Get, AlarmType::None, None).await.expect("alarms");
    for alarm in armed.alarms() {
        let mut member = AlarmOptions::new();
        member.with_member(alarm.member_id());
        let disarmed = etcd.alarm(AlarmAction::Deactivate, alarm.alarm(), Some(member)).await;
        disarmed.expect("it is disarmed");
    }
}

#[test]
fn full_store_is_named_and_costs_no_lock_and_no_place() {
    let etcd = EtcdMembers::start(1, &["--quota-backend-bytes", QUOTA]).expect("etcd starts");
    let nodes = Nodes::start_on("full-store", 2, etcd);
    let queue = Queue::new(&nodes);
    nodes.in_etcd(fill);
    let begin = Instant::now();
    while (0..2).any(|number| !nodes.log(number).contains("etcd's store is full")) {
        assert!(begin.elapsed() < PATIENCE, "no node names the cause: {}", nodes.log(0));
        sleep(Duration::from_millis(20));
    }
    nodes.in_etcd(make_room);
    queue.assert_unharmed(&nodes);
}
