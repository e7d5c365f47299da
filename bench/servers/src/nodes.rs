//! Nodes of a navlocks cluster, each a process that can be killed, ended and started again.

use std::process::Command;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use super::folder::Folder;
use super::navlocks::{PROGRAM, command_of_nodes};
use super::{Address, Server};

/// The nodes of one cluster.
#[derive(Debug)]
pub struct Nodes {
    running: Vec<Option<Server>>,
    addresses: Vec<Address>,
    sockets: Vec<Address>,
    etcd: String,
    /// Further arguments of each node.
    arguments: Vec<String>,
    /// Their sockets are in it.
    _folder: Folder,
}

impl Nodes {
    /// Starts so many nodes on an etcd, whose address is as `serve --cluster` takes it. Without a
    /// node lease they have the default.
    ///
    /// # Errors
    /// The failure, with the last line of the node's log.
    pub fn start(count: usize, etcd: &str, node_lease: Option<Duration>) -> Result<Self, String> {
        let arguments = node_lease.map_or_else(Vec::new, |lease| {
            // The shortest that outlasts an election in etcd as well.
            let session = (lease + Duration::from_secs(2)) * 8 / 5 + Duration::from_millis(1);
            leases(lease, session)
        });
        Self::start_with(count, etcd, arguments)
    }

    /// Starts so many nodes with these leases of nodes and sessions.
    ///
    /// # Errors
    /// As for [`Nodes::start`].
    pub fn start_leased(
        count: usize,
        etcd: &str,
        (node, session): (Duration, Duration),
    ) -> Result<Self, String> {
        Self::start_with(count, etcd, leases(node, session))
    }

    fn start_with(count: usize, etcd: &str, arguments: Vec<String>) -> Result<Self, String> {
        let folder = Folder::new("nodes").map_err(|error| error.to_string())?;
        let tcp = |_| Ok(Address::Tcp(Address::free_port().map_err(|error| error.to_string())?));
        let socket = |number: usize| Address::Unix(folder.path().join(format!("n{number}/socket")));
        let mut nodes = Self {
            running: (0..count).map(|_| None).collect(),
            addresses: (0..count).map(tcp).collect::<Result<_, String>>()?,
            sockets: (0..count).map(socket).collect(),
            etcd: etcd.to_owned(),
            arguments,
            _folder: folder,
        };
        for number in 0..count {
            nodes.restart(number)?;
        }
        Ok(nodes)
    }

    /// Where each node listens for clients of a network.
    pub fn addresses(&self) -> &[Address] {
        &self.addresses
    }

    /// Where each node listens for clients of its machine.
    pub fn sockets(&self) -> &[Address] {
        &self.sockets
    }

    /// Starts a node, again or for the first time.
    ///
    /// # Errors
    /// As for [`Nodes::start`].
    pub fn restart(&mut self, number: usize) -> Result<(), String> {
        self.running[number] = None;
        let addresses = vec![self.addresses[number].clone(), self.sockets[number].clone()];
        let [Address::Tcp(tcp), Address::Unix(socket)] = &addresses[..] else {
            return Err("a node has a port and a socket".to_owned());
        };
        let mut serve = Command::new(command_of_nodes()?);
        serve.args(["serve", "--cluster", &self.etcd, "--node", &format!("n{number}")]);
        serve.args(["--listen", &tcp.to_string()]).arg("--socket").arg(socket);
        serve.args(["--advertise", &format!("ws://{tcp}")]);
        serve.args(&self.arguments);
        let folder = Folder::new("node").map_err(|error| error.to_string())?;
        self.running[number] = Some(Server::start(PROGRAM, folder, &mut serve, addresses)?);
        Ok(())
    }

    /// Kills a node.
    pub fn kill(&mut self, number: usize) {
        self.signal(number, Signal::KILL);
        self.running[number] = None;
    }

    /// Lets a node end in good order, and does not wait for that.
    pub fn end(&self, number: usize) {
        self.signal(number, Signal::TERM);
    }

    fn signal(&self, number: usize, signal: Signal) {
        let pid = self.running[number].as_ref().map(|server| server.pid().cast_signed());
        if let Some(pid) = pid.and_then(Pid::from_raw) {
            // A node that has ended needs no signal.
            let _ = kill_process(pid, signal);
        }
    }
}

/// Returns the arguments for these leases of nodes and sessions.
fn leases(node: Duration, session: Duration) -> Vec<String> {
    let millis = |lease: Duration| format!("{}ms", lease.as_millis());
    let arguments = [("--node-lease", node), ("--lease", session), ("--lease-min", session)];
    arguments.into_iter().flat_map(|(name, lease)| [name.to_owned(), millis(lease)]).collect()
}
