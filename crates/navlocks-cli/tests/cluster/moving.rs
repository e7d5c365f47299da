//! Slots move, and locks with them.

use serde_json::json;

use crate::client::Client;
use crate::nodes::{
    Holder, LONG_LEASE, Node, cluster, etcd, owner, run, shown, slots, three, three_with, urls,
};

/// Takes the node that has sessions out of the list.
fn take_owner(nodes: &mut Vec<Node>, etcd: &servers::EtcdMembers) -> Node {
    let name = owner(etcd);
    let index = nodes.iter().position(|node| node.name == name).expect("one of them");
    nodes.remove(index)
}

/// A holder and a waiter, while their owner ends like this.
fn assert_survived(end: impl FnOnce(Node)) {
    let etcd = etcd();
    let mut nodes = three(&etcd);
    let urls = urls(&nodes);
    let mut holder = Holder::start(&urls, "x");
    let token = holder.token();
    let mut waiter = Holder::start(&urls, "x");
    end(take_owner(&mut nodes, &etcd));
    // Another lock of the same slot is granted only after the take-over.
    let mut other = Holder::start(&urls, "y");
    other.token();
    assert_eq!(holder.finish(), Some(0), "its lock was not lost");
    assert!(waiter.token() > token);
    assert_eq!((waiter.finish(), other.finish()), (Some(0), Some(0)));
}

#[test]
fn lock_and_waiter_survive_kill_of_their_owner() {
    assert_survived(Node::kill);
}

#[test]
fn lock_and_waiter_survive_planned_end_of_their_owner() {
    assert_survived(|owner| assert!(owner.terminate()));
}

#[test]
fn command_that_ends_during_a_fail_over_costs_no_lease() {
    let etcd = etcd();
    let mut nodes = three_with(&etcd, &LONG_LEASE);
    let urls = urls(&nodes);
    let mut holder = Holder::start(&urls, "x");
    holder.token();
    take_owner(&mut nodes, &etcd).kill();
    assert_eq!(holder.finish(), Some(0));
    let next = run(&urls, &["--timeout", "60s", "x", "--", "true"]);
    assert!(next.status.success(), "{next:?}");
}

#[test]
fn hello_that_was_not_answered_costs_no_lease_when_it_is_repeated() {
    let etcd = etcd();
    let first = Node::start_with(&etcd, "n1", &LONG_LEASE).await_all_slots(&etcd);
    let hello = json!({"hello": {"secret": "8hV1vPbQ2mT0n3Zc5yYt4A"}});
    let mut unanswered = Client::dial(&first, "/", &[]);
    unanswered.send(&hello);
    assert_eq!(unanswered.receive()["welcome"]["secret"], hello["hello"]["secret"]);
    first.kill();
    let next = Node::start_with(&etcd, "n2", &LONG_LEASE);
    let mut again = loop {
        let mut again = Client::dial(&next, "/", &[]);
        again.send(&hello);
        if again.receive()["welcome"].is_object() {
            break again;
        }
    };
    again.hold(1, "x");
}

#[test]
fn drained_node_has_no_slots_and_its_locks_stay_held() {
    let etcd = etcd();
    let nodes = three(&etcd);
    let urls = urls(&nodes);
    let mut holder = Holder::start(&urls, "x");
    let token = holder.token();
    let drained = owner(&etcd);
    let output = cluster(&etcd, &["drain", &drained]);
    assert!(output.status.success(), "{output:?}");
    let view = shown(&etcd);
    let node = view["nodes"].as_array().expect("nodes").iter().find(|it| it["name"] == *drained);
    assert_eq!(
        node.map(|node| (&node["slots"], &node["draining"])),
        Some((&0.into(), &true.into()))
    );
    let mut waiter = Holder::start(&urls, "x");
    assert_eq!(holder.finish(), Some(0), "its lock was not lost");
    assert!(waiter.token() > token);
    assert_eq!(waiter.finish(), Some(0));
    assert!(cluster(&etcd, &["undrain", &drained]).status.success());
    while slots(&etcd).contains(&0) {
        std::thread::yield_now();
    }
}

#[test]
fn table_shows_nodes_with_their_slots() {
    let etcd = etcd();
    let nodes = three(&etcd);
    let output = cluster(&etcd, &["--slots"]);
    let table = String::from_utf8(output.stdout).expect("text");
    for node in &nodes {
        let line = table.lines().find(|line| line.starts_with(&node.name)).expect("its line");
        assert!(line.contains(&node.url) && line.contains("serves"), "{line}");
    }
    assert_eq!(
        table.lines().filter(|line| line.starts_with(char::is_numeric)).count(),
        8,
        "{table}"
    );
}
