//! Grace: a session that does not come back delays its own partitions alone.

use serde_json::{Value, json};
use servers::EtcdMembers;

use crate::client::Client;
use crate::nodes::{LONG_LEASE, Node, etcd};

/// Partitions of one slot.
const DEAD: &str = "p1";
const LIVING: &str = "p3";
const SECRET: &str = "8hV1vPbQ2mT0n3Zc5yYt4A";

/// Begins a session with a secret that is known. Returns its number and its epoch.
fn begin(client: &mut Client, partition: &str) -> (Value, Value) {
    client.send(&json!({"hello": {"secret": SECRET, "partition": partition}}));
    let mut answer = client.receive();
    let welcome = &mut answer["welcome"];
    assert_eq!(welcome["secret"], SECRET, "{welcome}");
    (welcome["session"].take(), welcome["epoch"].take())
}

/// Returns how many sessions are waited for in the partition of a client.
fn missing(client: &mut Client) -> usize {
    let reply = client.ask(&json!({"locks": "unclaimed"}));
    reply["unclaimed"].as_array().unwrap_or_else(|| panic!("no list: {reply}")).len()
}

#[test]
fn dead_session_with_a_long_lease_delays_its_own_partition_alone() {
    let etcd = etcd();
    let first = Node::start_with(&etcd, "n1", &LONG_LEASE).await_all_slots(&etcd);
    let mut dead = Client::owned(&first, DEAD);
    dead.hold(1, "x");
    let mut living = Client::dial(&first, "/", &[]);
    let (session, epoch) = begin(&mut living, LIVING);
    living.send(&json!({"request": {"id": 1, "names": ["x"]}}));
    let token = living.granted();
    first.kill();
    let next = Node::start_with(&etcd, "n2", &LONG_LEASE).await_all_slots(&etcd);
    let mut early = Client::owned(&next, LIVING);
    early.wait_for(1, "y");
    let mut delayed = Client::owned(&next, DEAD);
    delayed.wait_for(1, "y");
    assert_eq!((missing(&mut early), missing(&mut delayed)), (1, 1));
    let mut again = Client::dial(&next, "/", &[]);
    let resume = json!({"session": session, "secret": SECRET, "epoch": epoch});
    again.send(&json!({"hello": {"resume": resume}}));
    assert_eq!(again.receive()["welcome"]["resumed"], true);
    again.send(&json!({"open": {"client": 0, "partition": LIVING}}));
    again.send(&json!({"request": {"id": 1, "names": ["x"], "token": token}}));
    again.send(&json!("claimed"));
    // The lease of the dead session is longer than a test is patient.
    assert!(early.granted() > token);
    let held = early.ask(&json!({"locks": "partition"}));
    assert_eq!(held["locks"]["held"].as_array().map(Vec::len), Some(2), "{held}");
    assert_eq!((missing(&mut early), missing(&mut delayed)), (0, 1));
    let mut late = Client::owned(&next, LIVING);
    late.hold(1, "z");
    // The lock of the dead session may still be believed in.
    assert_eq!(delayed.receive_within(std::time::Duration::from_millis(1)), None);
}

/// Returns how often the only session of a slot was written to etcd.
fn writes(etcd: &EtcdMembers) -> Value {
    let keys = ["get", "--prefix", "/navlocks/sessions/", "--write-out=json"];
    let mut answer: Value =
        serde_json::from_str(&etcd.etcdctl(&keys).expect("keys")).expect("JSON");
    assert_eq!(answer["count"], 1, "{answer}");
    answer["kvs"][0]["version"].take()
}

#[test]
fn session_is_written_once_for_each_partition_that_it_enters() {
    let etcd = etcd();
    let node = Node::start_with(&etcd, "n1", &LONG_LEASE).await_all_slots(&etcd);
    let mut client = Client::owned(&node, LIVING);
    (1..=100).for_each(|id| client.hold(id, &format!("n{id}")));
    client.send(&json!({"open": {"client": 1, "partition": LIVING}}));
    client.send(&json!({"request": {"id": 101, "client": 1, "names": ["n101"]}}));
    client.granted();
    assert_eq!(writes(&etcd), 1);
    for (number, partition) in [(2, DEAD), (3, LIVING), (4, DEAD)] {
        client.send(&json!({"open": {"client": number, "partition": partition}}));
        let names = [format!("p{number}")];
        client.send(&json!({"request": {"id": 100 + number, "client": number, "names": names}}));
        client.granted();
        assert_eq!(writes(&etcd), 2, "the grant came after the write");
    }
}
