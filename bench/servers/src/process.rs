//! Processes that end with this one, for whatever reason.
//!
//! All are kept in one list, for the end of the run, a panic, Ctrl-C and a TERM. After a KILL, the
//! kernel ends them: `setpriv` asks it to. Their folders then stay behind.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::panic;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, Once, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Resource, Rlimit, Signal, getrlimit, kill_process, setrlimit};
use tokio::signal::unix::{SignalKind, signal};

use super::Program;
use super::folder::Folder;
use super::memory;

/// How long an end may take before it is forced.
const END_MAX: Duration = Duration::from_secs(5);

static RUNNING: Mutex<BTreeMap<u32, Process>> = Mutex::new(BTreeMap::new());

fn running() -> MutexGuard<'static, BTreeMap<u32, Process>> {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The signal that ends a server.
#[derive(Clone, Copy, Debug)]
pub(crate) enum End {
    Terminate,
    Interrupt,
}

impl End {
    fn signal(self) -> Signal {
        match self {
            Self::Terminate => Signal::TERM,
            Self::Interrupt => Signal::INT,
        }
    }

    fn word(self) -> &'static str {
        match self {
            Self::Terminate => "TERM",
            Self::Interrupt => "INT",
        }
    }
}

/// A process and the folder to remove after it.
#[derive(Debug)]
pub(super) struct Process {
    child: Child,
    end: End,
    /// Starts it, and starts it again after a kill.
    command: Command,
    _folder: Folder,
}

impl Process {
    /// Starts the command; its output goes to the file `log` in its folder.
    pub(super) fn start(
        program: Program,
        folder: Folder,
        command: &mut Command,
    ) -> Result<Self, String> {
        let mut tied = tied(program, command);
        tied.current_dir(folder.path()).stdin(Stdio::null());
        let spawned = File::create(folder.path().join("log"))
            .and_then(|log| tied.stdout(log.try_clone()?).stderr(log).spawn());
        let child = spawned.map_err(|error| format!("{}: {error}", program.name))?;
        Ok(Self { child, end: program.end, command: tied, _folder: folder })
    }

    /// Kills it with all its processes, and starts it again.
    fn kill_and_start(&mut self) -> io::Result<()> {
        // Not by the group: each process of PostgreSQL has one of its own.
        let tree = memory::tree(self.child.id());
        for pid in tree.iter().filter_map(|pid| Pid::from_raw(pid.cast_signed())) {
            // A child may have ended with its parent.
            let _ = kill_process(pid, Signal::KILL);
        }
        self.child.wait()?;
        let start = Instant::now();
        while !tree.iter().all(|&pid| has_ended(pid)) {
            if start.elapsed() > END_MAX {
                return Err(io::Error::other("it lives on after a kill"));
            }
            thread::sleep(Duration::from_millis(1));
        }
        self.child = self.command.spawn()?;
        Ok(())
    }
}

/// Returns true if a process is gone, or is only kept until its parent asks for its status.
fn has_ended(pid: u32) -> bool {
    let Ok(stat) = fs::read_to_string(format!("/proc/{pid}/stat")) else { return true };
    // The state follows the name of the program, which is in parentheses.
    stat.rsplit_once(") ").is_some_and(|(_, state)| state.starts_with(['Z', 'X']))
}

/// Returns the command under the account of the program. It ends with this process, and ignores a
/// Ctrl-C on the terminal.
pub(super) fn tied(program: Program, command: &Command) -> Command {
    use std::os::unix::process::CommandExt as _;
    let mut tied = Command::new("setpriv");
    tied.args(["--pdeathsig", program.end.word()]);
    if let Some(account) = (program.account)() {
        tied.args(["--reuid", account, "--regid", account, "--init-groups"]);
    }
    tied.arg(command.get_program()).args(command.get_args());
    for (key, value) in command.get_envs() {
        if let Some(value) = value {
            tied.env(key, value);
        }
    }
    tied.process_group(0);
    tied
}

impl Drop for Process {
    fn drop(&mut self) {
        // A failure means that it has ended already.
        if let Some(pid) = Pid::from_raw(self.child.id().cast_signed()) {
            let _ = kill_process(pid, self.end.signal());
        }
        let start = Instant::now();
        while matches!(self.child.try_wait(), Ok(None)) {
            if start.elapsed() > END_MAX {
                let _ = self.child.kill();
                let _ = self.child.wait();
                break;
            }
            thread::sleep(Duration::from_millis(5));
        }
    }
}

/// A process that is kept, by the number that it had first.
#[derive(Debug)]
pub(super) struct Id(u32);

/// Keeps a process until it is ended, or this one ends.
pub(super) fn keep(process: Process) -> Id {
    static WATCH: Once = Once::new();
    WATCH.call_once(end_all_when_told);
    let id = process.child.id();
    running().insert(id, process);
    Id(id)
}

impl Id {
    pub(super) fn pid(&self) -> u32 {
        running().get(&self.0).map_or(self.0, |process| process.child.id())
    }

    pub(super) fn kill_and_start(&self) -> io::Result<()> {
        running().get_mut(&self.0).map_or(Ok(()), Process::kill_and_start)
    }

    pub(super) fn has_ended(&self) -> bool {
        let mut running = running();
        running.get_mut(&self.0).is_none_or(|process| !matches!(process.child.try_wait(), Ok(None)))
    }

    pub(super) fn end(&self) {
        let process = running().remove(&self.0);
        // Ending takes a while; the others stay reachable meanwhile.
        drop(process);
    }
}

/// Starts a thread that waits for the signals that end a program, and ends the servers first.
fn end_all_when_told() {
    thread::spawn(|| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build();
        let Ok(runtime) = runtime else { return };
        runtime.block_on(async {
            let kinds = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()];
            let waits = kinds.map(|kind| {
                tokio::spawn(async move {
                    if let Ok(mut signals) = signal(kind) {
                        signals.recv().await;
                        // The interrupted work fails meanwhile, and its messages are not wanted.
                        panic::set_hook(Box::new(|_| {}));
                        // Locked to the end: any other thread that would end a server blocks here.
                        let mut running = running();
                        running.clear();
                        std::process::exit(128 + kind.as_raw_value());
                    }
                })
            });
            for wait in waits {
                let _ = wait.await;
            }
        });
    });
}

/// Raises the limit of open files to the largest value, and returns it.
pub fn raise_open_files_limit() -> u64 {
    let limit = getrlimit(Resource::Nofile);
    let highest = Rlimit { current: limit.maximum, maximum: limit.maximum };
    let reached = if setrlimit(Resource::Nofile, highest).is_ok() { highest } else { limit };
    reached.current.unwrap_or(u64::MAX)
}
