//! The line about the holder and the queue while a command waits.

use std::convert::Infallible;
use std::time::Duration;

use navlocks::{Locks, Mode, Place, QueryError, RequestInfo, Scope};
use tokio::time::{sleep, timeout};

use crate::command::services::recovery;
use crate::command::{say, short};
use crate::printer::{self, Harmless};

/// The time before the first line, and between two updates.
const PAUSE: Duration = Duration::from_secs(1);

/// The time between two questions to the service where a line is printed once.
const PAUSE_ONCE_TOLD: Duration = Duration::from_secs(10);

/// A wait with a line: on a terminal it is updated, elsewhere it is printed once.
#[derive(Debug)]
pub(crate) struct Waiting<'a> {
    locks: &'a Locks,
    scope: &'a Scope,
    mode: Mode,
    live: bool,
    /// True if a line is on the terminal.
    shown: bool,
}

/// A kind of line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum News {
    Queue,
    Away,
    Withheld,
}

impl<'a> Waiting<'a> {
    pub(crate) fn new(locks: &'a Locks, scope: &'a Scope, mode: Mode, live: bool) -> Self {
        Self { locks, scope, mode, live, shown: false }
    }

    /// Prints lines until the future is dropped.
    pub(crate) async fn tell(&mut self) -> Infallible {
        let mut told = None;
        loop {
            sleep(PAUSE).await;
            let Ok(answer) = timeout(PAUSE, self.sentence()).await else {
                let text =
                    format!("waiting for '{}': the service does not answer", short(self.scope));
                self.say(&text, &mut told, News::Away);
                continue;
            };
            if let Some((text, news)) = answer {
                self.say(&text, &mut told, news);
                // Without a terminal the line is printed once; later questions test the service.
                if !self.live && news == News::Queue {
                    sleep(PAUSE_ONCE_TOLD).await;
                }
            }
        }
    }

    /// Prints a line. Without a terminal each kind is printed once.
    fn say(&mut self, text: &str, told: &mut Option<News>, news: News) {
        if self.live {
            self.shown = true;
            printer::tell_raw(&format!("\r\x1b[Knavlocks: {}", fitting(text)));
        } else if told.replace(news) != Some(news) {
            printer::tell(text);
        }
    }

    /// Returns the holder and the place in the queue, or the reason of a service that grants
    /// nothing. Returns none while the service is away or the request on its way.
    async fn sentence(&self) -> Option<(String, News)> {
        let place = match self.locks.place().await {
            Err(QueryError::Refused(reason)) => {
                let text = format!("waiting for '{}': {reason}", short(self.scope));
                return Some((text, News::Withheld));
            }
            place => place.ok()?,
        };
        if !place.as_ref().is_some_and(|place| place.holders > 0 || place.before > 0)
            && let Some(first) = self.locks.unclaimed_sessions().await.ok()?.first()
        {
            let text =
                format!("waiting for '{}': {}", short(self.scope), recovery::sentence(first));
            return Some((text, News::Withheld));
        }
        let place = place?;
        Some((sentence(self.scope, self.mode, &place), News::Queue))
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if self.shown {
            printer::tell_raw("\r\x1b[K");
        }
    }
}

/// Returns the line: the holder, since when, and the requests before this one.
fn sentence(scope: &Scope, mode: Mode, place: &Place) -> String {
    let mut text = format!("waiting for '{}'", short(scope));
    if let Some(first) = place.held.first() {
        text.push_str(", held by ");
        text.push_str(&who(first));
        match place.holders.saturating_sub(1) {
            0 => {}
            1 => text.push_str(" and another"),
            more => text.push_str(&format!(" and {more} others")),
        }
        text.push_str(&format!(" for {}{}", say(first.age), allowed(mode)));
    }
    match place.before {
        0 => text.push_str("; next in the queue"),
        1 => text.push_str("; one waits before this"),
        more => text.push_str(&format!("; {more} wait before this")),
    }
    text
}

/// Returns the limit of a request that waits, for the end of a sentence.
pub(crate) fn allowed(mode: Mode) -> String {
    match mode {
        Mode::Limited(limit) => format!("; this request allows {limit} at a time"),
        Mode::Exclusive | Mode::Shared => String::new(),
    }
}

/// Returns a holder in words.
pub(crate) fn who(info: &RequestInfo) -> String {
    let name = match &info.tag {
        Some(tag) if !tag.is_empty() => Harmless(tag).to_string(),
        _ => info.client.to_string(),
    };
    match (info.pid, &info.process) {
        (Some(pid), _) if info.stopped => format!("{name} (pid {pid}, stopped)"),
        (Some(pid), _) => format!("{name} (pid {pid})"),
        (None, Some(process)) => format!("{name} ({process})"),
        (None, None) => name,
    }
}

/// Cuts text to the width of the terminal: a line that wraps cannot be erased.
fn fitting(text: &str) -> String {
    let columns = rustix::termios::tcgetwinsize(std::io::stderr()).map_or(0, |size| size.ws_col);
    let room = match usize::from(columns) {
        0 => 80,
        columns => columns,
    };
    text.chars().take(room.saturating_sub("navlocks: ".len() + 1)).collect()
}
