//! The calls that the compiler cannot check: what a child does between fork and exec, and how this process takes signals.

#![allow(
    unsafe_code,
    reason = "std has no safe way to run something in the child before exec, nor to mask or reset a signal"
)]

use std::ffi::OsStr;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;
use std::ptr;

use rustix::net::SocketAddrUnix;
use rustix::process::{Pid, Signal};

/// Lets the command be killed when this thread ends, even by SIGKILL, and take the foreground of `terminal`, if one is given.
///
/// The kernel ties the death to the thread that spawns, so the main thread has to.
///
/// `kept` stays open in the command and all its children.
pub(crate) fn bind_child(command: &mut Command, terminal: Option<RawFd>, kept: Option<RawFd>) {
    let parent = rustix::process::getpid();
    let setup = move || {
        rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
        // Had the parent died before that call, nobody would tell.
        if rustix::process::getppid() != Some(parent) {
            return Err(io::ErrorKind::NotFound.into());
        }
        if let Some(kept) = kept {
            // SAFETY: the parent keeps it open while it spawns, and the child has a copy of all its descriptors.
            let kept = unsafe { BorrowedFd::borrow_raw(kept) };
            rustix::io::fcntl_setfd(kept, rustix::io::FdFlags::empty())?;
        }
        let Some(terminal) = terminal else { return Ok(()) };
        // SAFETY: the parent keeps it open while it spawns, and the child has a copy of all its descriptors.
        let terminal = unsafe { BorrowedFd::borrow_raw(terminal) };
        give_terminal(terminal, rustix::process::getpid())
    };
    // SAFETY: between fork and exec `setup` makes system calls only; it neither allocates nor takes a lock.
    unsafe { command.pre_exec(setup) };
}

/// The path of the first Unix socket that was opened for this process, by `LISTEN_FDS`.
pub(crate) fn inherited_socket() -> Option<PathBuf> {
    const FIRST: RawFd = 3;
    let count: RawFd = std::env::var("LISTEN_FDS").ok()?.parse().ok()?;
    (FIRST..FIRST.saturating_add(count)).find_map(|fd| {
        // SAFETY: nothing in this process has closed it yet; one that is not open gives an error.
        let socket = unsafe { BorrowedFd::borrow_raw(fd) };
        let address = SocketAddrUnix::try_from(rustix::net::getsockname(socket).ok()?).ok()?;
        let path = address.path()?;
        Some(PathBuf::from(OsStr::from_bytes(path.to_bytes())))
    })
}

/// Lets the command start in a session of its own, with none of the files that this process happens to have open.
pub(crate) fn detach_child(command: &mut Command) {
    let setup = || {
        rustix::process::setsid()?;
        close_others_on_exec();
        Ok(())
    };
    // SAFETY: between fork and exec `setup` makes system calls only; it neither allocates nor takes a lock.
    unsafe { command.pre_exec(setup) };
}

/// A service that keeps a file of whoever started it also keeps that file's lock, or the writing end of somebody's pipe.
fn close_others_on_exec() {
    const FIRST: libc::c_int = 3;
    const OLD_KERNEL_MAX: libc::c_int = 1024;
    // SAFETY: descriptors are marked, none is closed, so nothing that is in use here is lost.
    unsafe {
        let flags = libc::CLOSE_RANGE_CLOEXEC as libc::c_int;
        if libc::close_range(FIRST as libc::c_uint, libc::c_uint::MAX, flags) != 0 {
            for fd in FIRST..OLD_KERNEL_MAX {
                libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC);
            }
        }
    }
}

/// Makes `group` the foreground of the terminal, also when the caller is in the background itself.
pub(crate) fn give_terminal(terminal: BorrowedFd<'_>, group: Pid) -> io::Result<()> {
    let mut ttou = MaybeUninit::<libc::sigset_t>::uninit();
    let mut before = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: the sets are written by the calls before they are read.
    unsafe {
        libc::sigemptyset(ttou.as_mut_ptr());
        libc::sigaddset(ttou.as_mut_ptr(), libc::SIGTTOU);
        libc::pthread_sigmask(libc::SIG_BLOCK, ttou.as_ptr(), before.as_mut_ptr());
    }
    let outcome = rustix::termios::tcsetpgrp(terminal, group);
    // SAFETY: `before` was written above.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, before.as_ptr(), ptr::null_mut()) };
    Ok(outcome?)
}

/// Stops this process and its group as Ctrl-Z at the terminal would, and returns when it is continued: at once where the
/// kernel ignores Ctrl-Z, because nobody is there to continue us.
pub(crate) fn stop_group() {
    let mut before = MaybeUninit::<libc::sigaction>::uninit();
    // SAFETY: a zeroed action is the default one; `before` is written by the first call and put back by the second.
    unsafe {
        let default: libc::sigaction = MaybeUninit::zeroed().assume_init();
        if libc::sigaction(libc::SIGTSTP, &default, before.as_mut_ptr()) == 0 {
            libc::kill(0, libc::SIGTSTP);
            libc::sigaction(libc::SIGTSTP, before.as_ptr(), ptr::null_mut());
        }
    }
}
