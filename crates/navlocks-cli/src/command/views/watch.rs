//! `navlocks watch`.

use std::collections::VecDeque;
use std::io::{IsTerminal, stdout};
use std::time::{Duration, Instant};

use clap::Args;
use navlocks::events::Gap;
use navlocks::{Event, Events, Explained, Locks, QueryError, Snapshot};
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::screen::{self, Screen};
use super::waits::Waits;
use super::{json, queues, table};
use crate::command::target::{Target, unanswered};
use crate::command::time;
use crate::exit::{Exit, Failure};
use crate::printer::{self, Harmless, Palette, Reader};

/// The most events on the screen.
const EVENTS_SHOWN: usize = 12;

/// The shortest and the longest time between two pictures. Ages change without events.
const REDRAW_MIN: Duration = Duration::from_millis(50);
const REDRAW_MAX: Duration = Duration::from_secs(1);

/// The shortest time between two searches for deadlocks.
const DEADLOCKS_MIN: Duration = Duration::from_secs(2);

/// Watch locks being requested, granted and released
///
/// On a terminal: a screen with deadlocks, queues, held locks, waiting requests and the last
/// events; Ctrl-C ends it. Elsewhere: a line for each event, with the time. When the service is out
/// of reach, or events were lost for another reason, a line says at once that events may be missing
/// from there on.
#[derive(Debug, Args)]
pub(crate) struct Watch {
    /// Print a JSON object for each event, one on a line
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    target: Target,
}

impl Watch {
    pub(crate) async fn perform(self) -> Result<(), Failure> {
        let locks = self.target.connect().await?;
        if !self.json && stdout().is_terminal() {
            return show(&self.target, &locks).await;
        }
        let mut events = locks.events();
        while let Some(received) = events.recv().await {
            let now = time::now();
            let text = match &received {
                _ if !self.json => line(&received, &now) + "\n",
                Ok(event) => json::event(event, &now),
                Err(_) => json::gap(&now),
            };
            if printer::print_bytes(text.as_bytes())? == Reader::Gone {
                return Ok(());
            }
        }
        Ok(())
    }
}

/// Returns a line for an event or a gap. Names and tags are untrusted.
fn line(received: &Result<Event, Gap>, now: &str) -> String {
    match received {
        Ok(event) => format!("{now} {}", Harmless(&event.to_string())),
        Err(Gap::Lagged { missed }) => format!("{now} {missed} events are missing here"),
        Err(_) => format!("{now} the service is out of reach: events may be missing here"),
    }
}

/// The signals that the screen handles, because it must restore the terminal first.
struct Keys {
    ends: [Signal; 4],
    suspends: Signal,
    resizes: Signal,
}

/// The next step of the screen.
enum Turn {
    Draw,
    Suspend,
    End,
}

impl Keys {
    fn listen() -> std::io::Result<Self> {
        Ok(Self {
            ends: [
                signal(SignalKind::interrupt())?,
                signal(SignalKind::terminate())?,
                signal(SignalKind::hangup())?,
                signal(SignalKind::quit())?,
            ],
            suspends: signal(SignalKind::from_raw(libc::SIGTSTP))?,
            resizes: signal(SignalKind::window_change())?,
        })
    }

    async fn next(&mut self) -> Turn {
        let [interrupt, terminate, hangup, quit] = &mut self.ends;
        tokio::select! {
            _ = interrupt.recv() => Turn::End,
            _ = terminate.recv() => Turn::End,
            _ = hangup.recv() => Turn::End,
            _ = quit.recv() => Turn::End,
            _ = self.suspends.recv() => Turn::Suspend,
            _ = self.resizes.recv() => Turn::Draw,
        }
    }
}

async fn show(target: &Target, locks: &Locks) -> Result<(), Failure> {
    let mut keys = Keys::listen().map_err(|error| {
        Failure::new(Exit::System, format!("the system refuses to listen for signals: {error}"))
    })?;
    let mut events = locks.events();
    let mut last: VecDeque<String> = VecDeque::new();
    let mut screen = Screen::enter()?;
    let (mut deadlocks, mut looked): (Vec<String>, Option<Instant>) = (Vec::new(), None);
    loop {
        let answer = tokio::time::timeout(target.answer_timeout, locks.query()).await;
        let snapshot = match answer {
            Ok(Ok(snapshot)) => Ok(snapshot),
            // The next client that needs the service starts it.
            Ok(Err(QueryError::Unreachable)) => Err("no service runs"),
            Ok(Err(error)) => return Err(unanswered(error)),
            Err(_) => Err("the service does not answer"),
        };
        if looked.is_none_or(|at| at.elapsed() >= DEADLOCKS_MIN) && snapshot.is_ok() {
            looked = Some(Instant::now());
            let waits = Waits::ask(target, locks, Explained::Deadlocked).await;
            deadlocks = waits.map(|waits| waits.deadlocks(|_| true)).unwrap_or_default();
        }
        let palette = Palette::of_stdout();
        // A remedy that is cut is none.
        let columns = screen::columns();
        let wrapped: Vec<String> =
            deadlocks.iter().flat_map(|line| screen::wrap(line, columns)).collect();
        let lines = picture(snapshot.as_ref(), &wrapped, &last, palette);
        if screen.draw(&lines)? == Reader::Gone {
            return Ok(());
        }
        let turn = tokio::select! {
            turn = keys.next() => turn,
            () = collect(&mut events, &mut last) => Turn::Draw,
            () = tokio::time::sleep(REDRAW_MAX) => Turn::Draw,
        };
        match turn {
            Turn::Draw => {}
            Turn::End => return Ok(()),
            Turn::Suspend => {
                drop(screen);
                crate::system::stop_group();
                screen = Screen::enter()?;
            }
        }
    }
}

/// Waits for an event, and takes all that follow within [`REDRAW_MIN`]: people see no more
/// pictures.
async fn collect(events: &mut Events, last: &mut VecDeque<String>) {
    let Some(mut received) = events.recv().await else { return std::future::pending().await };
    tokio::time::sleep(REDRAW_MIN).await;
    loop {
        last.push_front(line(&received, &time::now()));
        last.truncate(EVENTS_SHOWN);
        match events.try_recv() {
            Some(next) => received = next,
            None => return,
        }
    }
}

/// Returns the lines of the screen, with the reason if the snapshot is not known.
fn picture(
    now: Result<&Snapshot, &&str>,
    deadlocks: &[String],
    last: &VecDeque<String>,
    palette: Palette,
) -> Vec<String> {
    let (head, table) = match now {
        Ok(now) => {
            let (held, pending) = (now.held.len(), now.pending.len());
            let head = format!("{held} held, {pending} waiting   (Ctrl-C ends)");
            (palette.good(&head), table::lines(now, palette))
        }
        Err(why) => (palette.bad(&format!("{why}   (Ctrl-C ends)")), Vec::new()),
    };
    let mut lines = vec![head, String::new()];
    let queues = now.map(|now| queues::lines(now, palette)).unwrap_or_default();
    let part = |title: &str, part: Vec<String>| {
        let title = (!part.is_empty()).then(|| palette.bold(title));
        let end = title.is_some().then(String::new);
        title.into_iter().chain(part).chain(end).collect::<Vec<_>>()
    };
    lines.extend(part("DEADLOCKS", deadlocks.iter().map(|line| palette.bad(line)).collect()));
    lines.extend(part("QUEUES", queues));
    lines.extend(table);
    if !last.is_empty() {
        lines.extend([String::new(), palette.bold("LAST EVENTS")]);
        lines.extend(last.iter().cloned());
    }
    lines
}
