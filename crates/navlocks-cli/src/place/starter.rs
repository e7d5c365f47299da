//! Starting the service of a user, once, however many want it at the same time.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::fs::{FlockOperation, Mode};
use rustix::process::Pid;

use super::{Place, unusable};
use crate::exit::{Exit, Failure};
use crate::system;

/// How long a service that started by itself stays when nobody is connected, and the variable that says otherwise.
const IDLE_EXIT: &str = "60s";
const IDLE_EXIT_VARIABLE: &str = "NAVLOCKS_IDLE_EXIT";

/// A log that is longer than this is put aside when a service starts.
const LOG_BYTES_MAX: u64 = 1 << 20;

/// How much of the end of the log is looked at for an error.
const LOG_TAIL_BYTES: u64 = 4096;

/// What a service is given of the environment. It outlives whoever starts it, and must not keep their secrets.
const ENVIRONMENT: [&str; 5] = ["PATH", "LANG", "TZ", "RUST_BACKTRACE", "NAVLOCKS_LOG"];

/// The right to start a service; given up when dropped. Others wait for it, and then find the service that was started.
#[derive(Debug)]
pub struct Starter<'a> {
    place: &'a Place,
    _lock: File,
    _umask: Option<Umask>,
}

/// A service that this process has started and that may still run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Started {
    pub(crate) pid: Pid,
    /// It does not listen yet, and its starter waits for that or for its end.
    pub(crate) starting: bool,
}

static STARTED: Mutex<Vec<Started>> = Mutex::new(Vec::new());

/// Returns the services that this process has started: children of it, and not of the command that
/// it runs. None is started meanwhile.
pub(crate) fn started() -> MutexGuard<'static, Vec<Started>> {
    STARTED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Files that this process makes meanwhile are its user's alone, and its user's for certain.
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

impl Place {
    /// Waits for the right to start a service here. Whoever has it looks once more whether one runs.
    ///
    /// # Errors
    ///
    /// The folder cannot be made or written, or is not private.
    pub fn starter(&self) -> Result<Starter<'_>, Failure> {
        self.lock_start(Some(Umask::private()))
    }

    /// Starts a service that has ended, unless another process does. For a thread beside others: it
    /// leaves the umask of the process alone.
    ///
    /// # Errors
    ///
    /// As of [`starter`](Self::starter) and [`start`](Starter::start).
    pub fn start_again(&self) -> Result<(), Failure> {
        let starter = self.lock_start(None)?;
        if UnixStream::connect(self.socket()).is_ok() { Ok(()) } else { starter.start() }
    }

    fn lock_start(&self, umask: Option<Umask>) -> Result<Starter<'_>, Failure> {
        self.prepare()?;
        let path = self.start_lock();
        let failed = |error: io::Error| unusable(&self.folder, &error);
        let lock = private().write(true).open(&path).map_err(failed)?;
        while let Err(error) = rustix::fs::flock(&lock, FlockOperation::LockExclusive) {
            if error != rustix::io::Errno::INTR {
                return Err(failed(error.into()));
            }
        }
        Ok(Starter { place: self, _lock: lock, _umask: umask })
    }

    /// The last line of the log, if there is one.
    pub fn last_words(&self) -> Option<String> {
        let mut log = File::open(self.log()).ok()?;
        let length = log.metadata().ok()?.len();
        log.seek(SeekFrom::Start(length.saturating_sub(LOG_TAIL_BYTES))).ok()?;
        let mut tail = Vec::new();
        log.read_to_end(&mut tail).ok()?;
        let tail = String::from_utf8_lossy(&tail);
        tail.lines().rev().find(|line| !line.trim().is_empty()).map(str::to_owned)
    }
}

impl Starter<'_> {
    /// Starts the service and returns when it listens. It says so with a line on its standard output.
    ///
    /// # Errors
    ///
    /// It ended instead; the reason is in the log. [`Exit::Busy`] when another service has the place, which may be about to
    /// end or to make its socket again.
    pub fn start(&self) -> Result<(), Failure> {
        let log = self.open_log().map_err(|error| unusable(&self.place.folder, &error))?;
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
            Failure::new(Exit::NoStart, format!("the service cannot be started: {error}"))
        })?;
        let pid = Pid::from_child(&service);
        known.push(Started { pid, starting: true });
        drop(known);
        let mut line = String::new();
        let said = service.stdout.take().map(|out| BufReader::new(out).read_line(&mut line));
        let listens = matches!(said, Some(Ok(bytes)) if bytes > 0);
        let outcome = if listens { Ok(()) } else { Err(self.no_start(service.wait())) };
        started().retain_mut(|service| {
            service.starting &= service.pid != pid;
            listens || service.pid != pid
        });
        outcome
    }

    fn no_start(&self, ended: io::Result<std::process::ExitStatus>) -> Failure {
        let busy = Some(Exit::Busy.code().into());
        let (how, exit) = match ended {
            Ok(status) if status.code() == busy => (status.to_string(), Exit::Busy),
            Ok(status) => (status.to_string(), Exit::NoStart),
            Err(error) => (error.to_string(), Exit::NoStart),
        };
        let log = self.place.log();
        let why = self.place.last_words().unwrap_or(how);
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

/// Files here are for the user alone, and are made when they are not there.
fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.create(true).mode(0o600).custom_flags(libc::O_NOFOLLOW);
    options
}

/// This program; by way of the kernel when its file was replaced or removed since it was started.
fn own_program() -> std::path::PathBuf {
    match std::env::current_exe() {
        Ok(path) if path.exists() => path,
        _ => Path::new("/proc/self/exe").to_path_buf(),
    }
}
