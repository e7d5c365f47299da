//! A node carries the messages of a client that cannot reach the owner of its locks.

use serde_json::json;

use crate::client::Client;
use crate::nodes::{Node, etcd, three};

#[test]
fn client_is_served_by_every_node_and_all_grant_one_lock() {
    let etcd = etcd();
    let nodes = three(&etcd);
    let mut tokens = Vec::new();
    let mut moved = 0;
    for node in &nodes {
        let mut plain = Client::dial(node, "/", &[]);
        plain.send(&json!({"hello": {"version": 1}}));
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
        let reply = client.ask(&json!("query"));
        let held = reply["snapshot"]["held"].as_array().expect("a snapshot");
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
