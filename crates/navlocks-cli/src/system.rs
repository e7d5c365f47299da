//! System calls that need unsafe code: the start of this process, a child between fork and exec,
//! signals, inherited sockets.

#![allow(
    unsafe_code,
    reason = "std has no safe way to run something in the child before exec, nor to mask or reset a signal"
)]

mod entry;
mod launch;

pub use entry::enter;
pub(crate) use launch::Launch;

use std::ffi::{CStr, CString, OsStr};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;
use std::ptr;

use rustix::fs::{Mode, OFlags, open};
use rustix::net::SocketAddrUnix;
use rustix::process::{Pid, Resource, Rlimit, Signal, getrlimit, setrlimit};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Returns the path of the first inherited Unix socket, by `LISTEN_FDS`.
pub(crate) fn inherited_socket() -> Option<PathBuf> {
    const FIRST: RawFd = 3;
    let count: RawFd = std::env::var("LISTEN_FDS").ok()?.parse().ok()?;
    (FIRST..FIRST.saturating_add(count)).find_map(|fd| {
        // SAFETY: this process has not closed the descriptor; a closed one gives an error.
        let socket = unsafe { BorrowedFd::borrow_raw(fd) };
        let address = SocketAddrUnix::try_from(rustix::net::getsockname(socket).ok()?).ok()?;
        let path = address.path()?;
        Some(PathBuf::from(OsStr::from_bytes(path.to_bytes())))
    })
}

/// Returns the number of a group by its name.
pub(crate) fn group(name: &str) -> Option<u32> {
    let name = CString::new(name).ok()?;
    let mut found = MaybeUninit::<libc::group>::uninit();
    let mut texts = vec![0; 64 << 10];
    let mut result = ptr::null_mut();
    // SAFETY: all pointers are valid for the call, and `texts` has the length that it gets.
    let error = unsafe {
        libc::getgrnam_r(
            name.as_ptr(),
            found.as_mut_ptr(),
            texts.as_mut_ptr(),
            texts.len(),
            &raw mut result,
        )
    };
    // SAFETY: without an error and with a result, the call has written the group.
    (error == 0 && !result.is_null()).then(|| unsafe { found.assume_init_ref().gr_gid })
}

/// Starts the command in a session of its own, without the open files, limits and priority of this
/// process, as far as the system allows.
pub(crate) fn detach_child(command: &mut Command) {
    let setup = || {
        rustix::process::setsid()?;
        close_others_on_exec();
        raise_limits();
        reset_priority();
        Ok(())
    };
    // SAFETY: `setup` makes system calls only; it neither allocates nor takes a mutex.
    unsafe { command.pre_exec(setup) };
}

/// Removes the limits of this process, or raises them to the hard limits without a privilege.
fn raise_limits() {
    // Other limits stay: that on processes is the user's, and core files and stacks do not end a
    // service.
    const RESOURCES: [Resource; 5] =
        [Resource::As, Resource::Cpu, Resource::Data, Resource::Fsize, Resource::Nofile];
    for resource in RESOURCES {
        let maximum = getrlimit(resource).maximum;
        if setrlimit(resource, Rlimit { current: None, maximum: None }).is_err() {
            let _as_it_was = setrlimit(resource, Rlimit { current: maximum, maximum });
        }
    }
}

/// Resets the effects of `nice`, `chrt`, `ionice` and of a preference of the out-of-memory killer.
/// The kernel refuses a better nice level or scheduler to a process without a privilege.
fn reset_priority() {
    const SCORE: &CStr = c"/proc/self/oom_score_adj";
    let _as_it_was = rustix::process::setpriority_process(None, 0);
    // SAFETY: `normal` is read during the call and has the fields of this system.
    unsafe {
        let normal: libc::sched_param = MaybeUninit::zeroed().assume_init();
        libc::sched_setscheduler(0, libc::SCHED_OTHER, &normal);
        // The class none makes this process follow its nice level again.
        const IOPRIO_WHO_PROCESS: libc::c_int = 1;
        libc::syscall(libc::SYS_ioprio_set, IOPRIO_WHO_PROCESS, 0, 0);
    }
    // A lower score stays: a service manager may protect the service on purpose.
    let Ok(file) = open(SCORE, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty()) else { return };
    let mut digits = [0; 8];
    let length = rustix::io::read(&file, &mut digits).unwrap_or(0);
    if length > 0 && !matches!(digits[0], b'-' | b'0') {
        let _as_it_was = rustix::io::write(&file, b"0");
    }
}

/// Marks open files to be closed on exec: a service must not hold its starter's file locks or
/// pipes.
fn close_others_on_exec() {
    const FIRST: libc::c_int = 3;
    const OLD_KERNEL_MAX: libc::c_int = 1024;
    // SAFETY: descriptors are marked and not closed, so this process can still use them.
    unsafe {
        let flags = libc::CLOSE_RANGE_CLOEXEC as libc::c_int;
        // By its number, because musl has no function for it.
        if libc::syscall(libc::SYS_close_range, FIRST, libc::c_uint::MAX, flags) != 0 {
            for fd in FIRST..OLD_KERNEL_MAX {
                libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC);
            }
        }
    }
}

/// Makes `group` the foreground of the terminal, also from the background.
pub(crate) fn give_terminal(terminal: BorrowedFd<'_>, group: Pid) -> io::Result<()> {
    let mut ttou = MaybeUninit::<libc::sigset_t>::uninit();
    let mut before = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: the calls write the sets before they are read.
    unsafe {
        libc::sigemptyset(ttou.as_mut_ptr());
        libc::sigaddset(ttou.as_mut_ptr(), libc::SIGTTOU);
        libc::pthread_sigmask(libc::SIG_BLOCK, ttou.as_ptr(), before.as_mut_ptr());
    }
    let outcome = rustix::termios::tcsetpgrp(terminal, group);
    // SAFETY: the call above has written `before`.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, before.as_ptr(), ptr::null_mut()) };
    Ok(outcome?)
}

/// Watches a descriptor until it can be read.
pub(crate) fn watch(fd: BorrowedFd<'_>) -> io::Result<AsyncFd<BorrowedFd<'_>>> {
    // SAFETY: the descriptor is open for as long as it is borrowed.
    Ok(unsafe { AsyncFd::register_with_interest(fd, Interest::READABLE) }?)
}

/// Returns true if this process ignores the signal, as one that `nohup` started does.
pub(crate) fn is_ignored(signal: Signal) -> bool {
    let mut action = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: a zeroed action is the default one, and the call writes the present one.
    unsafe {
        libc::sigaction(signal.as_raw(), ptr::null(), action.as_mut_ptr());
        action.assume_init().sa_sigaction == libc::SIG_IGN
    }
}

/// Ends this process by a signal that it has caught.
pub(crate) fn die_of(signal: Signal) -> ! {
    reset(signal);
    let _ends_here = rustix::process::kill_process(rustix::process::getpid(), signal);
    std::process::exit(128 + signal.as_raw())
}

/// Sends the signal of a key to the group of this process, as the terminal would have done had the
/// command not been the foreground. A script around this process ends so, too.
pub(crate) fn die_of_key(signal: Signal) -> ! {
    reset(signal);
    let _ends_here = rustix::process::kill_current_process_group(signal);
    die_of(signal)
}

/// Resets a signal to its default action, without a core file of this process.
pub(crate) fn reset(signal: Signal) {
    let maximum = getrlimit(Resource::Core).maximum;
    let _as_it_was = setrlimit(Resource::Core, Rlimit { current: Some(0), maximum });
    // SAFETY: a zeroed action is the default one, and the call reads it.
    unsafe {
        let default: libc::sigaction = MaybeUninit::zeroed().assume_init();
        libc::sigaction(signal.as_raw(), &default, ptr::null_mut());
    }
}

/// Stops this process and its group like Ctrl-Z, and returns when it is continued. Returns at once
/// in an orphaned group, where the kernel ignores Ctrl-Z.
pub(crate) fn stop_group() {
    let mut before = MaybeUninit::<libc::sigaction>::uninit();
    // SAFETY: a zeroed action is the default one; the first call writes `before`.
    unsafe {
        let default: libc::sigaction = MaybeUninit::zeroed().assume_init();
        if libc::sigaction(libc::SIGTSTP, &default, before.as_mut_ptr()) == 0 {
            libc::kill(0, libc::SIGTSTP);
            libc::sigaction(libc::SIGTSTP, before.as_ptr(), ptr::null_mut());
        }
    }
}
