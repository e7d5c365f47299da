//! The example of a storage process and its script processes.
#![cfg(unix)]

use std::env;
use std::process::Command;

#[path = "../examples/storage_process.rs"]
mod example;

/// A script process of the test below, which starts this program again.
#[test]
fn script_process() {
    if env::var_os(example::ROLE).is_some() {
        example::script().unwrap();
    }
}

#[test]
fn lock_of_killed_script_process_goes_to_next_process() {
    let program = env::current_exe().unwrap();
    let script = || {
        let mut command = Command::new(&program);
        command.args(["--exact", "script_process", "--nocapture"]);
        command
    };
    let mut lines = Vec::new();
    example::browse(script, |line| lines.push(line)).unwrap();
    let expected = [
        "script process 0 holds cart, token 1",
        "script process 1 waits for cart",
        "script process 2 waits for cart",
        "script process 0 is killed",
        "script process 1 holds cart, token 2",
        "script process 2 holds cart, token 3",
    ];
    assert_eq!(lines, expected);
}
