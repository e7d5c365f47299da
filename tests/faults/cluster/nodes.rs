//! Nodes of a cluster as processes, on a real etcd.

use std::fs::File;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use navlocks::Locks;
use navlocks::blocking::block_on;
use navlocks_etcd::{Address, ClusterView, Inspection, TlsFiles, slot_of};
use rustix::process::Signal;
use servers::EtcdMembers;
use tokio::runtime::Runtime;

use crate::folder::Folder;
use crate::serve::{NAVLOCKS, Running};

/// Long enough for a machine that is busy with other tests.
pub(crate) const NODE_LEASE: Duration = Duration::from_secs(2);
/// The shortest that such nodes give.
pub(crate) const LEASE: Duration = Duration::from_secs(8);
/// Longer than anything takes that happens at all.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

const SLOTS: u32 = 8;

/// Nodes, and the etcd below them.
pub(crate) struct Nodes {
    /// The process of each node, unless it was killed.
    running: Vec<Option<Running>>,
    /// The address of each.
    addresses: Vec<String>,
    pub(crate) etcd: EtcdMembers,
    folder: Folder,
    runtime: Runtime,
}

impl Nodes {
    /// Starts so many nodes on so many members, and waits until their slots stay where they are.
    pub(crate) fn start(test: &str, count: usize, members: usize) -> Self {
        Self::start_on(test, count, EtcdMembers::start_in_memory(members).expect("etcd starts"))
    }

    /// The same on this etcd.
    pub(crate) fn start_on(test: &str, count: usize, etcd: EtcdMembers) -> Self {
        let port = |_| servers::Address::free_port().expect("a port").to_string();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let mut nodes = Self {
            running: (0..count).map(|_| None).collect(),
            addresses: (0..count).map(port).collect(),
            etcd,
            folder: Folder::new(test),
            runtime: runtime.expect("a runtime"),
        };
        for number in 0..count {
            nodes.run(number);
        }
        nodes.await_balance(count);
        nodes
    }

    /// Starts a node.
    pub(crate) fn run(&mut self, number: usize) {
        let log = self.folder.path().join(format!("n{number}.log"));
        let log = File::options().append(true).create(true).open(log).expect("a log");
        let (listen, members) = (&self.addresses[number], self.etcd.addresses().join(","));
        let milliseconds = |time: Duration| format!("{}ms", time.as_millis());
        let child = Command::new(NAVLOCKS)
            .args(["serve", "--no-socket", "--listen", listen, "--slots", &SLOTS.to_string()])
            .args(["--cluster", &format!("etcd://{members}"), "--node", &format!("n{number}")])
            .args(["--node-lease", &milliseconds(NODE_LEASE), "--lease", &milliseconds(LEASE)])
            .args(["--lease-min", &milliseconds(LEASE)])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .expect("the node starts");
        self.running[number] = Some(Running(child));
    }

    /// Kills a node.
    pub(crate) fn kill(&mut self, number: usize) {
        if let Some(node) = self.running[number].take() {
            node.kill();
        }
    }

    /// Ends a node in good order: it gives its slots away.
    pub(crate) fn terminate(&mut self, number: usize) {
        if let Some(mut node) = self.running[number].take() {
            node.signal(Signal::TERM);
            assert!(node.0.wait().expect("it ends").success(), "{}", self.log(number));
        }
    }

    /// Stops a node, until it is continued.
    pub(crate) fn signal(&self, number: usize, signal: Signal) {
        if let Some(node) = &self.running[number] {
            node.signal(signal);
        }
    }

    /// How many nodes there are, running or not.
    pub(crate) fn count(&self) -> usize {
        self.running.len()
    }

    /// The list of all nodes for clients.
    pub(crate) fn url(&self) -> String {
        format!("ws://{}", self.addresses.join(","))
    }

    /// The list of these nodes for clients.
    pub(crate) fn url_of(&self, numbers: &[usize]) -> String {
        let addresses: Vec<&str> =
            numbers.iter().map(|&number| self.addresses[number].as_str()).collect();
        format!("ws://{}", addresses.join(","))
    }

    /// A new client in a partition, which waits for nodes as long as it takes.
    pub(crate) fn client(&self, partition: &str) -> Locks {
        let connect =
            Locks::connect(self.url()).partition(partition).unreachable_after(None).retry();
        block_on(connect.timeout(PATIENCE).into_future()).expect("a node answers")
    }

    /// Reads nodes and slots from etcd.
    pub(crate) fn view(&self) -> Option<ClusterView> {
        let address = format!("etcd://{}", self.etcd.addresses().join(","));
        let address = Address::parse(&address).expect("an address");
        let inspection = Inspection::new(&address, &TlsFiles::default()).expect("no certificates");
        self.runtime.block_on(inspection.look()).ok()
    }

    /// Waits until so many nodes have their slots for good.
    pub(crate) fn await_balance(&mut self, count: usize) {
        let settled = |view: ClusterView| view.nodes.len() == count && view.is_balanced();
        let begin = Instant::now();
        while !self.view().is_some_and(settled) {
            for number in 0..self.running.len() {
                let node = self.running[number].as_mut();
                let ended = node.and_then(|node| node.0.try_wait().expect("it is a child"));
                assert!(ended.is_none(), "{}", self.log(number));
            }
            assert!(begin.elapsed() < PATIENCE, "{:?}", self.view());
            sleep(Duration::from_millis(20));
        }
    }

    /// The node that owns the slot of a partition.
    pub(crate) fn owner(&self, partition: &str) -> usize {
        let begin = Instant::now();
        loop {
            let slot = slot_of(&["", "", partition], SLOTS) as usize;
            let owner = self.view().and_then(|view| view.slots[slot].address.clone());
            let named = |owner: &String| {
                self.addresses.iter().position(|it| owner.ends_with(&format!("//{it}")))
            };
            if let Some(number) = owner.as_ref().and_then(named) {
                return number;
            }
            assert!(begin.elapsed() < PATIENCE, "no node owns slot {slot}");
            sleep(Duration::from_millis(20));
        }
    }

    /// Does something to etcd.
    pub(crate) fn in_etcd<T>(&self, work: impl AsyncFnOnce(etcd_client::Client) -> T) -> T {
        self.runtime.block_on(async {
            let client = etcd_client::Client::connect(self.etcd.addresses(), None).await;
            work(client.expect("etcd answers")).await
        })
    }

    /// Returns the log of a node.
    pub(crate) fn log(&self, number: usize) -> String {
        let log = self.folder.path().join(format!("n{number}.log"));
        std::fs::read_to_string(log).unwrap_or_default()
    }
}
