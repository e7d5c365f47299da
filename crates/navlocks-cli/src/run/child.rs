//! The command's process, in a group of its own.

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::io::{Errno, fcntl_dupfd_cloexec};
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, WaitOptions, getpgid, kill_process, kill_process_group,
    test_kill_process_group, waitid,
};

use super::terminal::Terminal;
use crate::exit::{Exit, Failure};
use crate::service_dir::started;
use crate::system::Launch;

/// The smallest descriptor of the socket of presence in the command: scripts use smaller ones. The
/// second one is for a process that may not have so many open files.
const PRESENCE_FD_MIN: [i32; 2] = [200, 10];

/// The base of a status for a signal: the signal's number is added.
const SIGNALLED: i32 = 128;

/// The child, until its end is received.
#[derive(Debug)]
pub(crate) struct Child {
    /// The id of the process, and of its group.
    pid: Pid,
    /// Earlier children of this process, which do not belong to the command.
    others: Vec<Pid>,
}

/// A change of the child.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// No change.
    None,
    /// The child was stopped by this signal.
    Stopped(Signal),
    /// The child ended.
    Ended(Status),
}

/// The end of the child.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Status {
    /// The exit status, or 128 plus the number of a signal.
    pub(crate) code: u8,
    /// SIGINT or SIGQUIT, which keys of a terminal send, if one of them ended it.
    pub(crate) key: Option<Signal>,
}

impl Child {
    /// Starts the command, in the foreground of the terminal if there is one.
    pub(crate) fn spawn(
        command: &[OsString],
        environment: Vec<(&'static str, Option<String>)>,
        presence: Option<OwnedFd>,
        terminal: &mut Option<Terminal>,
    ) -> Result<Self, Failure> {
        let Some((program, arguments)) = command.split_first() else {
            return Err(Failure::new(Exit::NoCommand, "no command was given after --"));
        };
        // The child takes the terminal first; a child that cannot start loses it again.
        let terminal = terminal.as_mut().and_then(Terminal::lend_to_child);
        // Scripts use the smaller descriptors.
        let kept = presence.and_then(|fd| {
            PRESENCE_FD_MIN.iter().find_map(|min| fcntl_dupfd_cloexec(&fd, *min).ok()).or(Some(fd))
        });
        let others = children_so_far();
        let kept_fd = kept.as_ref().map(AsRawFd::as_raw_fd);
        let launch = Launch { program, arguments, environment, terminal, kept: kept_fd };
        let pid = launch.start().map_err(|error| not_started(program, &error))?;
        Ok(Self { pid, others })
    }

    /// Returns the id of its process group.
    pub(crate) fn group(&self) -> Pid {
        self.pid
    }

    /// Returns the change of the child since the last call.
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
        let by = status.terminating_signal();
        let key = [Signal::INT, Signal::QUIT].into_iter().find(|key| by == Some(key.as_raw()));
        let ended = status.exit_status().or_else(|| by.map(|by| SIGNALLED + by));
        let ended = ended.map(|code| Change::Ended(Status { code: code as u8, key }));
        Ok(ended.unwrap_or(Change::None))
    }

    /// Sends a signal to the child alone. A child that has ended is no error.
    pub(crate) fn signal(&self, signal: Signal) {
        let _gone = kill_process(self.pid, signal);
    }

    /// Sends a signal to the child, its group, and all its descendants in any group or session,
    /// once to each.
    pub(crate) fn signal_all(&self, signal: Signal) {
        self.signal_group(signal);
        let is_outside = |pid: &Pid| getpgid(Some(*pid)).is_ok_and(|group| group != self.pid);
        for descendant in self.descendants().into_iter().filter(is_outside) {
            let _gone = kill_process(descendant, signal);
        }
    }

    /// Returns all processes of the command. Orphans of the command are children of this process.
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

    /// Reaps orphans of the command.
    pub(crate) fn reap_orphans(&self) {
        let mut services = started();
        // The supervisor waits for the command itself, and a starter for its service.
        for orphan in children(rustix::process::getpid()).filter(|pid| *pid != self.pid) {
            if services.iter().any(|service| service.pid == orphan && service.starting) {
                continue;
            }
            if let Ok(Some(_)) = rustix::process::waitpid(Some(orphan), WaitOptions::NOHANG) {
                services.retain(|service| service.pid != orphan);
            }
        }
    }

    /// Sends a signal to the child and its group. Processes that have ended are no error.
    pub(crate) fn signal_group(&self, signal: Signal) {
        let _gone = kill_process_group(self.pid, signal);
    }

    /// Returns true if a descendant lives after the child's own end.
    pub(crate) fn has_orphans(&self) -> bool {
        self.reap_orphans();
        !self.descendants().is_empty()
    }

    /// Returns true if a process of its group or a descendant lives after the child's own end.
    pub(crate) fn others_live(&self) -> bool {
        self.has_orphans() || test_kill_process_group(self.pid) != Err(Errno::SRCH)
    }
}

/// Returns the children from before the start: a shell that executes this process leaves its own.
fn children_so_far() -> Vec<Pid> {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    // Most processes have none, and one call shows that.
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

/// Runs the command instead of this program. Returns why it does not.
pub(crate) fn execute(command: &[OsString]) -> Failure {
    let Some((program, arguments)) = command.split_first() else {
        return Failure::new(Exit::NoCommand, "no command was given after --");
    };
    not_started(program, &Command::new(program).args(arguments).exec())
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
