//! PostgreSQL with its default settings. Advisory locks live in shared memory and are not written
//! to disk.

use std::fs;
use std::io;
use std::os::unix::fs::chown;
use std::path::Path;
use std::process::Command;

use super::folder::Folder;
use super::process::{End, tied};
use super::{Address, Program, Server, output, program};

/// The program of this server.
pub const PROGRAM: Program =
    Program { name: "postgres", end: End::Interrupt, account, version, start };

/// The account and database of the measurement.
const USER: &str = "bench";

/// Few clients, because each is a process there.
const CLIENTS_MAX: &str = "200";

fn version() -> Result<String, String> {
    let line = output(Command::new(program("postgres", "postgresql")?).arg("--version"))?;
    let word = line.split(' ').find(|word| word.starts_with(|first: char| first.is_ascii_digit()));
    Ok(format!("PostgreSQL {}", word.unwrap_or(&line)))
}

fn start() -> Result<Server, String> {
    let [initdb, postgres, ready] =
        ["initdb", "postgres", "pg_isready"].map(|name| program(name, "postgresql"));
    let (initdb, postgres, ready) = (initdb?, postgres?, ready?);
    let folder = Folder::new("postgres").map_err(|error| error.to_string())?;
    let tcp = Address::free_port().map_err(|error| error.to_string())?;
    let port = tcp.port().to_string();
    if account().is_some() {
        own(folder.path()).map_err(|error| format!("no account postgres: {error}"))?;
    }
    let data = folder.path().join("data");
    let mut command = Command::new(initdb);
    command.args(["--auth", "trust", "--username", USER, "--no-sync", "--pgdata"]).arg(&data);
    output(tied(PROGRAM, &command).current_dir(folder.path()))?;
    let mut command = Command::new(postgres);
    command.arg("-D").arg(&data).arg("-k").arg(folder.path());
    command.args(["-h", "127.0.0.1", "-p", &port, "-N", CLIENTS_MAX]);
    let unix = folder.path().join(format!(".s.PGSQL.{port}"));
    let server =
        Server::start(PROGRAM, folder, &mut command, vec![Address::Unix(unix), Address::Tcp(tcp)])?;
    // It listens before it answers.
    let answers = || output(Command::new(&ready).args(["-h", "127.0.0.1", "-p", &port])).is_ok();
    server.wait_until(answers).map_err(|problem| format!("postgres {problem}"))?;
    Ok(server)
}

/// Returns the account of its package: PostgreSQL refuses to run as root.
fn account() -> Option<&'static str> {
    rustix::process::geteuid().is_root().then_some("postgres")
}

/// Gives the folder to that account.
fn own(folder: &Path) -> io::Result<()> {
    let accounts = fs::read_to_string("/etc/passwd")?;
    let account = accounts.lines().find_map(|line| {
        let fields: Vec<&str> = line.split(':').collect();
        let ["postgres", _, user, group, ..] = fields[..] else { return None };
        Some((user.parse().ok()?, group.parse().ok()?))
    });
    let (user, group) = account.ok_or_else(|| io::Error::other("none in /etc/passwd"))?;
    chown(folder, Some(user), Some(group))
}
