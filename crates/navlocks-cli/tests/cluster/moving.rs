//! Slots move, and locks with them.

use crate::nodes::{Holder, Node, cluster, etcd, owner, shown, slots, three, urls};

/// Takes the node that has sessions out of the list.
fn take_owner(nodes: &mut Vec<Node>, etcd: &servers::EtcdMembers) -> Node {
    let name = owner(etcd);
    let index = nodes.iter().position(|node| node.name == name).expect("one of them");
    nodes.remove(index)
}

#[test]
fn lock_and_waiter_survive_kill_of_their_owner() {
    let etcd = etcd();
    let mut nodes = three(&etcd);
    let urls = urls(&nodes);
    let mut holder = Holder::start(&urls, "x");
    let token = holder.token();
    let mut waiter = Holder::start(&urls, "x");
    take_owner(&mut nodes, &etcd).kill();
    // Another lock of the same slot is granted only after the take-over.
    let mut other = Holder::start(&urls, "y");
    other.token();
    assert_eq!(holder.finish(), Some(0), "its lock was not lost");
    assert!(waiter.token() > token);
    assert_eq!((waiter.finish(), other.finish()), (Some(0), Some(0)));
}

#[test]
fn lock_and_waiter_survive_planned_end_of_their_owner() {
    let etcd = etcd();
    let mut nodes = three(&etcd);
    let urls = urls(&nodes);
    let mut holder = Holder::start(&urls, "x");
    let token = holder.token();
    let mut waiter = Holder::start(&urls, "x");
    assert!(take_owner(&mut nodes, &etcd).terminate());
    let mut other = Holder::start(&urls, "y");
    other.token();
    assert_eq!(holder.finish(), Some(0), "its lock was not lost");
    assert!(waiter.token() > token);
    assert_eq!((waiter.finish(), other.finish()), (Some(0), Some(0)));
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
