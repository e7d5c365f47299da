//! Running a command under a lock: as if it were run directly, and not a moment longer than the lock is held.

mod child;
mod signals;
mod terminal;
mod waiting;

pub(crate) use signals::Signals;
pub(crate) use waiting::{Waiting, who};

use std::ffi::OsString;
use std::time::Duration;

use navlocks::{Lock, Loss};
use rustix::process::{Signal, set_child_subreaper};
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::{Instant, sleep_until};

use crate::exit::{Exit, Failure};
use child::{Change, Child};
use terminal::Terminal;

/// How often it is looked whether the group of an ended child is gone. Nobody is told, so there is nothing to wait for.
const GROUP_POLL: Duration = Duration::from_millis(20);

/// The treatment of a command whose lock is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OnLoss {
    /// It is ended.
    Terminate,
    /// It goes on.
    Continue,
    /// It is sent a signal, and goes on.
    Signal(Signal),
}

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// By itself, with this status.
    Own(u8),
    /// It was ended because the lock was lost.
    Lost(Loss),
}

/// Runs the command until it ends, or until the lock is lost and the command had its `grace` to end.
///
/// Call it from the main thread: the command dies with the thread that spawned it.
pub(crate) async fn supervise(
    command: &[OsString],
    environment: Vec<(&'static str, Option<String>)>,
    lock: &Lock,
    signals: Signals,
    on_loss: OnLoss,
    grace: Duration,
) -> Result<Ending, Failure> {
    // Before the child is there, so that no signal and no end of it goes unnoticed.
    let mut signals = signals.listen()?;
    let mut ends = signal(SignalKind::child()).map_err(refused)?;
    let mut terminal = Terminal::controlling();
    // Processes of the command whose parents end become children of this one, and so are found.
    let _only_its_group_is_found = set_child_subreaper(Some(rustix::process::getpid()));
    let presence = lock.locks().descriptor();
    let child = Child::spawn(command, environment, presence, &mut terminal)?;
    let mut run = Run { child, terminal, on_loss, grace, lost: None, resumed: false };
    let mut known = false;
    loop {
        let lost = run.lost;
        let grace_over = lost.map_or_else(Instant::now, |(_, until)| until);
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
                run.lose(loss, lock.locks().lease_left());
            }
            () = sleep_until(grace_over), if lost.is_some() => {
                run.child.signal_group(Signal::KILL);
                run.child.signal_descendants(Signal::KILL);
                // The end of the child comes next, and nothing else.
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
    on_loss: OnLoss,
    grace: Duration,
    /// Why the lock is lost, and until when the command may end by itself.
    lost: Option<(Loss, Instant)>,
    /// The command was continued after a stop, and the signal that continued this process is still
    /// to be read.
    resumed: bool,
}

impl Run {
    /// What became of the child since it was last looked at. Its status, when it has ended.
    fn child_changed(&mut self) -> Result<Option<u8>, Failure> {
        loop {
            match self.child.change().map_err(refused)? {
                Change::None => {
                    self.child.reap_orphans();
                    return Ok(None);
                }
                Change::Ended(status) => return Ok(Some(status)),
                Change::Stopped(by) => self.child_stopped(by),
            }
        }
    }

    /// Job control: who started us sees us stop when the command stops, and the command goes on when we do.
    fn child_stopped(&mut self, by: Signal) {
        let Some(terminal) = &mut self.terminal else { return };
        let wants_terminal = by == Signal::TTIN || by == Signal::TTOU;
        if !terminal.is_lent() {
            // A stop that did not come from the terminal is between the command and whoever sent it.
            if !wants_terminal && by != Signal::TSTP {
                return;
            }
            // In a pipeline the terminal is not given away until the command asks for it.
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
        // The command may have been stopped again meanwhile: continuing it twice would undo that.
        if caught == Signal::CONT && std::mem::take(&mut self.resumed) {
            return;
        }
        if caught == Signal::CONT
            && let Some(terminal) = &mut self.terminal
        {
            terminal.lend_if_wanted(self.child.group());
        }
        // In a pipeline keys are for all who read them; otherwise a signal is for the one that it
        // was sent to.
        match &self.terminal {
            Some(terminal) if !terminal.is_lent() => self.child.signal_group(caught),
            _ => self.child.signal(caught),
        }
    }

    /// Ends the command, or tells it. No other client is granted for as long as `left`.
    fn lose(&mut self, loss: Loss, left: Option<Duration>) {
        match self.on_loss {
            OnLoss::Terminate => {}
            OnLoss::Continue => {
                return crate::printer::tell(&format!("{loss}; the command goes on without it"));
            }
            OnLoss::Signal(signal) => {
                crate::printer::tell(&format!("{loss}; the command is told by a signal"));
                return self.child.signal(signal);
            }
        }
        let grace = match (loss, left) {
            // The rest is for the end of the processes, and for clocks that do not run alike.
            (Loss::LeaseLapsed, Some(left)) => self.grace.min(left / 2),
            _ => self.grace,
        };
        let time = crate::command::say(grace);
        crate::printer::tell(&format!("{loss}; the command has {time} to end"));
        self.lost = Some((loss, Instant::now() + grace));
        self.child.signal_group(Signal::TERM);
        self.child.signal_descendants(Signal::TERM);
        // A command that is stopped ends when it goes on.
        self.child.signal_group(Signal::CONT);
    }

    /// The child has ended. If the lock was lost, nobody of its group is left when this returns.
    async fn ended(mut self, status: u8) -> Ending {
        if let Some(terminal) = &mut self.terminal {
            terminal.take_back();
        }
        let Some((loss, until)) = self.lost else { return Ending::Own(status) };
        while Instant::now() < until && self.child.others_live() {
            sleep_until(until.min(Instant::now() + GROUP_POLL)).await;
        }
        self.child.signal_group(Signal::KILL);
        self.child.signal_descendants(Signal::KILL);
        Ending::Lost(loss)
    }
}

fn refused(error: std::io::Error) -> Failure {
    Failure::new(Exit::System, format!("the system refuses to watch over the command: {error}"))
}
