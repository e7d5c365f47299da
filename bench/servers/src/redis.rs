//! Redis, all in memory, or with its log of commands, which is synced every second as by default.

use std::process::Command;

use super::folder::Folder;
use super::process::End;
use super::{Address, Program, Server, output, program};

/// How it is started.
pub const PROGRAM: Program = Program {
    name: "redis",
    end: End::Terminate,
    account: || None,
    version,
    start: || start("no"),
};

/// How it is started with its log of commands.
pub const LOGGED: Program = Program { start: || start("yes"), ..PROGRAM };

/// More clients than the largest case has.
const CLIENTS_MAX: &str = "12000";

fn command() -> Result<Command, String> {
    Ok(Command::new(program("redis-server", "redis-server")?))
}

fn version() -> Result<String, String> {
    let line = output(command()?.arg("--version"))?;
    let word = line.split(' ').find_map(|word| word.strip_prefix("v="));
    Ok(format!("Redis {}", word.unwrap_or(&line)))
}

fn start(log: &str) -> Result<Server, String> {
    let folder = Folder::new("redis").map_err(|error| error.to_string())?;
    let tcp = Address::free_port().map_err(|error| error.to_string())?;
    let unix = folder.path().join("socket");
    let mut command = command()?;
    command.args(["--bind", "127.0.0.1", "--port", &tcp.port().to_string()]);
    command.arg("--unixsocket").arg(&unix);
    command.args(["--save", "", "--appendonly", log, "--maxclients", CLIENTS_MAX]);
    Server::start(PROGRAM, folder, &mut command, vec![Address::Unix(unix), Address::Tcp(tcp)])
}
