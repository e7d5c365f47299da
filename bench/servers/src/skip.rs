//! Tests that cannot run on this machine.

use std::fmt::Display;
use std::io::{self, Write as _};
use std::thread;

/// Reports that the running test is skipped, with its name and the reason. `./test` lists and
/// counts these lines.
pub fn skip(reason: impl Display) {
    // The test harness names the thread of a test after it.
    let thread = thread::current();
    let line = format!("skipped: {}: {reason}\n", thread.name().unwrap_or("a test"));
    // Not by a macro: the harness hides what they print in a test that passes.
    let _unprinted = io::stderr().write_all(line.as_bytes());
}
