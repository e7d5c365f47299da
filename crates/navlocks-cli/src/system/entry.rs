//! The start of this process. That of the standard library reads the list of all areas of memory,
//! for its message about a full stack: a twentieth of the time of a short `navlocks run`.

use std::ffi::{CStr, OsStr, OsString, c_char, c_int};
use std::os::fd::IntoRawFd;
use std::os::unix::ffi::OsStrExt;
use std::panic::catch_unwind;

use rustix::fs::{Mode, OFlags, open};
use rustix::stdio::{stderr, stdin, stdout};

/// The exit code after a panic, as the standard library has it.
const PANICKED: u8 = 101;

/// Runs the command in this process, and ends the process.
///
/// # Safety
///
/// The C library has passed these arguments to `main`.
pub unsafe fn enter(count: c_int, words: *const *const c_char) -> ! {
    open_streams();
    // SAFETY: no other thread runs yet, and no handler is replaced but the default one.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_IGN) };
    let word = |index| {
        // SAFETY: there are `count` strings that end with a zero.
        let word = unsafe { CStr::from_ptr(*words.add(index)) };
        OsStr::from_bytes(word.to_bytes()).to_owned()
    };
    let arguments: Vec<OsString> = (0..count as usize).map(word).collect();
    let code = catch_unwind(|| crate::command::perform(arguments)).unwrap_or(PANICKED);
    // Writes out the standard output, too.
    std::process::exit(code.into())
}

/// Opens the standard streams that are closed: a socket must not get the number of one.
fn open_streams() {
    for stream in [stdin(), stdout(), stderr()] {
        if rustix::io::fcntl_getfd(stream).is_err() {
            match open(c"/dev/null", OFlags::RDWR, Mode::empty()) {
                Ok(file) => file.into_raw_fd(),
                Err(_) => std::process::abort(),
            };
        }
    }
}
