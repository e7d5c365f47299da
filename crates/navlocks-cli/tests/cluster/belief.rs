//! An owner sends nothing before the change is durable in etcd, and nothing without a renewal that
//! is young enough.

use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::client::Client;
use crate::nodes::{NODE_LEASE_TIME, Node, etcd};

/// A message that does not wait would be there long before.
const SILENCE: Duration = Duration::from_millis(300);

/// A connection to the owner, with its hello under way.
fn greeting(node: &Node) -> Client {
    let mut client = Client::dial(node, "/", &[]);
    client.send(&json!({"hello": {}}));
    client
}

fn code(message: &Value) -> &str {
    message["error"]["code"].as_str().unwrap_or_default()
}

#[test]
fn owner_that_cannot_renew_sends_no_grant_no_welcome_and_no_pong() {
    let etcd = etcd();
    let node = Node::start(&etcd, "n1").await_all_slots(&etcd);
    let (mut holder, mut waiter) = (Client::owned(&node, ""), Client::owned(&node, ""));
    let mut idle = Client::owned(&node, "");
    holder.hold(1, "x");
    waiter.wait_for(1, "x");
    etcd.pause(0);
    let paused = Instant::now();
    // The node believes for at most 7/8 of its lease after a renewal that was sent before.
    while paused.elapsed() < NODE_LEASE_TIME {
        sleep(NODE_LEASE_TIME.saturating_sub(paused.elapsed()));
    }
    holder.send(&json!({"end": 1}));
    idle.send(&json!({"ping": 7}));
    for client in [&mut waiter, &mut idle, &mut greeting(&node)] {
        let answer = client.receive();
        assert_eq!((code(&answer), &answer["error"]["to"]), ("moved", &Value::Null), "{answer}");
    }
    etcd.resume(0);
    let served = || {
        let answer = greeting(&node).receive();
        assert!(answer["welcome"].is_object() || code(&answer) == "moved", "{answer}");
        answer["welcome"].is_object()
    };
    while !served() {
        sleep(Duration::from_millis(20));
    }
}

#[test]
fn welcome_waits_until_etcd_has_the_session() {
    let etcd = etcd();
    let node = Node::start_patient(&etcd, "n1");
    let mut known = Client::owned(&node, "");
    etcd.pause(0);
    let mut new = greeting(&node);
    assert_eq!(new.receive_within(SILENCE), None);
    // The session that etcd knows is served meanwhile.
    known.hold(1, "x");
    etcd.resume(0);
    assert!(new.receive()["welcome"].is_object());
}

#[test]
fn steal_waits_until_etcd_has_the_loss() {
    let etcd = etcd();
    let node = Node::start_patient(&etcd, "n1");
    let (mut victim, mut thief) = (Client::owned(&node, ""), Client::owned(&node, ""));
    victim.hold(1, "x");
    etcd.pause(0);
    thief.send(&json!({"request": {"id": 1, "names": ["x"], "wait": "steal"}}));
    assert_eq!((thief.receive_within(SILENCE), victim.receive_within(SILENCE)), (None, None));
    etcd.resume(0);
    assert_eq!(victim.receive()["over"]["id"], 1);
    thief.granted();
}

#[test]
fn forced_release_waits_until_etcd_has_the_loss() {
    let etcd = etcd();
    let node = Node::start_patient(&etcd, "n1");
    let (mut victim, mut waiter) = (Client::owned(&node, ""), Client::owned(&node, ""));
    let mut operator = Client::owned(&node, "");
    victim.hold(1, "x");
    waiter.wait_for(1, "x");
    etcd.pause(0);
    operator.send(&json!({"ask": {"id": 1, "question": {"force-release": "x"}}}));
    for client in [&mut operator, &mut victim, &mut waiter] {
        assert_eq!(client.receive_within(SILENCE), None);
    }
    etcd.resume(0);
    assert_eq!(operator.receive()["answer"]["reply"], json!({"released": 1}));
    assert_eq!(victim.receive()["over"]["id"], 1);
    waiter.granted();
}

#[test]
fn farewell_is_answered_when_etcd_has_the_end_of_the_session() {
    let etcd = etcd();
    let node = Node::start_patient(&etcd, "n1");
    let mut leaving = Client::owned(&node, "");
    etcd.pause(0);
    leaving.send(&json!("bye"));
    assert_eq!(leaving.receive_within(SILENCE), None);
    etcd.resume(0);
    assert_eq!(leaving.receive_within(SILENCE * 100), Some(json!("close")));
}
