//! The service of navlocks, built from this workspace, with a socket, a port and a state of its
//! own.

use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

use super::folder::Folder;
use super::process::End;
use super::{Address, Program, Server, output};

/// The program of this server.
pub const PROGRAM: Program =
    Program { name: "navlocks", end: End::Terminate, account: || None, version, start };

/// Builds the command as its users have it, and returns its path.
pub fn command() -> Result<PathBuf, String> {
    static BUILT: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    BUILT.get_or_init(|| build(&[])).clone()
}

/// Builds the command of nodes, which needs the compiler of etcd's protocol. Returns the path of a
/// copy: cargo puts the command of other users in the same place.
pub(crate) fn command_of_nodes() -> Result<PathBuf, String> {
    static BUILT: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    let copied = || {
        let path = build(&["--features", "etcd"])?;
        if std::env::var_os(GIVEN).is_some() {
            return Ok(path);
        }
        let copy = path.with_file_name("navlocks-node");
        // A node of another run may still use the file of an earlier copy.
        let _was_there = std::fs::remove_file(&copy);
        std::fs::copy(path, &copy).map_err(|error| error.to_string())?;
        Ok(copy)
    };
    BUILT.get_or_init(copied).clone()
}

/// The variable with the path of a command that is built already, for tests that look at no figure.
const GIVEN: &str = "NAVLOCKS_BENCH_COMMAND";

fn build(options: &[&str]) -> Result<PathBuf, String> {
    if let Some(path) = std::env::var_os(GIVEN) {
        return Ok(path.into());
    }
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let workspace = concat!(env!("CARGO_MANIFEST_DIR"), "/../../Cargo.toml");
    let mut build = Command::new(cargo);
    build.args(["build", "--release", "--package", "navlocks-cli", "--bin", "navlocks"]);
    build.args(["--manifest-path", workspace, "--message-format", "json-render-diagnostics"]);
    build.args(options);
    // Removed because the build script of `ring` watches them: with them half of the service is
    // built again.
    for (name, _) in std::env::vars_os() {
        let name = name.to_string_lossy();
        if name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_") {
            build.env_remove(&*name);
        }
    }
    let messages = output(&mut build)?;
    // Cargo reports where it puts each artifact, one line each; one of them is the program.
    let path = messages.lines().filter_map(|line| line.split_once("\"executable\":\"")).next_back();
    let path = path.and_then(|(_, rest)| rest.split_once('"'));
    path.map(|(path, _)| path.into()).ok_or_else(|| "the build made no program".to_string())
}

fn version() -> Result<String, String> {
    output(Command::new(command()?).arg("--version"))
}

fn start() -> Result<Server, String> {
    let folder = Folder::new("navlocks").map_err(|error| error.to_string())?;
    let tcp = Address::free_port().map_err(|error| error.to_string())?;
    // The service makes this folder itself, because no other user may enter it.
    let place = folder.path().join("place");
    let unix = place.join("socket");
    let mut serve = Command::new(command()?);
    serve.arg("serve").arg("--socket").arg(&unix).arg("--state-dir").arg(&place);
    serve.args(["--fresh", "--listen", &tcp.to_string()]);
    Server::start(PROGRAM, folder, &mut serve, vec![Address::Unix(unix), Address::Tcp(tcp)])
}
