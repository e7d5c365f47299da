//! A process at the other end of a Unix socket.

use std::fmt;
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
        Self { pid, started: Stat::of(pid).map_or(0, |stat| stat.started) }
    }

    /// Returns true if it has not ended.
    pub(crate) fn is_alive(&self) -> bool {
        self.stat().is_some()
    }

    /// Returns true if it is stopped, as by Ctrl-Z or a debugger. A `navlocks run` is so, too, if a
    /// signal has stopped its command alone.
    pub(crate) fn is_stopped(&self) -> bool {
        self.stat().is_some_and(|stat| stat.stopped || stat.runs && command_is_stopped(self.pid))
    }

    fn stat(&self) -> Option<Stat> {
        Stat::of(self.pid).filter(|stat| self.started == 0 || stat.started == self.started)
    }
}

/// The name of its program, if it still runs, and its number.
impl fmt::Display for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match program(self.pid).filter(|_| self.is_alive()) {
            Some(program) => write!(f, "{} (pid {})", program.escape_default(), self.pid),
            None => write!(f, "process {}", self.pid),
        }
    }
}

/// The state of a process that has not ended.
struct Stat {
    started: u64,
    stopped: bool,
    /// It leads a process group in a session of another process, as a command of a shell does.
    leads: bool,
    /// It is the program `navlocks`.
    runs: bool,
}

impl Stat {
    /// Reads the state of a process.
    fn of(pid: u32) -> Option<Self> {
        let mut bytes = [0; 1 << 10];
        let length = File::open(format!("/proc/{pid}/stat")).ok()?.read(&mut bytes).ok()?;
        // The name of the program, in parentheses, may have spaces, and end within a character.
        let stat = String::from_utf8_lossy(&bytes[..length]);
        let (before, after) = stat.rsplit_once(')')?;
        let fields: Vec<&str> = after.split_ascii_whitespace().collect();
        let [state, _, group, session, ..] = fields[..] else { return None };
        let is_own = |field: &str| field.parse() == Ok(pid);
        (!matches!(state, "Z" | "X")).then_some(())?;
        Some(Self {
            started: fields.get(19)?.parse().ok()?,
            stopped: matches!(state, "T" | "t"),
            leads: is_own(group) && !is_own(session),
            runs: before.ends_with("(navlocks"),
        })
    }
}

/// Returns the name of the program that a process runs.
pub(crate) fn program(pid: u32) -> Option<String> {
    let name = std::fs::read(format!("/proc/{pid}/comm")).ok()?;
    Some(String::from_utf8_lossy(&name).trim_end().to_owned())
}

/// Returns true if a `navlocks run` has a stopped command. Its service, a session of its own, and
/// orphans of the command do not count.
fn command_is_stopped(pid: u32) -> bool {
    const CHILDREN_MAX: usize = 8;
    let list = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
    let list = list.unwrap_or_default();
    let children =
        list.split_ascii_whitespace().take(CHILDREN_MAX).filter_map(|it| it.parse().ok());
    children.filter_map(Stat::of).any(|child| child.leads && child.stopped)
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
