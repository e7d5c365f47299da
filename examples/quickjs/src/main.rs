//! A small JavaScript runtime whose workers are threads, with `navigator.locks` by navlocks.
//!
//! `navlocks-quickjs [--worker] [--insecure] FILE...` runs classic scripts in one global object,
//! then its event loop until nothing is left to do. With `--worker` the scripts run in a worker,
//! with `--insecure` in a context without locks.

mod agent;
mod bridge;
mod modules;

use std::process::ExitCode;
use std::sync::Arc;

use navlocks_core::kit::Limits;
use navlocks_core::{DeadlockPolicy, HashKey};
use navlocks_threads::SharedHost;

use crate::agent::{Agent, Bell, Start};

/// The state that all agents of the process share.
struct Process {
    locks: SharedHost<Bell>,
    /// Whether scripts run in a secure context, which alone has locks.
    secure: bool,
}

fn main() -> ExitCode {
    let (flags, files): (Vec<_>, Vec<_>) =
        std::env::args().skip(1).partition(|given| given.starts_with("--"));
    let has = |flag: &str| flags.iter().any(|given| given == flag);
    let unknown = flags.iter().find(|flag| !["--worker", "--insecure"].contains(&flag.as_str()));
    if files.is_empty() || unknown.is_some() {
        eprintln!("usage: navlocks-quickjs [--worker] [--insecure] FILE...");
        return ExitCode::from(2);
    }
    // The names come from scripts of the same user, so they need no secret key.
    let key = HashKey::from_bytes([7; 16]);
    let locks = SharedHost::new(key, Limits::NONE, DeadlockPolicy::Ignore);
    let process = Arc::new(Process { locks, secure: !has("--insecure") });
    let start = if has("--worker") {
        let list: Vec<_> = files.iter().map(|file| format!("{file:?}")).collect();
        Start::Text(format!("new Worker({});", list.join(", ")))
    } else {
        Start::Files(files)
    };
    match Agent::run(&process, start, None) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
