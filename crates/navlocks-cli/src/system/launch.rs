//! Starting the command without a copy of this process.
//!
//! `fork` copies the page tables of this process, and every page that it writes afterwards. A child
//! that shares the memory until it executes the command, as that of `posix_spawn` does, takes half
//! of the time. `posix_spawn` itself cannot end the command with this process.

use std::ffi::{CString, OsStr, OsString, c_char, c_int, c_void};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::ptr;

use rustix::io::{Errno, FdFlags, fcntl_setfd};
use rustix::process::{Pid, Signal, WaitOptions, waitpid};

/// For the calls of the child. The list of arguments is copied there for a script without `#!`.
const STACK_BYTES: usize = 64 << 10;

/// The largest number of a signal that this process may handle: none is a real-time signal.
const SIGNAL_MAX: c_int = 31;

/// A command that is about to start, in a process group of its own.
#[derive(Debug)]
pub(crate) struct Launch<'a> {
    pub(crate) program: &'a OsStr,
    pub(crate) arguments: &'a [OsString],
    /// Variables with other values than here; one without a value is removed.
    pub(crate) environment: Vec<(&'static str, Option<String>)>,
    /// The command takes the foreground of this terminal.
    pub(crate) terminal: Option<RawFd>,
    /// Stays open in the command and all its children.
    pub(crate) kept: Option<RawFd>,
}

/// All that the child reads and writes, made before it starts: it must not allocate.
struct Child {
    program: *const c_char,
    arguments: *const *const c_char,
    environment: *const *const c_char,
    terminal: Option<RawFd>,
    kept: Option<RawFd>,
    parent: Pid,
    mask: libc::sigset_t,
    /// Why the command was not executed.
    error: c_int,
}

impl Launch<'_> {
    /// Starts the command and returns its process. It is killed when the calling thread ends, even
    /// by SIGKILL.
    ///
    /// The kernel ties the death to the thread that starts it, so the main thread has to.
    pub(crate) fn start(self) -> io::Result<Pid> {
        let program = CString::new(self.program.as_bytes())?;
        let words = std::iter::once(self.program).chain(self.arguments.iter().map(|word| &**word));
        let words: Vec<CString> =
            words.map(|word| CString::new(word.as_bytes())).collect::<Result<_, _>>()?;
        let variables = self.variables()?;
        let (arguments, environment) = (pointers(&words), pointers(&variables));
        // Pages of the stack that the child does not use are never touched.
        let bytes = STACK_BYTES + size_of_val(&arguments[..]);
        let mut stack: Vec<MaybeUninit<u128>> = Vec::with_capacity(bytes / size_of::<u128>());
        let stack_top = stack.spare_capacity_mut().as_mut_ptr_range().end;

        let all = full_set();
        let mut child = Child {
            program: program.as_ptr(),
            arguments: arguments.as_ptr(),
            environment: environment.as_ptr(),
            terminal: self.terminal,
            kept: self.kept,
            parent: rustix::process::getpid(),
            mask: all,
            error: 0,
        };
        // SAFETY: all that `child` points to outlives the call: CLONE_VFORK returns here only when
        // the child has executed the command or ended. No signal handler of this process runs in
        // the child, because all signals are masked until their handlers are reset there. The stack
        // is this child's alone, and its end is aligned as a u128 is.
        let started = unsafe {
            libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut child.mask);
            let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
            let data = ptr::from_mut(&mut child).cast::<c_void>();
            let started = libc::clone(execute, stack_top.cast(), flags, data);
            let started = if started < 0 { Err(io::Error::last_os_error()) } else { Ok(started) };
            libc::pthread_sigmask(libc::SIG_SETMASK, &child.mask, ptr::null_mut());
            started
        }?;
        let no_number = || io::Error::other("the command has no process number");
        let pid = Pid::from_raw(started).ok_or_else(no_number)?;
        if child.error == 0 {
            return Ok(pid);
        }
        while let Err(Errno::INTR) = waitpid(Some(pid), WaitOptions::empty()) {}
        Err(io::Error::from_raw_os_error(child.error))
    }

    /// Returns the environment of this process with the changes for the command.
    fn variables(&self) -> io::Result<Vec<CString>> {
        let kept = std::env::vars_os()
            .filter(|(name, _)| self.environment.iter().all(|(changed, _)| name != changed));
        let changed = self.environment.iter().filter_map(|(name, value)| {
            value.as_ref().map(|value| (OsString::from(name), OsString::from(value)))
        });
        let all = kept.chain(changed).map(|(mut variable, value)| {
            variable.push("=");
            variable.push(value);
            CString::new(variable.as_bytes())
        });
        Ok(all.collect::<Result<_, _>>()?)
    }
}

/// Returns the form that `exec` takes.
fn pointers(texts: &[CString]) -> Vec<*const c_char> {
    texts.iter().map(|text| text.as_ptr()).chain([ptr::null()]).collect()
}

fn full_set() -> libc::sigset_t {
    let mut set = MaybeUninit::uninit();
    // SAFETY: the call writes all of the set.
    unsafe {
        libc::sigfillset(set.as_mut_ptr());
        set.assume_init()
    }
}

/// Runs in the child, on a stack of its own in the memory of the parent, which waits meanwhile.
extern "C" fn execute(data: *mut c_void) -> c_int {
    // SAFETY: the parent passes a `Child`, and does nothing until this process ends or executes.
    let child = unsafe { &mut *data.cast::<Child>() };
    let error = prepare(child).err().unwrap_or_else(|| {
        // SAFETY: the pointers are to strings that end with a zero, in lists that end with a null.
        unsafe { libc::execvpe(child.program, child.arguments, child.environment) };
        io::Error::last_os_error()
    });
    child.error = error.raw_os_error().unwrap_or(libc::EINVAL);
    // SAFETY: ends this process, and runs nothing of the parent's.
    unsafe { libc::_exit(1) }
}

/// Makes system calls only: it neither allocates nor takes a lock.
fn prepare(child: &Child) -> io::Result<()> {
    rustix::process::setpgid(None, None)?;
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
    // Had the parent died before that call, the kernel would not kill the command.
    if rustix::process::getppid() != Some(child.parent) {
        return Err(io::Error::from_raw_os_error(libc::ESRCH));
    }
    // SAFETY: the parent keeps both open until this returns, and this process has copies of them.
    let borrow = |fd: RawFd| unsafe { BorrowedFd::borrow_raw(fd) };
    if let Some(kept) = child.kept {
        fcntl_setfd(borrow(kept), FdFlags::empty())?;
    }
    if let Some(terminal) = child.terminal {
        super::give_terminal(borrow(terminal), rustix::process::getpid())?;
    }
    // SAFETY: the calls read and write local values, and change this process alone.
    unsafe {
        let default: libc::sigaction = MaybeUninit::zeroed().assume_init();
        for signal in 1..=SIGNAL_MAX {
            let mut action = default;
            libc::sigaction(signal, ptr::null(), &mut action);
            // An ignored signal stays ignored, except the one that Rust programs ignore.
            let caught = ![libc::SIG_DFL, libc::SIG_IGN].contains(&action.sa_sigaction);
            if caught || signal == libc::SIGPIPE {
                libc::sigaction(signal, &default, ptr::null_mut());
            }
        }
        libc::pthread_sigmask(libc::SIG_SETMASK, &child.mask, ptr::null_mut());
    }
    Ok(())
}
