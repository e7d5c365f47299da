//! Nodes of a cluster as processes.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use servers::EtcdMembers;

pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_navlocks");

/// Short, so that a take-over is waited for and not longer.
const NODE_LEASE: &str = "2s";
/// The arguments of a node with sessions that last longer than a test is patient.
pub(crate) const LONG_LEASE: [&str; 4] = ["--lease", "180s", "--lease-max", "180s"];
pub(crate) const NODE_LEASE_TIME: Duration = Duration::from_secs(2);

/// Longer than anything takes that happens at all.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// An etcd with one member.
pub(crate) fn etcd() -> EtcdMembers {
    EtcdMembers::start(1, &[]).expect("an etcd")
}

pub(crate) fn address(etcd: &EtcdMembers) -> String {
    format!("etcd://{}", etcd.addresses().join(","))
}

/// A node. Killed when it is dropped.
pub(crate) struct Node {
    child: Child,
    pub(crate) name: String,
    pub(crate) url: String,
}

impl Node {
    pub(crate) fn start(etcd: &EtcdMembers, name: &str) -> Self {
        Self::start_with(etcd, name, &[])
    }

    pub(crate) fn start_with(etcd: &EtcdMembers, name: &str, arguments: &[&str]) -> Self {
        Self::run(name, serve(etcd, name).args(arguments))
    }

    /// Starts a node that nothing can take for dead while a test runs.
    pub(crate) fn start_patient(etcd: &EtcdMembers, name: &str) -> Self {
        let node = Self::run(name, serve_for(etcd, name, "60s").args(LONG_LEASE));
        node.await_all_slots(etcd)
    }

    /// Waits until this node, which is the only one, owns all slots.
    pub(crate) fn await_all_slots(self, etcd: &EtcdMembers) -> Self {
        while slots(etcd) != [8] {
            std::thread::yield_now();
        }
        self
    }

    fn run(name: &str, command: &mut Command) -> Self {
        let mut child = command.spawn().expect("the program starts");
        let mut line = String::new();
        let out = child.stdout.as_mut().expect("its output is read");
        BufReader::new(out).read_line(&mut line).expect("it says something");
        // The path of a Unix socket comes first.
        let url = line.split_whitespace().find(|word| word.starts_with("ws"));
        let url = url.expect("an address").to_owned();
        Self { child, name: name.to_owned(), url }
    }

    pub(crate) fn kill(mut self) {
        self.child.kill().expect("it runs");
        self.child.wait().expect("it ends");
    }

    /// Ends it in good order, and starts it again at the same address.
    pub(crate) fn restart(self, etcd: &EtcdMembers) -> Self {
        let (name, url) = (self.name.clone(), self.url.clone());
        assert!(self.terminate());
        let listen = url.trim_start_matches("ws://").trim_end_matches('/');
        Self::run(&name, &mut serve_at(PROGRAM, etcd, &name, NODE_LEASE, listen))
    }

    /// Ends it in good order. Returns whether it succeeded.
    pub(crate) fn terminate(mut self) -> bool {
        kill_process(Pid::from_child(&self.child), Signal::TERM).expect("it runs");
        self.child.wait().expect("it ends").success()
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        let _gone = self.child.kill();
        let _gone = self.child.wait();
    }
}

/// The command that starts a node.
pub(crate) fn serve(etcd: &EtcdMembers, name: &str) -> Command {
    serve_for(etcd, name, NODE_LEASE)
}

fn serve_for(etcd: &EtcdMembers, name: &str, node_lease: &str) -> Command {
    serve_at(PROGRAM, etcd, name, node_lease, "127.0.0.1:0")
}

fn serve_at(
    program: &str,
    etcd: &EtcdMembers,
    name: &str,
    node_lease: &str,
    listen: &str,
) -> Command {
    let mut command = Command::new(program);
    command.args(["serve", "--cluster", &address(etcd), "--node", name]);
    command.args(["--listen", listen, "--slots", "8", "--node-lease", node_lease]);
    command.env_remove("NAVLOCKS_TOKEN").stdout(Stdio::piped()).stderr(Stdio::null());
    command
}

/// Three nodes, each with the slots that are its own for good.
pub(crate) fn three(etcd: &EtcdMembers) -> Vec<Node> {
    three_with(etcd, &[])
}

/// The same, with further arguments of `navlocks serve`.
pub(crate) fn three_with(etcd: &EtcdMembers, arguments: &[&str]) -> Vec<Node> {
    three_by(etcd, |name| Node::start_with(etcd, name, arguments))
}

/// The same, of another command.
pub(crate) fn three_of(program: &str, etcd: &EtcdMembers) -> Vec<Node> {
    let serve = |name: &str| serve_at(program, etcd, name, NODE_LEASE, "127.0.0.1:0");
    three_by(etcd, |name| Node::run(name, &mut serve(name)))
}

fn three_by(etcd: &EtcdMembers, start: impl FnMut(&str) -> Node) -> Vec<Node> {
    let nodes: Vec<Node> = ["n1", "n2", "n3"].map(start).into();
    // The hashes of these names and eight slots.
    while slots(etcd) != [2, 2, 4] {
        std::thread::yield_now();
    }
    nodes
}

/// How many slots each node has, in the order of their names.
pub(crate) fn slots(etcd: &EtcdMembers) -> Vec<u64> {
    let shown = shown(etcd);
    let nodes = shown["nodes"].as_array().expect("nodes");
    nodes.iter().filter_map(|node| node["slots"].as_u64()).collect()
}

pub(crate) fn urls(nodes: &[Node]) -> String {
    nodes.iter().map(|node| node.url.as_str()).collect::<Vec<_>>().join(",")
}

/// The answer of `navlocks cluster --json`.
pub(crate) fn shown(etcd: &EtcdMembers) -> Value {
    let output = cluster(etcd, &["--json"]);
    serde_json::from_slice(&output.stdout).expect("JSON")
}

/// The name of the only node that has sessions, once there is one.
pub(crate) fn owner(etcd: &EtcdMembers) -> String {
    loop {
        let shown = shown(etcd);
        let slots = shown["slots"].as_array().expect("slots");
        let owner = slots.iter().find(|slot| slot["sessions"] != 0).map(|slot| &slot["owner"]);
        let nodes = shown["nodes"].as_array().expect("nodes");
        if let Some(node) = owner.and_then(|it| nodes.iter().find(|node| node["address"] == *it)) {
            return node["name"].as_str().expect("a name").to_owned();
        }
        std::thread::yield_now();
    }
}

pub(crate) fn cluster(etcd: &EtcdMembers, arguments: &[&str]) -> Output {
    let mut command = Command::new(PROGRAM);
    command.arg("cluster").args(arguments).env("NAVLOCKS_CLUSTER", address(etcd));
    command.output().expect("the program runs")
}

/// Runs `navlocks run` with these arguments to its end.
pub(crate) fn run(urls: &str, arguments: &[&str]) -> Output {
    run_of(PROGRAM, urls, arguments)
}

/// The same, of another command.
pub(crate) fn run_of(program: &str, urls: &str, arguments: &[&str]) -> Output {
    let mut command = Command::new(program);
    command.arg("run").args(arguments).env("NAVLOCKS_URL", urls);
    command.output().expect("the program runs")
}

/// A `navlocks run` whose command says that it holds the lock, and ends when its input does.
pub(crate) struct Holder {
    child: Child,
}

impl Holder {
    pub(crate) fn start(urls: &str, name: &str) -> Self {
        Self::start_of(PROGRAM, urls, name)
    }

    pub(crate) fn start_of(program: &str, urls: &str, name: &str) -> Self {
        let mut command = Command::new(program);
        command.args(["run", name, "--", "sh", "-c", "echo $NAVLOCKS_FENCING_TOKEN; cat"]);
        command.env("NAVLOCKS_URL", urls).stdin(Stdio::piped());
        command.stdout(Stdio::piped()).stderr(Stdio::null());
        Self { child: command.spawn().expect("the program starts") }
    }

    /// Waits until the command holds the lock. Returns its fencing token.
    pub(crate) fn token(&mut self) -> u64 {
        let out = self.child.stdout.as_mut().expect("its output is read");
        let (mut text, mut byte) = (Vec::new(), [0]);
        while out.read(&mut byte).expect("it says something") == 1 && byte != *b"\n" {
            text.push(byte[0]);
        }
        String::from_utf8(text).expect("text").parse().expect("a token")
    }

    /// Lets the command end. Returns the exit code.
    pub(crate) fn finish(mut self) -> Option<i32> {
        drop(self.child.stdin.take());
        self.child.wait().expect("it ends").code()
    }
}
