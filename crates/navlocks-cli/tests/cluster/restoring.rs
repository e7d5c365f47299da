//! An etcd that has lost what nodes wrote to it: no second holder, and no smaller token.

use std::time::{Duration, Instant};

use serde_json::json;
use servers::EtcdMembers;

use crate::client::Client;
use crate::nodes::{Node, cluster, etcd, run};

/// All sessions have the same lease.
const LEASE: [&str; 6] = ["--lease", "8s", "--lease-min", "8s", "--lease-max", "8s"];
/// For so long a client holds its lock after it sent a message that was answered.
const BELIEF: Duration = Duration::from_secs(7);

/// A holder that hears no more of its node, while etcd loses what was written since the backup.
fn assert_one_holder(lose: impl FnOnce(&mut EtcdMembers, Node) -> Node) {
    let mut etcd = etcd();
    let node = Node::start_with(&etcd, "n1", &LEASE).await_all_slots(&etcd);
    etcd.save().expect("a backup");
    let mut holder = Client::owned(&node, "");
    holder.send(&json!({"request": {"id": 1, "names": ["x"]}}));
    let token = holder.granted();
    let sent = Instant::now();
    holder.send(&json!({"ping": 1}));
    assert_eq!(holder.receive(), json!({"pong": 1}));
    let node = lose(&mut etcd, node);
    let next = ["--timeout", "60s", "x", "--", "sh", "-c", "echo $NAVLOCKS_FENCING_TOKEN"];
    let next = String::from_utf8(run(&node.url, &next).stdout).expect("text");
    assert!(next.trim().parse::<u64>().expect("a token") > token, "{next}");
    assert!(sent.elapsed() > BELIEF, "two clients hold the lock: {:?}", sent.elapsed());
}

#[test]
fn deleted_prefix_makes_no_second_holder() {
    assert_one_holder(|etcd, node| {
        etcd.etcdctl(&["del", "--prefix", "/navlocks/"]).expect("they are deleted");
        node
    });
}

#[test]
fn restored_etcd_makes_no_second_holder() {
    assert_one_holder(|etcd, node| {
        etcd.restore().expect("it is restored");
        node
    });
}

#[test]
fn empty_etcd_makes_no_second_holder() {
    assert_one_holder(|etcd, node| {
        etcd.replace().expect("it is replaced");
        node
    });
}

#[test]
fn restored_etcd_makes_no_second_holder_at_a_cold_start_after_the_operators_command() {
    assert_one_holder(|etcd, node| {
        node.kill();
        etcd.restore().expect("it is restored");
        let noted = cluster(etcd, &["restored"]);
        assert!(noted.status.success(), "{noted:?}");
        Node::start_with(etcd, "n1", &LEASE)
    });
}
