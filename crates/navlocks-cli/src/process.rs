//! Other processes, by descriptors of the kernel: a number that is used again means no other one.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, getppid, getuid, pidfd_open, pidfd_send_signal};

use crate::exit::{Exit, Failure};

/// A process of this user.
#[derive(Debug)]
pub(crate) struct Process {
    pid: Pid,
    fd: OwnedFd,
}

impl Process {
    /// Returns the process with this number.
    ///
    /// # Errors
    ///
    /// There is none, or it belongs to another user.
    pub(crate) fn open(pid: i32) -> Result<Self, Failure> {
        let none = || Failure::new(Exit::Usage, format!("there is no process {pid}"));
        let number = number(pid).ok_or_else(none)?;
        let fd = pidfd_open(number, PidfdFlags::empty()).map_err(|error| match error {
            Errno::SRCH => none(),
            // A thread of a process has a number, too.
            Errno::INVAL | Errno::NOENT => {
                Failure::new(Exit::Usage, format!("{pid} is a thread, not a process"))
            }
            error => Failure::new(Exit::System, format!("cannot watch process {pid}: {error}")),
        })?;
        let process = Self { pid: number, fd };
        // Read after the descriptor is there, so it is of this process.
        let user = user_of(pid);
        if process.has_ended() {
            return Err(Failure::new(Exit::Usage, format!("process {pid} has ended")));
        }
        let own = getuid().as_raw();
        match user {
            Some(user) if user == own => Ok(process),
            Some(user) => Err(Failure::new(
                Exit::Refused,
                format!(
                    "process {pid} belongs to user {user}, not to user {own}: run this as that user"
                ),
            )),
            None => Err(none()),
        }
    }

    /// Returns the shell that started this process.
    ///
    /// In `$(…)` the shell may have a process of its own for that, which ends with it: its standard
    /// output is the pipe that this process writes to.
    pub(crate) fn asking() -> Result<Self, Failure> {
        let (own, shells) = (pipe_of("self"), shells());
        let is_outside = |pid: &&i32| own.is_none() || pipe_of(pid) != own;
        let none = || Failure::new(Exit::Usage, "the shell is not known: name it with --pid");
        Self::open(*shells.iter().find(is_outside).or_else(|| shells.last()).ok_or_else(none)?)
    }

    /// Returns the process whose descriptor is the standard input.
    pub(crate) fn inherited(pid: i32) -> Result<Self, Failure> {
        let told = fs::read_to_string("/proc/self/fdinfo/0").unwrap_or_default();
        let is_it = told.lines().any(|line| {
            line.strip_prefix("Pid:").is_some_and(|number| number.trim().parse() == Ok(pid))
        });
        let wrong = || Failure::new(Exit::Usage, "--held-for is for navlocks itself: use --pid");
        let number = number(pid).filter(|_| is_it).ok_or_else(wrong)?;
        let fd = rustix::stdio::stdin().try_clone_to_owned();
        let fd = fd.map_err(|error| Failure::new(Exit::System, error.to_string()))?;
        Ok(Self { pid: number, fd })
    }

    pub(crate) fn pid(&self) -> i32 {
        self.pid.as_raw_pid()
    }

    /// Returns the descriptor.
    pub(crate) fn into_fd(self) -> OwnedFd {
        self.fd
    }

    /// Sends a signal. A process that has ended is no error.
    pub(crate) fn signal(&self, signal: Signal) {
        let _gone = pidfd_send_signal(&self.fd, signal);
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.ends_within(Duration::ZERO)
    }

    /// Returns true if the process ends within this time.
    pub(crate) fn ends_within(&self, limit: Duration) -> bool {
        let limit = Timespec::try_from(limit).ok();
        poll(&mut [PollFd::new(&self.fd, PollFlags::IN)], limit.as_ref())
            .is_ok_and(|ready| ready > 0)
    }

    /// Waits for the end of the process.
    pub(crate) async fn ended(&self) -> io::Result<()> {
        crate::system::watch(self.fd.as_fd())?.readable().await.map(|_| ())
    }

    /// Writes a line to the standard error of the process, if it can be opened.
    pub(crate) fn tell(&self, text: &str) {
        let mut options = OpenOptions::new();
        options.append(true).custom_flags(libc::O_NOCTTY | libc::O_NONBLOCK);
        if let Ok(mut file) = options.open(format!("/proc/{}/fd/2", self.pid())) {
            let _nobody_reads = writeln!(file, "navlocks: {text}");
        }
    }
}

impl AsFd for Process {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Returns the name of the program of a process, and its number.
pub(crate) fn describe(pid: i32) -> String {
    let program = fs::read(format!("/proc/{pid}/comm")).unwrap_or_default();
    format!("{}[{pid}]", String::from_utf8_lossy(&program).trim_end())
}

/// Returns the number of a process; that of a group is negative.
fn number(pid: i32) -> Option<Pid> {
    if pid < 0 { None } else { Pid::from_raw(pid) }
}

/// Returns the pipe that is the standard output of a process, if it is one.
fn pipe_of(process: impl std::fmt::Display) -> Option<(u64, u64)> {
    let file = fs::metadata(format!("/proc/{process}/fd/1")).ok()?;
    file.file_type().is_fifo().then(|| (file.dev(), file.ino()))
}

/// Returns the parent of this process, and as long as that is a subshell, the shell that made it.
pub(crate) fn shells() -> Vec<i32> {
    let mut found: Vec<i32> = getppid().map(Pid::as_raw_pid).into_iter().collect();
    while let Some(parent) = found.last().and_then(|shell| parent_of_subshell(*shell)) {
        found.push(parent);
    }
    found
}

/// Returns the parent of a process that has executed no program since it was forked.
fn parent_of_subshell(pid: i32) -> Option<i32> {
    const FORKED_WITHOUT_EXEC: u32 = 0x40;
    let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
    let stat = String::from_utf8_lossy(&stat);
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(1);
    let parent = fields.next()?.parse().ok().filter(|parent| *parent > 0)?;
    let flags: u32 = fields.nth(4)?.parse().ok()?;
    (flags & FORKED_WITHOUT_EXEC != 0).then_some(parent)
}

/// Returns the user who started a process.
fn user_of(pid: i32) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|it| it.strip_prefix("Uid:"))?;
    line.split_whitespace().next()?.parse().ok()
}
