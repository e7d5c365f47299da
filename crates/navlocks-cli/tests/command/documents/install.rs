//! The line of the documents that installs completions and manual.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use crate::support::{World, assert_ended, finish, program};

#[test]
fn documented_line_installs_completions_and_manual() {
    let world = World::new();
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/install.md");
    let page = fs::read_to_string(page).unwrap();
    let mut lines = page.lines().filter(|line| line.starts_with("navlocks completions bash |"));
    let line = lines.next().expect("the line is there");
    symlink(program(), world.file("navlocks")).unwrap();
    let mut shell = Command::new("sh");
    world.settle(&mut shell);
    shell.args(["-ec", &format!("PATH={}:$PATH; {line}", world.file("").display())]);
    shell.env("HOME", world.file("home"));
    assert_ended(&finish(shell), 0, "");
    let share = world.file("home").join(".local/share");
    let script = fs::read_to_string(share.join("bash-completion/completions/navlocks")).unwrap();
    assert!(script.contains("_navlocks_held"), "{script}");
    let page = fs::read_to_string(share.join("man/man1/navlocks.1")).unwrap();
    assert!(page.contains(".TH navlocks 1"), "{page}");
}
