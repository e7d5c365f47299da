//! `navlocks run`.

use std::ffi::OsString;
use std::io::IsTerminal;
use std::path::Path;
use std::time::{Duration, Instant};

use clap::Args;
use navlocks::{Lock, Locks, RequestError, Scope};
use navlocks_wire::{self as wire, Names};

use super::target::Target;
use super::{duration, names};
use crate::exit::{Exit, Failure};
use crate::run::{Ending, Waiting, supervise};

/// Before a service that ended is started again, so that one that cannot live does not keep the machine busy.
const RESTART_PAUSE: Duration = Duration::from_millis(50);

/// Run a command while holding a lock
///
/// Waits until the lock is free and its turn has come, runs COMMAND, and lets go as soon as COMMAND ends, even if it left
/// processes in the background. Each name is first come, first served; several names are locked at once or not at all.
///
/// COMMAND has the terminal, the input, the signals and the exit status that it would have without navlocks. Its
/// environment says what it holds: NAVLOCKS_FENCING_TOKEN, a number larger than that of every holder before; NAVLOCKS_NAMES,
/// the names as a JSON array; NAVLOCKS_NAME, if it is only one; NAVLOCKS_MODE, exclusive or shared.
///
/// If the lock is lost, because it was stolen or the service is gone, COMMAND and the processes of its group get SIGTERM, and
/// SIGKILL after the grace time. If navlocks itself is killed, the lock is free and COMMAND is killed (by
/// the kernel, on Linux; not if COMMAND is a set-user-ID program, and not its own children).
#[derive(Debug, Args)]
#[command(override_usage = "navlocks run [OPTIONS] NAME... -- COMMAND [ARGUMENT]...")]
pub(super) struct Run {
    /// The names to lock
    #[arg(value_name = "NAME")]
    names: Vec<OsString>,
    /// The command, and its arguments
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
    /// Share the lock with others that do
    #[arg(short, long)]
    shared: bool,
    /// Do not wait: end with the conflict's exit code if the lock is not free
    #[arg(short = 'n', long, conflicts_with_all = ["timeout", "steal"])]
    if_available: bool,
    /// Wait no longer than this: 10 or 10s, 500ms, 5m, 1h
    #[arg(short = 'w', long, value_name = "DURATION", value_parser = duration::parse)]
    timeout: Option<Duration>,
    /// Take the lock from whoever holds it; what runs under it is ended
    #[arg(long, conflicts_with = "shared")]
    steal: bool,
    /// What others see as the holder [default: the name of COMMAND]
    #[arg(short, long, value_name = "TEXT")]
    tag: Option<String>,
    /// The exit code when the lock is not free in time
    #[arg(short = 'E', long, value_name = "CODE", default_value_t = Exit::Conflict.code())]
    conflict_exit_code: u8,
    /// How long COMMAND may take to end when the lock is lost
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = duration::parse)]
    grace: Duration,
    /// Do not say for whom it waits
    #[arg(short, long)]
    quiet: bool,
    #[command(flatten)]
    target: Target,
}

impl Run {
    pub(super) async fn perform(self, arguments: &[OsString]) -> Result<u8, Failure> {
        let scope = self.check(arguments)?;
        let Some(lock) = self.acquire(&scope).await? else {
            return Err(self.conflict(&format!("'{scope}' is not free")));
        };
        let ending = supervise(&self.command, environment(&lock), &lock, self.grace).await;
        let locks = lock.locks();
        drop(lock);
        Target::finish(locks).await;
        match ending? {
            Ending::Own(status) => Ok(status),
            Ending::Lost(loss) => {
                Err(Failure::new(Exit::Lost, format!("the command was ended: {loss}")))
            }
        }
    }

    /// What is wrong with the names and the command, each by its own code.
    fn check(&self, arguments: &[OsString]) -> Result<Scope, Failure> {
        let scope = names::scope(&self.names)?;
        if !self.command.is_empty() {
            return Ok(scope);
        }
        if arguments.iter().any(|argument| argument == "--") {
            return Err(Failure::new(Exit::NoCommand, "no command was given after --"));
        }
        Err(Failure::new(
            Exit::NoSeparator,
            "the command goes after --, as in: navlocks run NAME -- COMMAND",
        ))
    }

    /// Waits for the lock; none, if it was not to be waited for. A service of the user's own that ends meanwhile is started
    /// again.
    async fn acquire(&self, scope: &Scope) -> Result<Option<Lock>, Failure> {
        let until = self.timeout.map(|timeout| (timeout, Instant::now() + timeout));
        loop {
            let locks = self.target.connect().await?;
            let left = until.map(|(_, until)| until.saturating_duration_since(Instant::now()));
            match self.wait(&locks, scope, left).await {
                Err(RequestError::Unreachable) if self.target.place()?.is_some() => {
                    tokio::time::sleep(RESTART_PAUSE).await;
                }
                Err(RequestError::TimedOut { .. }) => {
                    let after = until.map_or(Duration::ZERO, |(timeout, _)| timeout);
                    let error = RequestError::TimedOut { after };
                    return Err(self.conflict(&error.to_string()));
                }
                outcome => return outcome.map_err(|error| no_lock(&error)),
            }
        }
    }

    async fn wait(
        &self,
        locks: &Locks,
        scope: &Scope,
        timeout: Option<Duration>,
    ) -> Result<Option<Lock>, RequestError> {
        let mut request = locks.request(scope).tag(self.tag());
        if self.shared {
            request = request.shared();
        }
        if self.if_available {
            return request.if_available().await;
        }
        if self.steal {
            request = request.steal();
        }
        if let Some(timeout) = timeout {
            request = request.timeout(timeout);
        }
        if self.quiet {
            return request.await.map(Some);
        }
        let mut waiting = Waiting::new(locks, scope, std::io::stderr().is_terminal());
        tokio::select! {
            biased;
            lock = request => lock.map(Some),
            never = waiting.tell() => match never {},
        }
    }

    fn conflict(&self, message: &str) -> Failure {
        let message = if self.quiet { String::new() } else { message.to_owned() };
        Failure { code: self.conflict_exit_code, message }
    }

    /// What others see: the command's file name, because its arguments may be nobody's business.
    fn tag(&self) -> String {
        let program = self.command.first().map(Path::new).and_then(Path::file_name);
        let program = program.map(|name| name.to_string_lossy().into_owned());
        self.tag.clone().or(program).unwrap_or_default()
    }
}

fn no_lock(error: &RequestError) -> Failure {
    let exit = match error {
        RequestError::Unreachable => Exit::Unavailable,
        RequestError::Refused(_) => Exit::Limit,
        _ => Exit::Withdrawn,
    };
    Failure::new(exit, error.to_string())
}

/// What the command is told about its lock. A variable without a value is taken out: it may be that of a lock around this one.
fn environment(lock: &Lock) -> Vec<(&'static str, Option<String>)> {
    let single = match lock.scope().names() {
        [name] => name.to_str().map(str::to_owned),
        _ => None,
    };
    vec![
        ("NAVLOCKS_FENCING_TOKEN", Some(lock.fencing_token().to_string())),
        ("NAVLOCKS_NAMES", Some(wire::write(&Names(lock.scope().clone())))),
        ("NAVLOCKS_NAME", single),
        ("NAVLOCKS_MODE", Some(lock.mode().to_string())),
    ]
}
