//! `navlocks run`.

use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use clap::Args;
use navlocks::{RequestInfo, Scope};
use rustix::process::Signal;

use super::acquire::{Acquire, environment};
use crate::command::target::Target;
use crate::command::{duration, short};
use crate::exit::{Exit, Failure};
use crate::run::{Ending, OnLoss, Rules, execute, supervise};

/// Run a command while holding a lock
///
/// Waits until the lock is free and its turn has come, runs COMMAND, and releases the lock as soon
/// as COMMAND ends, even if it left processes in the background. Each name is first come, first
/// served; several names are locked at once or not at all. The options of flock(1) mean the same
/// here, such as in navlocks run --nb backup -c 'tar c . | gzip >b'.
///
/// COMMAND has the terminal, the input, the signals and the exit status that it would have without
/// navlocks. Its environment says what it holds: NAVLOCKS_FENCING_TOKEN, a number larger than that
/// of every holder before; NAVLOCKS_NAMES, the names as a JSON array; NAVLOCKS_NAME, if it is only
/// one; NAVLOCKS_MODE, exclusive, shared or such as limit 4; NAVLOCKS_REQUEST, by which deadlocks
/// of commands that run others under locks are found. If --url names the service, NAVLOCKS_URL and
/// the files of --token-file and --ca-file lead commands of navlocks in it to the same one.
///
/// A service of the user's own that ends is started again, and COMMAND goes on with its lock. If
/// the lock is lost, because it was stolen or the network was broken for too long, COMMAND and all
/// processes that it started get SIGTERM, and SIGKILL after the grace time; --on-loss says
/// otherwise. Over TCP the grace time ends with the lease, before another client has the lock. If
/// navlocks itself is killed, COMMAND is killed by the kernel (not if it is a set-user-ID program),
/// and the lock is free when all processes that COMMAND started have ended: they have a socket of
/// navlocks as an open file. Over TCP that is not so, nor for processes that close files they do
/// not know.
///
/// A script locks itself by a line at its top: [ "$NAVLOCKS_NAME" = deploy ] || exec navlocks run
/// deploy -- "$0" "$@"; for a lock from the middle of a script see navlocks lock.
#[derive(Debug, Args)]
#[command(override_usage = "navlocks run [OPTIONS] NAME... -- COMMAND [ARGUMENT]...")]
pub(crate) struct Run {
    #[command(flatten)]
    acquire: Acquire,
    /// The command, and its arguments
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
    /// Run this line in the shell that SHELL names, or else sh
    #[arg(short = 'c', long = "command", value_name = "STRING", conflicts_with = "command")]
    line: Option<OsString>,
    /// The fate of COMMAND when the lock is lost: terminate, continue, or the name of a signal to
    /// send, such as USR1
    #[arg(long, value_name = "ACTION", default_value = "terminate", value_parser = on_loss)]
    on_loss: OnLoss,
    /// How long COMMAND may take to end when the lock is lost
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = duration::parse)]
    grace: Duration,
    /// Hold the lock until every process has ended that COMMAND started
    #[arg(long)]
    wait_for_children: bool,
    /// Run COMMAND under the lock of the outer navlocks run if that still holds all names, in a
    /// mode that allows no more holders; otherwise request one
    #[arg(long, conflicts_with_all = ["steal", "leader"])]
    reentrant: bool,
    /// Lead under NAME with this value, such as an address, which navlocks leader prints
    #[arg(long, value_name = "VALUE", conflicts_with_all = ["shared", "limit", "tag"])]
    leader: Option<String>,
    #[command(flatten)]
    target: Target,
}

impl Run {
    pub(crate) async fn perform(mut self, arguments: &[OsString]) -> Result<u8, Failure> {
        if let Some(line) = self.line.take() {
            let shell = std::env::var_os("SHELL").filter(|shell| !shell.is_empty());
            self.command = vec![shell.unwrap_or_else(|| "/bin/sh".into()), "-c".into(), line];
        }
        let scope = self.check(arguments)?;
        if self.leader.is_some() {
            self.acquire.tag = self.leader.take();
            if scope.names().len() > 1 {
                let message = "a leader leads under one name: say --leader VALUE NAME";
                return Err(Failure::new(Exit::Usage, message));
            }
        }
        if self.reentrant && self.is_covered(&scope).await? {
            return Err(execute(&self.command));
        }
        self.acquire.tag.get_or_insert_with(|| tag(&self.command));
        let (lock, signals) = self.acquire.acquire(&self.target, &scope).await?;
        let environment = environment(&lock, &self.target);
        let rules = Rules {
            on_loss: self.on_loss,
            grace: self.grace,
            waits_for_all: self.wait_for_children,
        };
        let ending = supervise(&self.command, environment, &lock, signals, rules).await;
        let locks = lock.locks();
        drop(lock);
        Target::finish(locks).await;
        match ending? {
            Ending::Own(status) => Ok(status),
            // A shell ends its script only if this process dies of the key, too.
            Ending::Interrupted(key) => crate::system::die_of_key(key),
            Ending::Passed(signal) => crate::system::die_of(signal),
            Ending::Lost(loss) => {
                let scope = short(&scope);
                let message = format!("the command was ended, because '{scope}' is lost: {loss}");
                Err(Failure::new(Exit::Lost, message))
            }
        }
    }

    /// Returns true if the lock under which this process runs is enough for the command, and still
    /// held: a process may outlive the outer command, or its lock.
    async fn is_covered(&self, scope: &Scope) -> Result<bool, Failure> {
        let Some(outer) = self.target.outer() else { return Ok(false) };
        let Some(locks) = self.target.connect_if_running().await? else { return Ok(false) };
        let snapshot = self.target.query(&locks).await;
        Target::finish(locks).await;
        let snapshot = snapshot?;
        let covers = |lock: &RequestInfo| {
            lock.request == outer
                && lock.mode.downgrades_to(self.acquire.mode())
                && scope.names().iter().all(|name| lock.scope.contains(name))
        };
        Ok(snapshot.held.iter().any(covers))
    }

    /// Checks names and command. Each mistake has an exit code of its own.
    fn check(&self, arguments: &[OsString]) -> Result<Scope, Failure> {
        let scope = self.acquire.scope()?;
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
}

/// Returns the tag: the command's file name, because its arguments may be secret.
fn tag(command: &[OsString]) -> String {
    let program = command.first().map(Path::new).and_then(Path::file_name);
    program.map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

pub(crate) fn on_loss(text: &str) -> Result<OnLoss, String> {
    const SIGNALS: [(&str, Signal); 7] = [
        ("HUP", Signal::HUP),
        ("INT", Signal::INT),
        ("QUIT", Signal::QUIT),
        ("USR1", Signal::USR1),
        ("USR2", Signal::USR2),
        ("TERM", Signal::TERM),
        ("KILL", Signal::KILL),
    ];
    let signal = text.strip_prefix("SIG").unwrap_or(text);
    match text {
        "terminate" => Ok(OnLoss::Terminate),
        "continue" => Ok(OnLoss::Continue),
        _ => match SIGNALS.iter().find(|(name, _)| *name == signal) {
            Some(&(_, signal)) => Ok(OnLoss::Signal(signal)),
            None => {
                let names = SIGNALS.map(|(name, _)| name).join(", ");
                Err(format!("it is terminate, continue or one of {names}"))
            }
        },
    }
}
