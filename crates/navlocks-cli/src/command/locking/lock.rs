//! `navlocks lock`.

use std::ffi::OsString;
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt as _;
use std::process::Command;

use clap::Args;
use navlocks::{Lock as Held, Scope};
use rustix::process::{Signal, getpid, kill_process};
use rustix::stdio::{dup2_stderr, dup2_stdin, dup2_stdout};
use tokio::signal::unix::{SignalKind, signal};

use super::acquire::{Acquire, environment};
use super::run::on_loss;
use crate::command::target::Target;
use crate::command::views::waits::quoted;
use crate::command::{block_on, short};
use crate::exit::{Exit, Failure};
use crate::printer;
use crate::process::{Process, describe};
use crate::run::OnLoss;
use crate::service_dir::own_program;
use crate::system;

/// The option by which a holder knows the process whose lock it holds.
pub(crate) const HELD_FOR: &str = "--held-for";

/// The end of the answer of a holder that has the lock.
const GRANTED: u8 = 0;

/// Hold a lock for a script or another process
///
/// In a script, eval "$(navlocks lock NAME)" || exit waits for the lock and holds it for the shell
/// that asked, until that shell ends, in whatever way, or calls navlocks unlock. A process of
/// navlocks in the background holds it; to kill that process releases the lock. The shell may
/// execute another program, which then has the lock. A subshell is a shell of its own.
///
/// The output is for eval, in the language of POSIX shells: it sets the variables that navlocks run
/// sets for a command, of which those of the last lock count. Without the lock, the output makes
/// eval fail with the exit code. A script that must not go on even where navlocks is not installed
/// says lock=$(navlocks lock NAME) || exit; eval "$lock".
///
/// If the lock is lost, the shell goes on, with a line on its standard error; --on-loss sends it a
/// signal. With --pid another process of the same user has the lock, such as a daemon.
#[derive(Debug, Args)]
#[command(override_usage = "eval \"$(navlocks lock [OPTIONS] NAME...)\" || exit")]
pub(crate) struct Lock {
    #[command(flatten)]
    acquire: Acquire,
    /// Hold the lock for this process [default: the shell that asks]
    #[arg(long, value_name = "PID", allow_negative_numbers = true)]
    pid: Option<i32>,
    /// The fate of the process when the lock is lost: continue, terminate, or the name of a signal
    /// to send, such as USR1
    #[arg(long, value_name = "ACTION", default_value = "continue", value_parser = on_loss)]
    on_loss: OnLoss,
    #[arg(long, hide = true)]
    held_for: Option<i32>,
    #[command(flatten)]
    target: Target,
}

impl Lock {
    pub(crate) fn perform(self, arguments: &[OsString]) -> Result<u8, Failure> {
        let scope = self.acquire.scope()?;
        match self.held_for {
            Some(pid) => block_on(self.hold(&scope, Process::inherited(pid)?)),
            None => self.start_holder(arguments),
        }
    }

    /// Returns the names, also of another process.
    pub(crate) fn scope(&self) -> Result<Scope, Failure> {
        self.acquire.scope()
    }

    /// Starts a process that holds the lock, and prints its answer.
    fn start_holder(&self, arguments: &[OsString]) -> Result<u8, Failure> {
        let refused = |error: io::Error| {
            Failure::new(Exit::System, format!("cannot start a process for the lock: {error}"))
        };
        let owner = self.pid.map_or_else(Process::asking, Process::open)?;
        let (mut own, theirs) = UnixStream::pair().map_err(refused)?;
        let mut command = Command::new(own_program());
        command.arg("lock").arg(HELD_FOR).arg(owner.pid().to_string());
        command.args(arguments.get(2..).unwrap_or_default());
        command.stdin(owner.into_fd()).stdout(OwnedFd::from(theirs));
        system::detach_child(&mut command);
        let mut holder = command.spawn().map_err(refused)?;
        // The command has a copy of the other end.
        drop(command);
        let mut answer = Vec::new();
        let _until_it_ended = BufReader::new(&own).read_until(GRANTED, &mut answer);
        if answer.pop_if(|last| *last == GRANTED).is_some() {
            printer::print_bytes(&answer)?;
            // Without this the holder releases the lock: the shell does not know that it has it.
            own.write_all(b"\n").map_err(refused)?;
            return Ok(Exit::Success.code());
        }
        let status = holder.wait().map_err(refused)?;
        let killed =
            || format!("the process for the lock was ended by signal {:?}", status.signal());
        match status.code() {
            // It has said why.
            Some(code) => Err(Failure { code: code as u8, message: String::new() }),
            None => Err(Failure::new(Exit::System, killed())),
        }
    }

    /// Holds the lock until the process ends for which it is held.
    async fn hold(mut self, scope: &Scope, owner: Process) -> Result<u8, Failure> {
        let refused = |error: io::Error| Failure::new(Exit::System, error.to_string());
        // A script that ignores the signal can unlock, too.
        system::reset(Signal::TERM);
        let asker = rustix::stdio::stdout().try_clone_to_owned().map_err(refused)?;
        let asker = UnixStream::from(asker);
        asker.set_nonblocking(true).map_err(refused)?;
        let asker = tokio::net::UnixStream::from_std(asker).map_err(refused)?;
        let tag = describe(owner.pid());
        self.acquire.tag.get_or_insert(tag);
        let lock = tokio::select! {
            biased;
            granted = self.acquire.acquire(&self.target, scope) => granted?.0,
            () = async {
                tokio::select! { _ = owner.ended() => {}, _ = is_confirmed(&asker) => {} }
                // The session ends as with every end of a command that waits.
                let _ends_here = kill_process(getpid(), Signal::TERM);
                std::future::pending().await
            } => return Ok(Exit::Success.code()),
        };
        let mut terminated = signal(SignalKind::terminate()).map_err(refused)?;
        let mut text = variables(&lock, &self.target).into_bytes();
        text.push(GRANTED);
        let confirmed = async {
            send(&asker, &text).await?;
            is_confirmed(&asker).await
        };
        let confirmed = tokio::select! {
            confirmed = confirmed => confirmed.unwrap_or(false),
            _ = owner.ended() => false,
            _ = terminated.recv() => false,
        };
        let mut loss = None;
        if confirmed {
            drop(asker);
            leave_streams().map_err(refused)?;
            tokio::select! {
                biased;
                _ = owner.ended() => {}
                _ = terminated.recv() => {}
                lost = lock.lost() => loss = Some(lost),
            }
        }
        let locks = lock.locks();
        drop(lock);
        if let Some(loss) = &loss {
            owner.tell(&format!("'{}' is lost: {loss}", short(scope)));
            match self.on_loss {
                OnLoss::Terminate => owner.signal(Signal::TERM),
                OnLoss::Continue => {}
                OnLoss::Signal(signal) => owner.signal(signal),
            }
        }
        Target::finish(locks).await;
        Ok(if loss.is_some() { Exit::Lost } else { Exit::Success }.code())
    }
}

/// Returns the variables of a program under the lock, in the language of shells.
fn variables(lock: &Held, target: &Target) -> String {
    let lines = environment(lock, target).into_iter().map(|(name, value)| match value {
        Some(value) => format!("export {name}={}\n", quoted(&value)),
        None => format!("unset {name}\n"),
    });
    lines.collect()
}

async fn send(to: &tokio::net::UnixStream, mut text: &[u8]) -> io::Result<()> {
    while !text.is_empty() {
        to.writable().await?;
        match to.try_write(text) {
            Ok(sent) => text = &text[sent..],
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Waits for the byte by which the asking process confirms that the shell has the answer. Returns
/// false if that process has ended.
async fn is_confirmed(asker: &tokio::net::UnixStream) -> io::Result<bool> {
    loop {
        asker.readable().await?;
        match asker.try_read(&mut [0]) {
            Ok(bytes) => return Ok(bytes > 0),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
}

/// Gives back the streams of the shell, which may be read until their last writer ends.
fn leave_streams() -> io::Result<()> {
    let null = std::fs::File::options().read(true).write(true).open("/dev/null")?;
    dup2_stdin(null.as_fd())?;
    dup2_stdout(null.as_fd())?;
    dup2_stderr(null.as_fd())?;
    Ok(())
}
