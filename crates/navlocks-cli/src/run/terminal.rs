//! The controlling terminal and its foreground group.
//!
//! The command is in a process group of its own, so that it can be terminated with all its
//! children. It is the foreground group of the terminal until it stops or ends.

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
    /// The group of this process.
    group: Pid,
    /// True if the command has the terminal from the start. False in a pipeline, where another
    /// process may read it.
    eager: bool,
    lent: bool,
}

impl Terminal {
    /// Returns the terminal, if this process has one: cron and most build machines have none.
    pub(crate) fn controlling() -> Option<Self> {
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).custom_flags(libc::O_NOCTTY).open("/dev/tty");
        let eager = stdin().is_terminal() && stdout().is_terminal();
        Some(Self { file: file.ok()?, group: rustix::process::getpgrp(), eager, lent: false })
    }

    /// Returns true if this process is in the foreground.
    fn is_ours(&self) -> bool {
        rustix::termios::tcgetpgrp(&self.file) == Ok(self.group)
    }

    /// Returns true if the command gets the terminal before it reads.
    fn is_wanted(&self) -> bool {
        self.eager && !self.lent && self.is_ours()
    }

    /// Returns the terminal for a child that takes it at its start, if it should.
    pub(crate) fn lend_to_child(&mut self) -> Option<RawFd> {
        self.lent = self.is_wanted();
        self.lent.then(|| self.file.as_raw_fd())
    }

    pub(crate) fn is_lent(&self) -> bool {
        self.lent
    }

    /// Makes `group` the foreground, if this process is in it.
    pub(crate) fn lend(&mut self, group: Pid) -> bool {
        if !self.lent && self.is_ours() {
            self.lent = system::give_terminal(self.file.as_fd(), group).is_ok();
        }
        self.lent
    }

    /// Makes `group` the foreground if the command gets the terminal before it reads.
    pub(crate) fn lend_if_wanted(&mut self, group: Pid) {
        if self.is_wanted() {
            self.lend(group);
        }
    }

    /// Makes the group of this process the foreground again, for its shell. Returns true if the
    /// command had the terminal.
    pub(crate) fn take_back(&mut self) -> bool {
        let lent = std::mem::take(&mut self.lent);
        if lent {
            let _hung_up = system::give_terminal(self.file.as_fd(), self.group);
        }
        lent
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.take_back();
    }
}
