//! A process at the other end of a Unix socket.

use std::fs::File;
use std::io::Read as _;

/// A process, as long as its number is not used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Process {
    pub(crate) pid: u32,
    /// In ticks of the kernel since the start of the machine; zero if unknown.
    pub(crate) started: u64,
}

impl Process {
    /// Returns the process that has this number now.
    pub(crate) fn of(pid: u32) -> Self {
        Self { pid, started: started(pid).unwrap_or_default() }
    }

    /// Returns true if it has not ended.
    pub(crate) fn is_alive(&self) -> bool {
        started(self.pid).is_some_and(|started| self.started == 0 || started == self.started)
    }
}

/// Returns when a process started, unless it has ended.
fn started(pid: u32) -> Option<u64> {
    let mut bytes = [0; 1 << 10];
    let length = File::open(format!("/proc/{pid}/stat")).ok()?.read(&mut bytes).ok()?;
    // The name of the program, in parentheses, may have spaces, and end within a character.
    let stat = String::from_utf8_lossy(&bytes[..length]);
    let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace();
    let state = fields.next()?;
    (!matches!(state, "Z" | "X")).then(|| fields.nth(18)?.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::super::table::tests::folder;
    use super::*;

    /// The kernel cuts names of programs after 15 bytes.
    #[test]
    fn process_whose_name_ends_within_a_character_is_alive() {
        let program = folder("name").join("äääääääää");
        std::os::unix::fs::symlink("/bin/sleep", &program).expect("a link");
        let mut child = std::process::Command::new(program).arg("1000").spawn().expect("a process");
        let process = Process::of(child.id());
        assert!(process.started > 0 && process.is_alive(), "{process:?}");
        child.kill().and_then(|()| child.wait()).expect("its end");
        assert!(!process.is_alive());
    }
}
