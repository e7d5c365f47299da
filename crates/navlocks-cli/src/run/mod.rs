//! Runs a command under a lock: like a direct run, and no longer than the lock is held.

mod child;
mod signals;
mod terminal;
mod waiting;

pub(crate) use child::execute;
pub(crate) use signals::Signals;
pub(crate) use waiting::{Waiting, allowed, who};

use std::ffi::OsString;
use std::time::Duration;

use navlocks::{Lock, LossCause};
use rustix::process::{Signal, set_child_subreaper};
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::{Instant, sleep_until};

use crate::command::short;
use crate::exit::{Exit, Failure};
use child::{Change, Child, Status};
use terminal::Terminal;

/// The pause between two looks at the group of an ended child: the kernel sends no notification.
const GROUP_POLL: Duration = Duration::from_millis(20);

/// The treatment of a command whose lock is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OnLoss {
    /// The command is terminated.
    Terminate,
    /// The command goes on.
    Continue,
    /// The command receives a signal, and goes on.
    Signal(Signal),
}

/// The rules for a command and its lock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules {
    pub(crate) on_loss: OnLoss,
    /// The time for the end of the command after a loss.
    pub(crate) grace: Duration,
    /// The lock is held until every process of the command has ended.
    pub(crate) waits_for_all: bool,
}

/// The end of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// The command ended by itself, with this status.
    Own(u8),
    /// A key of the terminal that the command had ended it by this signal.
    Interrupted(Signal),
    /// This signal ended the command, and this process had passed it on.
    Passed(Signal),
    /// The command was terminated because the lock was lost.
    Lost(LossCause),
}

/// Runs the command until it ends, or until the grace after the loss of the lock is over.
///
/// The main thread has to call it: the kernel kills the command when the calling thread ends.
pub(crate) async fn supervise(
    command: &[OsString],
    environment: Vec<(&'static str, Option<String>)>,
    lock: &Lock,
    signals: Signals,
    rules: Rules,
) -> Result<Ending, Failure> {
    // Installed before the child starts, so that no signal is missed.
    let mut signals = signals.listen()?;
    let mut ends = signal(SignalKind::child()).map_err(refused)?;
    let mut terminal = Terminal::controlling();
    // Orphans of the command become children of this process, which finds them so.
    let _only_its_group_is_found = set_child_subreaper(Some(rustix::process::getpid()));
    let presence = lock.locks().liveness_fd();
    let child = Child::spawn(command, environment, presence, &mut terminal)?;
    let (own_end, lost, resumed, passed) = (None, None, false, None);
    let mut run = Run { child, terminal, rules, own_end, lost, resumed, passed };
    let mut known = false;
    loop {
        let lost = run.lost.as_ref().map(|&(_, until)| until);
        let grace_over = lost.unwrap_or_else(Instant::now);
        tokio::select! {
            biased;
            _ = ends.recv() => {
                if let Some(status) = run.child_changed()? {
                    return Ok(run.ended(status).await);
                }
            }
            caught = signals.next() => run.pass_on(caught),
            loss = lock.lost(), if !known => {
                known = true;
                run.lose(loss, lock);
            }
            () = sleep_until(grace_over), if lost.is_some() => {
                run.child.signal_all(Signal::KILL);
                // The end of the child follows.
                ends.recv().await;
                if let Some(status) = run.child_changed()? {
                    return Ok(run.ended(status).await);
                }
            }
        }
    }
}

struct Run {
    child: Child,
    terminal: Option<Terminal>,
    rules: Rules,
    /// The end of the command, whose other processes are waited for.
    own_end: Option<Status>,
    /// The loss of the lock, and the end of the grace.
    lost: Option<(LossCause, Instant)>,
    /// The command was continued after a stop, and the SIGCONT of this process is not read yet.
    resumed: bool,
    /// The last signal that was passed on.
    passed: Option<Signal>,
}

impl Run {
    /// Handles changes of the child. Returns its status when the lock is not needed any more.
    fn child_changed(&mut self) -> Result<Option<Status>, Failure> {
        while self.own_end.is_none() {
            match self.child.change().map_err(refused)? {
                Change::None => {
                    self.child.reap_orphans();
                    return Ok(None);
                }
                Change::Ended(status) => self.own_end = Some(status),
                Change::Stopped(by) => self.child_stopped(by),
            }
        }
        // Orphans of the command are children of this process, so the end of each is a signal.
        let waits = self.rules.waits_for_all && self.lost.is_none();
        Ok(self.own_end.filter(|_| !(waits && self.child.has_orphans())))
    }

    /// Sends a signal to the command, or to its other processes after its own end.
    fn signal(&self, signal: Signal) {
        match self.own_end {
            None => self.child.signal(signal),
            Some(_) => self.child.signal_all(signal),
        }
    }

    /// Job control: this process stops with the command, and the command is continued with it.
    fn child_stopped(&mut self, by: Signal) {
        let Some(terminal) = &mut self.terminal else { return };
        let wants_terminal = by == Signal::TTIN || by == Signal::TTOU;
        if !terminal.is_lent() {
            // A stop that did not come from the terminal concerns the command and the sender alone.
            if !wants_terminal && by != Signal::TSTP {
                return;
            }
            // In a pipeline the command gets the terminal when it reads.
            if wants_terminal && terminal.lend(self.child.group()) {
                self.child.signal_group(Signal::CONT);
                return;
            }
        }
        terminal.take_back();
        crate::system::stop_group();
        terminal.lend_if_wanted(self.child.group());
        self.child.signal_group(Signal::CONT);
        self.resumed = true;
    }

    fn pass_on(&mut self, caught: Signal) {
        // A second SIGCONT would undo a later stop of the command.
        if caught == Signal::CONT && std::mem::take(&mut self.resumed) {
            return;
        }
        if caught == Signal::CONT
            && let Some(terminal) = &mut self.terminal
        {
            terminal.lend_if_wanted(self.child.group());
        }
        self.passed = Some(caught);
        // In a pipeline Ctrl-C is for the whole group; other signals are for their receiver alone.
        match &self.terminal {
            Some(terminal) if !terminal.is_lent() => self.child.signal_group(caught),
            _ => self.signal(caught),
        }
    }

    /// Terminates or signals the command.
    fn lose(&mut self, loss: LossCause, lock: &Lock) {
        let tell = |fate: &str| {
            crate::printer::tell(&format!(
                "'{}' is lost: {loss}; the command {fate}",
                short(lock.scope())
            ));
        };
        match self.rules.on_loss {
            OnLoss::Terminate => {}
            OnLoss::Continue => return tell("goes on without it"),
            OnLoss::Signal(signal) => {
                tell("is told by a signal");
                return self.signal(signal);
            }
        }
        // No other client is granted while the rest of the lease lasts.
        let grace = match (&loss, lock.locks().lease_left()) {
            // The rest of the time is for the processes to end, and for clocks of other speed.
            (LossCause::LeaseLapsed, Some(left)) => self.rules.grace.min(left / 2),
            _ => self.rules.grace,
        };
        tell(&format!("has {} to end", crate::command::say(grace)));
        self.lost = Some((loss, Instant::now() + grace));
        self.child.signal_all(Signal::TERM);
        // A stopped command receives SIGTERM when it is continued.
        self.child.signal_group(Signal::CONT);
    }

    /// Handles the end of the child. After a loss no process of its group is left.
    async fn ended(mut self, status: Status) -> Ending {
        let lent = self.terminal.as_mut().is_some_and(Terminal::take_back);
        let Some((loss, until)) = self.lost else {
            return match status.key {
                Some(key) if self.passed == Some(key) => Ending::Passed(key),
                Some(key) if lent => Ending::Interrupted(key),
                _ => Ending::Own(status.code),
            };
        };
        while Instant::now() < until && self.child.others_live() {
            sleep_until(until.min(Instant::now() + GROUP_POLL)).await;
        }
        self.child.signal_all(Signal::KILL);
        Ending::Lost(loss)
    }
}

fn refused(error: std::io::Error) -> Failure {
    Failure::new(Exit::System, format!("the system refuses to watch over the command: {error}"))
}
