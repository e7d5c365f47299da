//! Starts the service of a user once, also if many processes need it at the same time.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, Mode, statvfs};
use rustix::process::Pid;

use super::{ServiceDir, unusable};
use crate::exit::{Exit, Failure};
use crate::system;

/// The idle time after which a service ends that a command started, and the variable that changes
/// it.
const IDLE_EXIT: &str = "60s";
const IDLE_EXIT_VARIABLE: &str = "NAVLOCKS_IDLE_EXIT";

/// The length from which a log is renamed when a service starts.
const LOG_BYTES_MAX: u64 = 1 << 20;

/// How long a service that a supervisor may start again is waited for, and the pause between two
/// looks.
const SUPERVISOR_MAX: Duration = Duration::from_secs(5);
const SUPERVISOR_PAUSE: Duration = Duration::from_millis(20);

/// The bytes at the end of the log that are searched for an error.
const LOG_TAIL_BYTES: u64 = 4096;

/// The length of each table in a state folder when a service has started.
const TABLE_BYTES: u64 = 1 << 18;

/// The variables that a service inherits. It outlives its starter, and must not keep secrets.
const ENVIRONMENT: [&str; 5] = ["PATH", "LANG", "TZ", "RUST_BACKTRACE", "NAVLOCKS_LOG"];

/// The right to start a service, until it is dropped. Other processes wait for it, and then find
/// the service.
#[derive(Debug)]
pub struct Starter<'a> {
    place: &'a ServiceDir,
    _lock: File,
    _umask: Option<Umask>,
}

/// A service that this process has started and that may still run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Started {
    pub(crate) pid: Pid,
    /// True until the service listens or ends, which its starter waits for.
    pub(crate) starting: bool,
}

static STARTED: Mutex<Vec<Started>> = Mutex::new(Vec::new());

/// Returns the services that are children of this process, and not of its command. No service is
/// started while the guard lives.
pub(crate) fn started() -> MutexGuard<'static, Vec<Started>> {
    STARTED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A private umask, until it is dropped.
#[derive(Debug)]
struct Umask(Mode);

impl Umask {
    fn private() -> Self {
        Self(rustix::process::umask(Mode::RWXG | Mode::RWXO))
    }
}

impl Drop for Umask {
    fn drop(&mut self) {
        rustix::process::umask(self.0);
    }
}

impl ServiceDir {
    /// Waits for the right to start a service here. Its holder checks again that none runs.
    ///
    /// # Errors
    ///
    /// The folder cannot be made or written, or is not private.
    pub fn starter(&self) -> Result<Starter<'_>, Failure> {
        self.lock_start(Some(Umask::private()))
    }

    /// Starts a service that has ended, unless another process does. The umask stays, because other
    /// threads run.
    ///
    /// # Errors
    ///
    /// As of [`starter`](Self::starter) and [`start`](Starter::start).
    pub fn start_again(&self) -> Result<(), Failure> {
        let starter = self.lock_start(None)?;
        if self.is_listened_to() { Ok(()) } else { starter.start(SUPERVISOR_MAX) }
    }

    /// Notes that `navlocks serve` was started here, by a person or a supervisor, until a command
    /// starts a service.
    pub fn note_serve(&self) {
        let _start_is_not_delayed = private().write(true).open(self.serve_note());
    }

    fn serve_note(&self) -> PathBuf {
        self.folder().join("serve")
    }

    fn is_listened_to(&self) -> bool {
        UnixStream::connect(self.socket()).is_ok()
    }

    fn lock_start(&self, umask: Option<Umask>) -> Result<Starter<'_>, Failure> {
        self.prepare()?;
        let path = self.start_lock();
        let failed = |error: io::Error| unusable(self.folder(), &error);
        let lock = private().write(true).open(&path).map_err(failed)?;
        while let Err(error) = rustix::fs::flock(&lock, FlockOperation::LockExclusive) {
            if error != rustix::io::Errno::INTR {
                return Err(failed(error.into()));
            }
        }
        Ok(Starter { place: self, _lock: lock, _umask: umask })
    }

    /// Returns the last line of the log, if there is one.
    pub fn last_words(&self) -> Option<String> {
        self.last_words_after(0)
    }

    /// Returns the last line of the log, if there is one after so many bytes.
    fn last_words_after(&self, bytes: u64) -> Option<String> {
        let mut log = File::open(self.log()).ok()?;
        let length = log.metadata().ok()?.len();
        log.seek(SeekFrom::Start(length.saturating_sub(LOG_TAIL_BYTES).max(bytes))).ok()?;
        let mut tail = Vec::new();
        log.read_to_end(&mut tail).ok()?;
        let tail = String::from_utf8_lossy(&tail);
        tail.lines().rev().find(|line| !line.trim().is_empty()).map(str::to_owned)
    }
}

impl Starter<'_> {
    /// Starts the service, and returns when it listens: it prints a line then. A `navlocks serve`
    /// that has ended may be started again by its supervisor, with its own options: it is waited
    /// for, within `answer_timeout`.
    ///
    /// # Errors
    ///
    /// The service ended, with the cause in the log. [`Exit::Busy`] if another service has the
    /// place, which may be about to end or to make its socket again.
    pub fn start(&self, answer_timeout: Duration) -> Result<(), Failure> {
        if self.is_served_again(answer_timeout.min(SUPERVISOR_MAX)) {
            return Ok(());
        }
        let log = self.open_log().map_err(|error| unusable(self.place.folder(), &error))?;
        let logged = log.metadata().map_or(0, |log| log.len());
        let mut command = Command::new(own_program());
        command
            .arg("serve")
            .arg("--socket")
            .arg(self.place.socket())
            .arg("--idle-exit")
            .arg(std::env::var_os(IDLE_EXIT_VARIABLE).unwrap_or_else(|| IDLE_EXIT.into()))
            .current_dir("/")
            .env_clear()
            .envs(
                std::env::vars_os().filter(|(name, _)| ENVIRONMENT.iter().any(|kept| name == kept)),
            )
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(log);
        system::detach_child(&mut command);
        let mut known = started();
        let mut service = command.spawn().map_err(|error| {
            let few = error.raw_os_error() == Some(libc::EMFILE);
            let remedy = if few { "; raise ulimit -n" } else { "" };
            Failure::new(Exit::NoStart, format!("the service cannot be started: {error}{remedy}"))
        })?;
        let pid = Pid::from_child(&service);
        known.push(Started { pid, starting: true });
        drop(known);
        let mut line = String::new();
        let said = service.stdout.take().map(|out| BufReader::new(out).read_line(&mut line));
        let listens = matches!(said, Some(Ok(bytes)) if bytes > 0);
        let outcome = if listens { Ok(()) } else { Err(self.no_start(service.wait(), logged)) };
        started().retain_mut(|service| {
            service.starting &= service.pid != pid;
            listens || service.pid != pid
        });
        outcome
    }

    fn is_served_again(&self, limit: Duration) -> bool {
        let note = self.place.serve_note();
        let until = Instant::now() + limit;
        while note.exists() && Instant::now() < until {
            if self.place.is_listened_to() {
                return true;
            }
            std::thread::sleep(SUPERVISOR_PAUSE);
        }
        let _no_note = fs::remove_file(note);
        false
    }

    /// Returns the failure of a service that ended, with the line that it added to the log.
    fn no_start(&self, ended: io::Result<std::process::ExitStatus>, logged: u64) -> Failure {
        let busy = Some(Exit::Busy.code().into());
        let (how, exit) = match ended {
            Ok(status) if status.code() == busy => (status.to_string(), Exit::Busy),
            Ok(status) => (status.to_string(), Exit::NoStart),
            Err(error) => (error.to_string(), Exit::NoStart),
        };
        let log = self.place.log();
        let folder = self.place.folder();
        let why = match self.place.last_words_after(logged) {
            Some(line) => line.trim_start_matches("navlocks: ").to_owned(),
            // The service could not write its log.
            None if is_full(folder) => format!("the disk of {} is full", folder.display()),
            None => how,
        };
        let message = format!("the service did not start: {why} (its log is {})", log.display());
        Failure::new(exit, message)
    }

    fn open_log(&self) -> io::Result<File> {
        let path = self.place.log();
        if fs::metadata(&path).is_ok_and(|log| log.len() > LOG_BYTES_MAX) {
            fs::rename(&path, path.with_extension("old"))?;
        }
        private().append(true).open(&path)
    }
}

/// Returns options that make a file private to the user if it is missing.
fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.create(true).mode(0o600).custom_flags(libc::O_NOFOLLOW);
    options
}

/// Returns true if nothing can be written to the disk of a folder.
pub(crate) fn is_full(folder: &Path) -> bool {
    statvfs(folder).is_ok_and(|room| {
        room.f_blocks > 0 && (room.f_bavail == 0 || (room.f_files > 0 && room.f_favail == 0))
    })
}

/// Returns true if the disk of a state folder has no room for the tables of a service that are not
/// there.
pub(crate) fn lacks_room_to_start(folder: &Path) -> bool {
    let made = |name: &str| fs::metadata(folder.join(name)).map_or(0, |table| table.len());
    let missing = ["sessions.table", "requests.table"]
        .map(|name| TABLE_BYTES.saturating_sub(made(name)))
        .iter()
        .sum::<u64>();
    statvfs(folder).is_ok_and(|room| room.f_blocks > 0 && room.f_bavail * room.f_frsize < missing)
}

/// Returns the path of this program, or of the kernel's link to it if its file was replaced.
pub(crate) fn own_program() -> PathBuf {
    match std::env::current_exe() {
        Ok(path) if path.exists() => path,
        _ => Path::new("/proc/self/exe").to_path_buf(),
    }
}
