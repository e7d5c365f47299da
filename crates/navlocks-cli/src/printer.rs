//! The only place of the command that writes to the terminal.

use std::error::Error;
use std::io::{self, ErrorKind, Write};
use std::process::ExitCode;

/// Writes `text` to standard output. A reader that stops reading early (`navlocks | head`) is no error.
pub(crate) fn print(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        outcome => outcome,
    }
}

/// Writes what went wrong to standard error. When that fails too there is nobody left to tell.
pub(crate) fn complain(error: &dyn Error) -> ExitCode {
    let _ = writeln!(io::stderr(), "navlocks: {error}");
    ExitCode::FAILURE
}
