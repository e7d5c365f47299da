//! Each failure of a node has an error of its own.

use std::io::Write as _;
use std::net::TcpListener;
use std::process::{Command, Stdio};

use crate::nodes::{Node, PROGRAM, address, etcd, serve};

/// Runs a node that cannot start. Returns its exit code and its last line.
fn failed(mut command: Command) -> (Option<i32>, String) {
    let output = command.stderr(Stdio::piped()).output().expect("the program runs");
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    (output.status.code(), text.lines().last().unwrap_or_default().to_owned())
}

fn node_at(cluster: &str) -> Command {
    let mut command = Command::new(PROGRAM);
    command.args(["serve", "--cluster", cluster, "--listen", "127.0.0.1:0"]);
    command
}

#[test]
fn etcd_that_does_not_answer_is_named() {
    let (code, text) = failed(node_at("etcd://127.0.0.1:1"));
    assert_eq!(code, Some(69), "{text}");
    assert!(text.contains("etcd cannot be reached") && text.contains("127.0.0.1:1"), "{text}");
}

#[test]
fn etcd_that_cannot_be_resolved_or_speaks_tls_is_unreachable_with_the_cause() {
    let (code, text) = failed(node_at("etcd://no-such-host.invalid:2379"));
    assert_eq!(code, Some(69), "{text}");
    assert!(text.contains("cannot be reached") && text.contains("failed to lookup"), "{text}");
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("its address");
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            // A handshake that is none is answered by an alert, and the end of the connection.
            let _gone = stream.write_all(&[21, 3, 1, 0, 2, 2, 70]);
        }
    });
    let (code, text) = failed(node_at(&format!("etcd://{address}")));
    assert_eq!(code, Some(69), "{text}");
    assert!(text.contains("cannot be reached") && text.contains("etcds://"), "{text}");
}

#[test]
fn address_of_etcd_may_come_before_or_after_the_action() {
    let etcd = etcd();
    let _node = Node::start(&etcd, "n1");
    let address = address(&etcd);
    for arguments in
        [["drain", "n9", "--cluster", &address], ["--cluster", &address, "drain", "n9"]]
    {
        let mut command = Command::new(PROGRAM);
        command.arg("cluster").args(arguments).env_remove("NAVLOCKS_CLUSTER");
        let (code, text) = failed(command);
        assert_eq!(code, Some(64), "{text}");
        assert!(text.contains("no node is called \"n9\""), "{text}");
    }
}

#[test]
fn name_of_a_living_node_is_refused() {
    let etcd = etcd();
    let first = Node::start(&etcd, "n1");
    let (code, text) = failed(serve(&etcd, "n1"));
    assert_eq!(code, Some(87), "{text}");
    assert!(text.contains(&first.url) && text.contains("--node"), "{text}");
}

#[test]
fn address_of_another_kind_is_refused() {
    let (code, text) = failed(node_at("http://127.0.0.1:2379"));
    assert_eq!(code, Some(64), "{text}");
    assert!(text.contains("etcd://host1:2379"), "{text}");
}

#[test]
fn prefix_of_a_cluster_with_other_slots_is_refused() {
    let etcd = etcd();
    let _first = Node::start(&etcd, "n1");
    let mut second = node_at(&address(&etcd));
    second.args(["--slots", "16", "--node-lease", "2s"]);
    let (code, text) = failed(second);
    assert_eq!(code, Some(87), "{text}");
    assert!(text.contains("8 slots") && text.contains("16 slots"), "{text}");
}

#[test]
fn advertised_address_that_leads_elsewhere_ends_the_node() {
    let etcd = etcd();
    let first = Node::start(&etcd, "n1");
    let mut second = serve(&etcd, "n2");
    second.args(["--advertise", &first.url]);
    let (code, text) = failed(second);
    assert_eq!(code, Some(70), "{text}");
    assert!(text.contains("does not lead back") && text.contains(&first.url), "{text}");
}

#[test]
fn doctor_looks_at_etcd() {
    let etcd = etcd();
    let node = Node::start(&etcd, "n1");
    let mut command = Command::new(PROGRAM);
    command.args(["doctor", "--cluster", &address(&etcd), "--url", &node.url]);
    let output = command.output().expect("the program runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    for part in ["etcd 3.", "for a write; the node lease is 2 s"] {
        assert!(text.contains(part), "{text}");
    }
}
