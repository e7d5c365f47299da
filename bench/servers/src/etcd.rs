//! etcd, one member or several, with its usual storage on disk.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};

use super::folder::Folder;
use super::process::End;
use super::{Address, Program, Server, output, program};

/// The program of this server.
pub const PROGRAM: Program =
    Program { name: "etcd", end: End::Terminate, account: || None, version, start };

fn version() -> Result<String, String> {
    let text = output(Command::new(program("etcd", "etcd-server")?).arg("--version"))?;
    let line = text.lines().next().unwrap_or_default();
    Ok(format!("etcd {}", line.rsplit(' ').next().unwrap_or_default()))
}

fn start() -> Result<Server, String> {
    let etcd = program("etcd", "etcd-server")?;
    let folder = Folder::new("etcd").map_err(|error| error.to_string())?;
    let port = || Address::free_port().map_err(|error| error.to_string());
    let (tcp, peers) = (port()?, port()?);
    let (client_url, peer_url) = (format!("http://{tcp}"), format!("http://{peers}"));
    let mut command = Command::new(etcd);
    command.args(["--listen-client-urls", &client_url, "--advertise-client-urls", &client_url]);
    command.args(["--listen-peer-urls", &peer_url, "--initial-advertise-peer-urls", &peer_url]);
    command.args(["--initial-cluster", &format!("default={peer_url}"), "--data-dir", "data"]);
    Server::start(PROGRAM, folder, &mut command, vec![Address::Tcp(tcp)])
}

/// Several members of one etcd, each of which can be stopped, killed and restarted.
#[derive(Debug)]
pub struct Members {
    /// Declared here so that it outlives the members, whose data it has.
    folder: Folder,
    /// The addresses for clients and for the other members.
    addresses: Vec<(SocketAddr, SocketAddr)>,
    running: Vec<Option<Server>>,
    options: Vec<String>,
}

impl Members {
    /// Starts this many members, with further options of etcd.
    ///
    /// # Errors
    /// The failure, with the last line of the member's log.
    pub fn start(count: usize, options: &[&str]) -> Result<Self, String> {
        Self::start_in(Folder::new("members"), count, options)
    }

    /// Starts so many members that keep their data in memory, for tests that measure nothing.
    ///
    /// # Errors
    /// As for [`Members::start`].
    pub fn start_in_memory(count: usize) -> Result<Self, String> {
        // Passwords are hashed in milliseconds, so that a busy machine does not outlast a request.
        Self::start_in(Folder::in_memory("members"), count, &["--bcrypt-cost", "4"])
    }

    /// Starts one member that speaks TLS with its clients. It reads both files for each connection.
    ///
    /// # Errors
    /// As for [`Members::start`].
    pub fn start_encrypted(certificate: &Path, key: &Path) -> Result<Self, String> {
        let (certificate, key) = (certificate.to_string_lossy(), key.to_string_lossy());
        let options = ["--cert-file", &certificate, "--key-file", &key];
        Self::start_in(Folder::in_memory("members"), 1, &options)
    }

    fn start_in(
        folder: io::Result<Folder>,
        count: usize,
        options: &[&str],
    ) -> Result<Self, String> {
        let port = || Address::free_port().map_err(|error| error.to_string());
        let pair = |_| Ok((port()?, port()?));
        let mut members = Self {
            folder: folder.map_err(|error| error.to_string())?,
            addresses: (0..count).map(pair).collect::<Result<_, String>>()?,
            running: (0..count).map(|_| None).collect(),
            options: options.iter().map(|option| (*option).to_owned()).collect(),
        };
        members.launch_all()?;
        Ok(members)
    }

    fn command(&self, number: usize) -> Result<Command, String> {
        let (client, peer) = self.addresses[number];
        let is_encrypted = self.options.iter().any(|option| option == "--cert-file");
        let scheme = if is_encrypted { "https" } else { "http" };
        let (client, peer) = (format!("{scheme}://{client}"), format!("http://{peer}"));
        let mut command = Command::new(program("etcd", "etcd-server")?);
        command.args(["--name", &format!("m{number}"), "--initial-cluster", &self.peers()]);
        command.args(["--listen-client-urls", &client, "--advertise-client-urls", &client]);
        command.args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer]);
        command.args(["--heartbeat-interval", "50", "--election-timeout", "500"]);
        command.arg("--data-dir").arg(self.data(number));
        command.args(&self.options);
        Ok(command)
    }

    fn launch(&self, number: usize) -> Result<Server, String> {
        let folder = Folder::new("etcd").map_err(|error| error.to_string())?;
        let addresses = vec![Address::Tcp(self.addresses[number].0)];
        Server::launch(PROGRAM, folder, &mut self.command(number)?, addresses)
    }

    /// Returns `host:port` of each member for clients.
    pub fn addresses(&self) -> Vec<String> {
        self.addresses.iter().map(|(client, _)| client.to_string()).collect()
    }

    /// Restarts a member, with its data.
    ///
    /// # Errors
    /// As for [`Members::start`].
    pub fn restart(&mut self, number: usize) -> Result<(), String> {
        self.running[number] = None;
        let server = self.launch(number)?;
        server.wait_until_it_accepts()?;
        self.running[number] = Some(server);
        Ok(())
    }

    /// Replaces all members by new ones without data, at the same addresses.
    ///
    /// # Errors
    /// As for [`Members::start`].
    pub fn replace(&mut self) -> Result<(), String> {
        (0..self.running.len()).for_each(|number| self.kill(number));
        for number in 0..self.running.len() {
            std::fs::remove_dir_all(self.data(number)).map_err(|error| error.to_string())?;
        }
        self.launch_all()
    }

    /// Runs a command of `etcdctl`, as an operator does it.
    ///
    /// # Errors
    /// The words of `etcdctl`.
    pub fn etcdctl(&self, arguments: &[&str]) -> Result<String, String> {
        let mut etcdctl = Command::new(program("etcdctl", "etcd-client")?);
        output(etcdctl.args(["--endpoints", &self.addresses()[0]]).args(arguments))
    }

    /// Saves a snapshot, as an operator does it.
    ///
    /// # Errors
    /// The words of `etcdctl`.
    pub fn save(&self) -> Result<(), String> {
        let snapshot = self.snapshot();
        self.etcdctl(&["snapshot", "save", &snapshot.to_string_lossy()]).map(|_| ())
    }

    /// Restores all members from the snapshot, with the same names and addresses: etcd's own id
    /// stays the same.
    ///
    /// # Errors
    /// The words of `etcdctl`, or as for [`Members::start`].
    pub fn restore(&mut self) -> Result<(), String> {
        (0..self.running.len()).for_each(|number| self.kill(number));
        for (number, (_, peer)) in self.addresses.iter().enumerate() {
            let data = self.data(number);
            std::fs::remove_dir_all(&data).map_err(|error| error.to_string())?;
            let mut etcdctl = Command::new(program("etcdctl", "etcd-client")?);
            etcdctl.args(["snapshot", "restore"]).arg(self.snapshot());
            etcdctl.args(["--name", &format!("m{number}"), "--initial-cluster", &self.peers()]);
            etcdctl.args(["--initial-advertise-peer-urls", &format!("http://{peer}")]);
            output(etcdctl.arg("--data-dir").arg(data))?;
        }
        self.launch_all()
    }

    fn data(&self, number: usize) -> PathBuf {
        self.folder.path().join(format!("m{number}"))
    }

    fn snapshot(&self) -> PathBuf {
        self.folder.path().join("snapshot")
    }

    fn peers(&self) -> String {
        let peers = (0..).zip(&self.addresses);
        let peers = peers.map(|(number, (_, peer))| format!("m{number}=http://{peer}"));
        peers.collect::<Vec<String>>().join(",")
    }

    fn launch_all(&mut self) -> Result<(), String> {
        for number in 0..self.running.len() {
            self.running[number] = Some(self.launch(number)?);
        }
        // A member accepts connections when it has found the others.
        self.running.iter().flatten().try_for_each(Server::wait_until_it_accepts)
    }

    /// Kills a member.
    pub fn kill(&mut self, number: usize) {
        self.signal(number, Signal::KILL);
        self.running[number] = None;
    }

    /// Stops a member, until it is resumed. All its threads have stopped when this returns.
    pub fn pause(&self, number: usize) {
        if let Some(pid) = self.signal(number, Signal::STOP) {
            let changes = WaitIdOptions::STOPPED | WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
            // The server collects the status of its process itself.
            let _ = waitid(WaitId::Pid(pid), changes);
        }
    }

    /// Continues a member that was stopped.
    pub fn resume(&self, number: usize) {
        self.signal(number, Signal::CONT);
    }

    /// Sends a signal to a member, and returns its process. A member that has ended needs none.
    fn signal(&self, number: usize, signal: Signal) -> Option<Pid> {
        let pid = self.running[number].as_ref().map(|server| server.pid().cast_signed());
        pid.and_then(Pid::from_raw).filter(|&pid| kill_process(pid, signal).is_ok())
    }
}

impl Drop for Members {
    fn drop(&mut self) {
        // A stopped process would not end.
        (0..self.running.len()).for_each(|number| self.resume(number));
        self.running.clear();
    }
}
