//! A process at the other end of a Unix socket.

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
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name of the program, in parentheses, may have spaces.
    let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace();
    let state = fields.next()?;
    (!matches!(state, "Z" | "X")).then(|| fields.nth(18)?.parse().ok())?
}
