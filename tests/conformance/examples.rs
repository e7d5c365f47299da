//! The examples of the crate, run with their output checked. Each is a module here: `run` does the
//! work, and `main` only prints.

use std::collections::BTreeSet;
use std::error::Error;
use std::fs;
use std::io::Write;

use crate::patience::comes_back;

#[allow(dead_code, reason = "main is for cargo run")]
#[path = "../../crates/navlocks/examples/graceful_handover.rs"]
mod graceful_handover;
#[allow(dead_code, reason = "main is for cargo run")]
#[path = "../../crates/navlocks/examples/leader_election.rs"]
mod leader_election;
#[allow(dead_code, reason = "main is for cargo run")]
#[path = "../../crates/navlocks/examples/reader_writer_cache.rs"]
mod reader_writer_cache;
#[allow(dead_code, reason = "main is for cargo run")]
#[path = "../../crates/navlocks/examples/timeout_and_steal.rs"]
mod timeout_and_steal;
#[allow(dead_code, reason = "main is for cargo run")]
#[path = "../../crates/navlocks/examples/transfer.rs"]
mod transfer;

/// The function of an example, and its output.
type Run = fn(&mut dyn Write) -> Result<(), Box<dyn Error>>;

/// Returns the lines that an example prints.
fn lines(run: Run) -> Vec<String> {
    let out = comes_back(move || {
        let mut out = Vec::new();
        run(&mut out).unwrap();
        out
    });
    String::from_utf8(out).unwrap().lines().map(String::from).collect()
}

#[test]
fn every_example_is_run() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../crates/navlocks/examples");
    let files = fs::read_dir(folder).unwrap();
    let files: BTreeSet<String> =
        files.map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
    let source = concat!(
        include_str!("examples.rs"),
        include_str!("web_server.rs"),
        include_str!("../faults/fenced.rs")
    );
    let run =
        source.lines().filter_map(|line| line.strip_prefix("#[path = \"")?.strip_suffix("\"]"));
    let run: BTreeSet<String> =
        run.map(|path| path.rsplit('/').next().unwrap().to_owned()).collect();
    assert_eq!(files, run);
}

#[test]
fn leader_election_grants_the_next_candidate() {
    let lines = lines(leader_election::run);
    let (terms, ends) = lines.split_at(6);
    let mut leaders = BTreeSet::new();
    for (term, pair) in (1..).zip(terms.chunks(2)) {
        let name = pair[0].strip_suffix(&format!(" leads, term {term}")).unwrap();
        assert_eq!(pair[1], format!("{name} is cut off"));
        assert!(leaders.insert(name), "{name} leads twice");
    }
    let ended = |name| format!("{name} stepped down: the client that held the lock was ended");
    assert_eq!(ends, ["east", "north", "west"].map(ended));
}

#[test]
fn reader_writer_cache_loads_each_value_once() {
    let expected = [
        "16 answers, 2 loads",
        "16 more answers, 2 loads",
        "16 more answers after one change, 3 loads",
    ];
    assert_eq!(lines(reader_writer_cache::run), expected);
}

#[test]
fn transfer_keeps_the_total() {
    let expected = [
        "before: 300 in 3 accounts",
        "1000 transfers by 4 clerks at once",
        "after: 300 in 3 accounts",
    ];
    assert_eq!(lines(transfer::run), expected);
}

#[test]
fn timeout_and_steal_refuses_the_late_writer() {
    let lines = lines(timeout_and_steal::run);
    let expected = [
        "worker: holds the lock, and hangs",
        "operator: the lock was not free within 50ms",
        "operator: report is held by the nightly worker",
        "operator: took it away",
        "operator: wrote the report",
        "worker: refused: token 1 is older than 2",
        "worker: the lock was stolen by request ",
        "the report: written by the operator",
    ];
    assert_eq!(lines.len(), expected.len());
    for (line, expected) in lines.iter().zip(expected) {
        assert!(line.starts_with(expected), "{line}");
    }
}

#[test]
fn graceful_handover_grants_the_backup() {
    let expected = [
        "indexer: opened the index and keeps it open",
        "indexer: a request waits, so it closes the index",
        "backup: copies the closed index",
        "indexer: opened the index again",
    ];
    assert_eq!(lines(graceful_handover::run), expected);
}
