//! etcd, one member, on disk as it always is.

use std::process::Command;

use super::folder::Folder;
use super::process::End;
use super::{Address, Program, Server, output, program};

pub(crate) const PROGRAM: Program =
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
