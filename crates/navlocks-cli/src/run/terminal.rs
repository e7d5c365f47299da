//! The terminal that people sit at: whose keys are whose.
//!
//! The command is in a process group of its own, so that it can be ended with all its children. A terminal listens to one
//! group, its foreground; it is lent to the command and taken back when the command stops or ends.

use std::fs::{File, OpenOptions};
use std::io::{IsTerminal, stdin, stdout};
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::os::unix::fs::OpenOptionsExt;

use rustix::process::Pid;

use crate::system;

/// The controlling terminal of this process.
#[derive(Debug)]
pub(crate) struct Terminal {
    file: File,
    /// Our own group.
    group: Pid,
    /// Whether the command has it from the start. Not in a pipeline, where somebody else may read the keys.
    eager: bool,
    lent: bool,
}

impl Terminal {
    /// The terminal, if this process has one: not in cron, nor in most build machines.
    pub(crate) fn controlling() -> Option<Self> {
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).custom_flags(libc::O_NOCTTY).open("/dev/tty");
        let eager = stdin().is_terminal() && stdout().is_terminal();
        Some(Self { file: file.ok()?, group: rustix::process::getpgrp(), eager, lent: false })
    }

    /// Whether its keys come to us.
    fn is_ours(&self) -> bool {
        rustix::termios::tcgetpgrp(&self.file) == Ok(self.group)
    }

    /// Whether it should be lent to the command without being asked for.
    fn is_wanted(&self) -> bool {
        self.eager && !self.lent && self.is_ours()
    }

    /// The terminal for a child that is about to start and takes it itself, if that is right without being asked.
    pub(crate) fn lend_to_child(&mut self) -> Option<RawFd> {
        self.lent = self.is_wanted();
        self.lent.then(|| self.file.as_raw_fd())
    }

    pub(crate) fn is_lent(&self) -> bool {
        self.lent
    }

    /// Gives it to `group`, if it is ours to give.
    pub(crate) fn lend(&mut self, group: Pid) -> bool {
        if !self.lent && self.is_ours() {
            self.lent = system::give_terminal(self.file.as_fd(), group).is_ok();
        }
        self.lent
    }

    /// Gives it to `group` if that is right without being asked.
    pub(crate) fn lend_if_wanted(&mut self, group: Pid) {
        if self.is_wanted() {
            self.lend(group);
        }
    }

    /// Takes it back, so that whoever started us finds it as it was.
    pub(crate) fn take_back(&mut self) {
        if self.lent {
            self.lent = false;
            let _hung_up = system::give_terminal(self.file.as_fd(), self.group);
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.take_back();
    }
}
