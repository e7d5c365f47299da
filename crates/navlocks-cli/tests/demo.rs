//! The command as a user sees it: its text against the committed one, and a reader that leaves early.

use std::io;
use std::path::Path;
use std::process::Command;

fn navlocks() -> Command {
    Command::new(env!("CARGO_BIN_EXE_navlocks"))
}

/// Set `UPDATE_SNAPSHOTS=1` to accept the new text, then read the diff.
#[test]
fn the_demonstration_prints_the_committed_text() {
    let snapshot = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/demo.txt");
    let output = navlocks().output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    if std::env::var_os("UPDATE_SNAPSHOTS").is_some() {
        std::fs::write(&snapshot, &text).unwrap();
    }
    let committed = std::fs::read_to_string(&snapshot).unwrap();
    assert_eq!(text, committed, "the text changed: see {}", snapshot.display());
}

#[test]
fn a_reader_that_leaves_early_is_no_error() {
    let (reader, writer) = io::pipe().unwrap();
    drop(reader);
    let output = navlocks().stdout(writer).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}
