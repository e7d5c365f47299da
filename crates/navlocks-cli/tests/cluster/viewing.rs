//! Dashboards, queries and metrics of nodes: each node answers for the slots that it owns.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::OpenOptions;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::OpenOptionsExt as _;

use serde_json::{Value, json};
use servers::EtcdMembers;

use crate::client::Client;
use crate::nodes::{Node, cluster, etcd, slots, three_with};

const TOKEN: &str = "an-operator-of-the-tests";

/// More than the cluster has slots, so that every node has locks of several slots.
const PARTITIONS: usize = 24;

/// Three nodes with dashboards that may act.
fn three_with_dashboards(etcd: &EtcdMembers, test: &str) -> Vec<Node> {
    let file = std::env::temp_dir().join(format!("navlocks-{test}-{}", std::process::id()));
    let mut operators = OpenOptions::new();
    let mut operators = operators.write(true).create(true).mode(0o600).open(&file).expect("a file");
    writeln!(operators, "olga:{TOKEN}").expect("a line");
    let path = file.to_str().expect("text");
    let arguments = ["--dashboard", "--dashboard-actions", "--operator-token-file", path];
    let nodes = three_with(etcd, &arguments);
    std::fs::remove_file(file).expect("the file is there");
    nodes
}

/// Holds `x` in each partition. Each lock has a waiter.
fn populate(node: &Node) -> BTreeMap<String, (Client, Client)> {
    let pair = |number: usize| {
        let partition = format!("p{number}");
        let mut holder = Client::carried(node, &partition);
        holder.hold(1, "x");
        let mut waiter = Client::carried(node, &partition);
        waiter.wait_for(1, "x");
        (partition, (holder, waiter))
    };
    (0..PARTITIONS).map(pair).collect()
}

fn text(value: &Value) -> String {
    value.as_str().expect("text").to_owned()
}

/// The names of the partitions in a list.
fn names<'a>(list: impl IntoIterator<Item = &'a Value>) -> Vec<String> {
    list.into_iter().map(|it| text(&it["partition"])).collect()
}

fn list<'a>(value: &'a Value, member: &str) -> &'a [Value] {
    value[member].as_array().unwrap_or_else(|| panic!("no {member}: {value}"))
}

/// Returns a gauge of `/metrics`.
fn gauge(node: &Node, name: &str) -> u64 {
    let address = node.url.strip_prefix("ws://").expect("an address");
    let mut stream = TcpStream::connect(address).expect("the node listens");
    let request = "GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    stream.write_all(request.as_bytes()).expect("the node reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    let line = answer.lines().find_map(|line| line.strip_prefix(&format!("navlocks_{name} ")));
    line.unwrap_or_else(|| panic!("no {name}: {answer}")).parse().expect("a number")
}

#[test]
fn views_and_queries_of_a_node_show_the_partitions_of_all_its_slots() {
    let etcd = etcd();
    let nodes = three_with_dashboards(&etcd, "views");
    let mut clients = populate(&nodes[0]);
    let mut seen = BTreeSet::new();
    for (node, owned) in nodes.iter().zip(slots(&etcd)) {
        let mut dashboard = Client::dashboard(node, TOKEN);
        let overview = dashboard.view(&json!({"overview": {}}));
        let own = names(list(&overview, "spaces").iter().map(|it| &it["space"]));
        assert!(own.len() > 2, "a node has partitions of several slots: {own:?}");
        assert!(own.iter().all(|name| seen.insert(name.clone())), "one node shows a partition");
        let count = own.len() as u64;
        assert_eq!((&overview["held"], &overview["pending"]), (&json!(count), &json!(count)));
        let rows: BTreeSet<String> =
            names(list(&overview, "rows").iter().map(|it| &it["space"])).into_iter().collect();
        assert_eq!(rows, own.iter().cloned().collect());

        let mut client = Client::owned(node, &own[0]);
        let all = client.ask(&json!({"locks": "all"}));
        assert_eq!(names(list(&all, "partitions")), own);
        assert!(list(&all, "partitions").iter().all(|it| list(it, "held").len() == 1));

        let tree = dashboard.view(&json!({"tree": {}}));
        assert_eq!(tree["count"], count);
        let sessions = dashboard.view(&json!({"clients": {}}));
        // A holder and a waiter each, and the client of the query.
        assert_eq!(sessions["count"], 2 * count + 1);
        let events = dashboard.view(&json!({"events": {"after": 0, "filter": {"name": "x"}}}));
        let words = list(&events, "events").iter().map(|it| text(&it["what"]));
        assert_eq!(words.filter(|word| word == "granted").count() as u64, count);
        for partition in &own {
            let space = json!({"partition": partition});
            let queue = dashboard.view(&json!({"queue": {"space": space, "of": {"name": "x"}}}));
            assert_eq!((&queue["held"], &queue["waiting"]), (&json!(1), &json!(1)));
            let time = json!({"time": {"space": space, "ago-ms": 0, "window-ms": 60_000}});
            assert_eq!(list(&dashboard.view(&time), "lanes").len(), 2);
        }

        let service = dashboard.view(&json!("service"));
        let known = json!({"address": node.url, "slots": 8, "owned": owned});
        assert_eq!(service["node"], known);
        assert_eq!(gauge(node, "slots"), owned);
        assert_eq!(gauge(node, "slots_recovering"), 0);
        assert_eq!(gauge(node, "locks_held"), count);
    }
    assert_eq!(seen, clients.keys().cloned().collect());
    clients.clear();
}

#[test]
fn deadlocks_and_actions_reach_the_slots_of_a_node() {
    let etcd = etcd();
    let nodes = three_with_dashboards(&etcd, "actions");
    let mut clients = populate(&nodes[0]);
    for node in &nodes {
        let mut dashboard = Client::dashboard(node, TOKEN);
        let overview = dashboard.view(&json!({"overview": {}}));
        let own = names(list(&overview, "spaces").iter().map(|it| &it["space"]));
        let space = json!({"partition": own[1]});
        let (holder, waiter) = clients.get_mut(&own[1]).expect("its clients");
        let (mut one, mut two) = (Client::owned(node, &own[1]), Client::owned(node, &own[1]));
        one.hold(1, "a");
        two.hold(1, "b");
        one.wait_within(1, 2, "b");
        two.wait_within(1, 2, "a");
        let deadlocks = dashboard.view(&json!("deadlocks"));
        let [ring] = list(&deadlocks, "rings") else { panic!("not one: {deadlocks}") };
        assert_eq!((&ring["space"], list(ring, "hops").len()), (&space, 2));

        let queue = json!({"queue": {"space": space, "of": {"name": "x"}}});
        let key = text(&dashboard.view(&queue)["holders"][0]["request"]);
        let acted = dashboard.view(&json!({"act": {"action": {"release": key}}}));
        assert_eq!((&acted["done"], &acted["count"]), (&json!(true), &json!(1)));
        assert_eq!(holder.receive()["over"]["why"]["lost"]["cause"], "force-released");
        waiter.granted();
        let events = dashboard.view(&json!({"events": {"after": 0, "filter": {"space": space}}}));
        let by = list(&events, "events").iter().find(|it| it["what"] == "operator released");
        assert_eq!(by.map(|it| &it["author"]), Some(&json!("olga")));

        let key = text(&dashboard.view(&queue)["holders"][0]["request"]);
        let session: u64 = key.split('.').next().expect("a session").parse().expect("a number");
        dashboard.view(&json!({"act": {"action": {"end-session": session}}}));
        assert_eq!(waiter.receive()["error"]["code"], "lease-lapsed");
        assert_eq!(dashboard.view(&queue), Value::Null, "the name is free");
    }
}

#[test]
fn slot_that_waits_for_claims_is_shown_as_recovering() {
    let etcd = etcd();
    let mut nodes = three_with_dashboards(&etcd, "recovering");
    let mut client = Client::carried(&nodes[0], "p");
    client.hold(1, "x");
    let is_owner = |node: &Node| gauge(node, "locks_held") == 1;
    let owner = nodes.iter().position(is_owner).expect("one of them owns the slot");
    nodes.remove(owner).kill();
    // Its session is not claimed before its lease has passed.
    let node = loop {
        if let Some(node) = nodes.iter().find(|node| gauge(node, "slots_recovering") == 1) {
            break node;
        }
    };
    let service = Client::dashboard(node, TOKEN).view(&json!("service"));
    assert_eq!(list(&service["node"], "recovering").len(), 1, "{service}");
}

#[test]
fn slot_that_moves_away_leaves_the_views_and_its_locks_are_not_shown_as_ended() {
    let etcd = etcd();
    let nodes = three_with_dashboards(&etcd, "moving");
    let mut client = Client::carried(&nodes[0], "p");
    client.hold(1, "x");
    let owner = nodes.iter().find(|node| gauge(node, "locks_held") == 1).expect("an owner");
    let mut dashboard = Client::dashboard(owner, TOKEN);
    assert_eq!(dashboard.view(&json!({"overview": {}}))["held"], 1);
    let output = cluster(&etcd, &["drain", &owner.name]);
    assert!(output.status.success(), "{output:?}");
    assert_eq!(dashboard.view(&json!({"overview": {}}))["space-count"], 0);
    assert_eq!(dashboard.view(&json!("service"))["node"]["owned"], 0);
    let events = dashboard.view(&json!({"events": {"after": 0, "filter": {}}}));
    let words: Vec<String> = list(&events, "events").iter().map(|it| text(&it["what"])).collect();
    assert_eq!(words, ["requested", "granted", "moved to another node"]);
}
