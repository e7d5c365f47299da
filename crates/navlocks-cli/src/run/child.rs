//! The command's process, in a group of its own.

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use rustix::io::{Errno, fcntl_dupfd_cloexec};
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, WaitOptions, kill_process, kill_process_group,
    test_kill_process_group, waitid,
};

use super::terminal::Terminal;
use crate::exit::{Exit, Failure};
use crate::place::started;
use crate::system::Launch;

/// The smallest number for the socket of the session in the command: scripts use smaller ones.
const PRESENCE_FD_MIN: i32 = 200;

/// A status that means a signal is this plus the signal's number.
const SIGNALLED: i32 = 128;

/// The child, from its start until its end was seen.
#[derive(Debug)]
pub(crate) struct Child {
    /// Its number, and that of its group.
    pid: Pid,
    /// Children that this process had before, which are no processes of the command.
    others: Vec<Pid>,
}

/// What became of the child.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// Nothing new.
    None,
    /// It was stopped by this signal.
    Stopped(Signal),
    /// It ended, with this status or 128 plus the number of the signal that ended it.
    Ended(u8),
}

impl Child {
    /// Starts the command. It has the terminal from its first moment, if it is one that people sit at.
    pub(crate) fn spawn(
        command: &[OsString],
        environment: Vec<(&'static str, Option<String>)>,
        presence: Option<OwnedFd>,
        terminal: &mut Option<Terminal>,
    ) -> Result<Self, Failure> {
        let Some((program, arguments)) = command.split_first() else {
            return Err(Failure::new(Exit::NoCommand, "no command was given after --"));
        };
        // The child takes it, before it does anything else. If it cannot start after that, it is taken back from it.
        let terminal = terminal.as_mut().and_then(Terminal::lend_to_child);
        // Not one of those that scripts use.
        let kept = presence.and_then(|fd| fcntl_dupfd_cloexec(fd, PRESENCE_FD_MIN).ok());
        let others = children_so_far();
        let kept_fd = kept.as_ref().map(AsRawFd::as_raw_fd);
        let launch = Launch { program, arguments, environment, terminal, kept: kept_fd };
        let pid = launch.start().map_err(|error| not_started(program, &error))?;
        Ok(Self { pid, others })
    }

    /// The number of its group.
    pub(crate) fn group(&self) -> Pid {
        self.pid
    }

    /// What became of it since this was last asked.
    pub(crate) fn change(&self) -> io::Result<Change> {
        let options = WaitOptions::NOHANG | WaitOptions::UNTRACED;
        let status = loop {
            match rustix::process::waitpid(Some(self.pid), options) {
                Ok(None) => return Ok(Change::None),
                Ok(Some((_, status))) => break status,
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        };
        if let Some(by) = status.stopping_signal().and_then(Signal::from_named_raw) {
            return Ok(Change::Stopped(by));
        }
        let ended =
            status.exit_status().or_else(|| status.terminating_signal().map(|by| SIGNALLED + by));
        Ok(ended.map_or(Change::None, |code| Change::Ended(code as u8)))
    }

    /// Sends a signal to it alone. That it is gone already is fine.
    pub(crate) fn signal(&self, signal: Signal) {
        let _gone = kill_process(self.pid, signal);
    }

    /// Sends a signal to all that descend from it, in whatever group or session they are.
    pub(crate) fn signal_descendants(&self, signal: Signal) {
        for descendant in self.descendants() {
            let _gone = kill_process(descendant, signal);
        }
    }

    /// All processes of the command. Those whose parents have ended are children of this process.
    fn descendants(&self) -> Vec<Pid> {
        let services = started();
        let is_service = |pid: &Pid| services.iter().any(|service| service.pid == *pid);
        let mut found: Vec<Pid> = Vec::new();
        let mut parents = vec![rustix::process::getpid()];
        while let Some(parent) = parents.pop() {
            for child in children(parent) {
                if !found.contains(&child) && !self.others.contains(&child) && !is_service(&child) {
                    found.push(child);
                    parents.push(child);
                }
            }
        }
        found
    }

    /// Takes note of the end of processes whose parents have ended.
    pub(crate) fn reap_orphans(&self) {
        let mut services = started();
        // The command's own end is for its supervisor, that of a service which starts for its
        // starter.
        for orphan in children(rustix::process::getpid()).filter(|pid| *pid != self.pid) {
            if services.iter().any(|service| service.pid == orphan && service.starting) {
                continue;
            }
            if let Ok(Some(_)) = rustix::process::waitpid(Some(orphan), WaitOptions::NOHANG) {
                services.retain(|service| service.pid != orphan);
            }
        }
    }

    /// Sends a signal to it and to all of its group. That they are gone already is fine.
    pub(crate) fn signal_group(&self, signal: Signal) {
        let _gone = kill_process_group(self.pid, signal);
    }

    /// Whether any process of its group or of its descendants lives, once its own end was seen.
    pub(crate) fn others_live(&self) -> bool {
        self.reap_orphans();
        test_kill_process_group(self.pid) != Err(Errno::SRCH) || !self.descendants().is_empty()
    }
}

/// Returns the children that this process was born with: a shell that executes it leaves it its own.
fn children_so_far() -> Vec<Pid> {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    // Most have none, and one call says so.
    match waitid(WaitId::All, options) {
        Err(Errno::CHILD) => Vec::new(),
        _ => children(rustix::process::getpid()).collect(),
    }
}

/// Returns the children of a process, zombies included.
fn children(parent: Pid) -> impl Iterator<Item = Pid> {
    let tasks = std::fs::read_dir(format!("/proc/{parent}/task")).into_iter().flatten().flatten();
    let lists = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok());
    lists.flat_map(|list| {
        let pids = list.split_whitespace().filter_map(|pid| Pid::from_raw(pid.parse().ok()?));
        pids.collect::<Vec<_>>()
    })
}

fn not_started(program: &OsString, error: &io::Error) -> Failure {
    let program = program.display();
    match error.kind() {
        io::ErrorKind::NotFound => {
            Failure::new(Exit::NotFound, format!("there is no command '{program}'"))
        }
        io::ErrorKind::OutOfMemory | io::ErrorKind::WouldBlock => {
            Failure::new(Exit::System, format!("cannot start another process: {error}"))
        }
        _ => Failure::new(Exit::CannotExecute, format!("cannot execute '{program}': {error}")),
    }
}
