//! A node carries the messages of a client that cannot reach the owner of its locks.

use serde_json::json;

use crate::client::Client;
use crate::nodes::{Node, etcd, owner, three};

#[test]
fn client_is_served_by_every_node_and_all_grant_one_lock() {
    let etcd = etcd();
    let nodes = three(&etcd);
    let mut tokens = Vec::new();
    let mut moved = 0;
    for node in &nodes {
        let mut plain = Client::dial(node, "/", &[]);
        plain.send(&json!({"hello": {}}));
        moved += usize::from(plain.receive()["error"]["code"] == "moved");
        let mut carried = Client::carried(node, "");
        carried.send(&json!({"request": {"id": 1, "names": ["x"]}}));
        tokens.push(carried.granted());
        carried.send(&json!("bye"));
    }
    assert_eq!(moved, 2, "one node owns the slot, and the others send its clients there");
    assert!(tokens.is_sorted() && tokens[0] < tokens[2], "one owner grants: {tokens:?}");
}

#[test]
fn answer_that_is_longer_than_any_message_of_a_client_is_carried() {
    const REQUESTS: usize = 30;
    let etcd = etcd();
    let nodes = three(&etcd);
    let name = "x".repeat(60_000);
    // One of them is the owner, and two carry.
    let mut clients: Vec<Client> = nodes.iter().map(|node| Client::carried(node, "")).collect();
    for (index, client) in clients.iter_mut().enumerate() {
        for id in 1..=REQUESTS {
            client.send(&json!({"request": {"id": id, "names": [&name], "mode": "shared"}}));
            client.granted();
        }
        let reply = client.ask(&json!({"locks": "partition"}));
        let held = reply["locks"]["held"].as_array().expect("the locks");
        assert_eq!(held.len(), REQUESTS * (index + 1));
    }
}

#[test]
fn client_that_pretends_to_be_a_node_is_refused() {
    let etcd = etcd();
    let node = Node::start(&etcd, "n1");
    // The party ["", "", true]: that of the service's own user.
    let headers = [("navlocks-cluster", "guessed"), ("navlocks-party", "WyIiLCIiLHRydWVd")];
    let mut client = Client::dial(&node, "/", &headers);
    assert_eq!(client.receive()["error"]["code"], "unauthorized");
}

/// Takes the owner of a session, which it begins, out of a cluster of three nodes.
fn take_owner(nodes: &mut Vec<Node>, etcd: &servers::EtcdMembers) -> Node {
    let mut client = Client::carried(&nodes[0], "");
    let name = owner(etcd);
    client.send(&json!("bye"));
    let index = nodes.iter().position(|node| node.name == name).expect("one of them");
    nodes.remove(index)
}

#[test]
fn hello_is_kept_until_the_locks_of_a_dead_node_have_an_owner() {
    let etcd = etcd();
    let mut nodes = three(&etcd);
    let owner = take_owner(&mut nodes, &etcd);
    let url = owner.url.clone();
    owner.kill();
    let mut clients: Vec<Client> = nodes.iter().map(|node| Client::dial(node, "/", &[])).collect();
    for client in &mut clients {
        client.send(&json!({"hello": {"unreachable": [url]}}));
    }
    let answers: Vec<_> = clients.iter_mut().map(Client::receive).collect();
    let welcomed = answers.iter().position(|it| it["welcome"]["cluster"] == true);
    let welcomed = welcomed.unwrap_or_else(|| panic!("no node took the slot: {answers:?}"));
    let moved = &answers[1 - welcomed]["error"];
    assert_eq!(moved["code"], "moved", "{answers:?}");
    assert_eq!(moved["to"], *nodes[welcomed].url, "{answers:?}");
}

#[test]
fn client_that_was_carried_is_sent_home() {
    let etcd = etcd();
    let mut nodes = three(&etcd);
    let owner = take_owner(&mut nodes, &etcd);
    let mut client = Client::dial(&nodes[0], "/", &[]);
    let hello = json!({"unreachable": [owner.url], "home-ms": 300});
    client.send(&json!({"hello": hello}));
    let welcome = client.receive();
    assert_eq!(welcome["welcome"]["cluster"], true, "{welcome}");
    client.hold(1, "x");
    let moved = client.receive();
    assert_eq!(moved["error"]["to"], *owner.url, "{moved}");
    // The session goes on at the owner.
    let (session, secret) = (&welcome["welcome"]["session"], &welcome["welcome"]["secret"]);
    let mut home = Client::dial(&owner, "/", &[]);
    let resume = json!({"session": session, "secret": secret});
    home.send(&json!({"hello": {"resume": resume}}));
    assert_eq!(home.receive()["welcome"]["resumed"], true);
}
