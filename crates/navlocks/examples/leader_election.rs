//! Leader election: several nodes request one lock, and its holder leads. The others are waiters,
//! so there is no gap and no vote when a leader fails.
//!
//! ```sh
//! cargo run -p navlocks --example leader_election
//! ```

use std::error::Error;
use std::io::{self, Write};
use std::sync::mpsc::{self, Sender};
use std::thread;

use navlocks::blocking::block_on;
use navlocks::{FencingToken, Locks, LossCause, RequestError};

fn main() -> Result<(), Box<dyn Error>> {
    run(&mut io::stdout().lock())
}

/// The news of a node.
struct Elected {
    name: &'static str,
    term: FencingToken,
    node: Locks,
}

/// Runs a node: it waits, leads, and stops leading when it loses the lock.
fn live(
    name: &'static str,
    node: Locks,
    elected: &Sender<Elected>,
) -> Result<LossCause, RequestError> {
    let lock = node.request("leader").tag(name).lock_blocking()?;
    // The token is the term: every later leader has a larger one.
    let term = lock.fencing_token();
    elected.send(Elected { name, term, node }).ok();
    // A real leader works meanwhile, and stops as soon as this resolves.
    Ok(block_on(lock.lost()))
}

pub(crate) fn run(out: &mut dyn Write) -> Result<(), Box<dyn Error>> {
    let cluster = Locks::new();
    let (elected, elections) = mpsc::channel();
    let names = ["east", "north", "west"];
    let nodes = names.map(|name| {
        let (node, elected) = (cluster.new_client(), elected.clone());
        thread::spawn(move || live(name, node, &elected))
    });
    for _ in names {
        let Elected { name, term, node } = elections.recv()?;
        writeln!(out, "{name} leads, term {term}")?;
        // The leader's connection breaks. Whatever its code does, the next waiter leads from now
        // on.
        node.end_client();
        writeln!(out, "{name} is cut off")?;
    }
    for (name, node) in names.iter().zip(nodes) {
        let loss = node.join().map_err(|_| format!("{name} crashed"))??;
        writeln!(out, "{name} stepped down: {loss}")?;
    }
    Ok(())
}
