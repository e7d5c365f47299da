//! The example of a cluster, as its reader runs it.

use std::process::{Command, Stdio};

use crate::serve::NAVLOCKS;

#[test]
fn example_of_a_cluster_shows_a_lock_that_outlives_its_owner() {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/cluster/run");
    // Below the ports that the system gives, and apart from those of other servers of tests.
    let port = 10_000 + std::process::id() % 900 * 10;
    let ended = Command::new(script)
        .envs([("NAVLOCKS", NAVLOCKS), ("PORT", &port.to_string())])
        .stdin(Stdio::null())
        .output()
        .expect("the example starts");
    let said = String::from_utf8_lossy(&ended.stdout);
    assert!(ended.status.success(), "{said}\n{}", String::from_utf8_lossy(&ended.stderr));
    let token = |line: &str| {
        let line = said.lines().find(|it| it.starts_with(line)).expect("it says so");
        line.rsplit(' ').next().and_then(|word| word.parse::<u64>().ok()).expect("a token")
    };
    assert!(said.contains("which owns the lock") && said.contains("took over"), "{said}");
    assert!(said.contains("the first command still held it to its end"), "{said}");
    assert!(token("the first command holds") < token("the second command has"), "{said}");
}
