//! Saying for whom a command waits.

use std::convert::Infallible;
use std::time::Duration;

use navlocks::{LockInfo, Locks, Place, QueryError, Scope};
use tokio::time::{sleep, timeout};

use crate::command::{recovery, say};
use crate::printer::{self, Harmless};

/// How long a wait goes unmentioned, and how often what is said is brought up to date.
const PAUSE: Duration = Duration::from_secs(1);

/// How often the service is asked once the wait is told, where what is said does not change.
const PAUSE_ONCE_TOLD: Duration = Duration::from_secs(10);

/// A wait that is told about: on a terminal with a line that changes, elsewhere once.
#[derive(Debug)]
pub(crate) struct Waiting<'a> {
    locks: &'a Locks,
    scope: &'a Scope,
    live: bool,
    /// A line stands on the terminal.
    shown: bool,
}

/// What kind of thing there is to say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum News {
    Queue,
    Away,
    Withheld,
}

impl<'a> Waiting<'a> {
    pub(crate) fn new(locks: &'a Locks, scope: &'a Scope, live: bool) -> Self {
        Self { locks, scope, live, shown: false }
    }

    /// Says what there is to say, until it is dropped.
    pub(crate) async fn tell(&mut self) -> Infallible {
        let mut told = None;
        loop {
            sleep(PAUSE).await;
            let Ok(answer) = timeout(PAUSE, self.sentence()).await else {
                let text = format!("waiting for '{}': the service does not answer", self.scope);
                self.say(&text, &mut told, News::Away);
                continue;
            };
            if let Some((text, news)) = answer {
                self.say(&text, &mut told, news);
                // A line that does not change is shown once; later questions only find out whether
                // the service answers.
                if !self.live && news == News::Queue {
                    sleep(PAUSE_ONCE_TOLD).await;
                }
            }
        }
    }

    /// Shows a line. Where it cannot change, the same news is told only once.
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
                let text = format!("waiting for '{}': {reason}", self.scope);
                return Some((text, News::Withheld));
            }
            place => place.ok()?,
        };
        if !place.as_ref().is_some_and(|place| place.holders > 0 || place.before > 0)
            && let Some(first) = self.locks.recovery().await.ok()?.first()
        {
            let text = format!("waiting for '{}': {}", self.scope, recovery::sentence(first));
            return Some((text, News::Withheld));
        }
        let place = place?;
        let outer = std::env::var("NAVLOCKS_FENCING_TOKEN").ok();
        Some((sentence(self.scope, &place, outer.as_deref()), News::Queue))
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if self.shown {
            printer::tell_raw("\r\x1b[K");
        }
    }
}

/// One line: who holds, for how long, and how many are before us. `outer` is the token of the lock under which we run ourselves.
fn sentence(scope: &Scope, place: &Place, outer: Option<&str>) -> String {
    let mut text = format!("waiting for '{scope}'");
    if let Some(first) = place.held.first() {
        text.push_str(", held by ");
        text.push_str(&who(first));
        match place.holders.saturating_sub(1) {
            0 => {}
            1 => text.push_str(" and another"),
            more => text.push_str(&format!(" and {more} others")),
        }
        text.push_str(&format!(" for {}", say(first.age)));
    }
    match place.before {
        0 => text.push_str("; next in the queue"),
        1 => text.push_str("; one waits before this"),
        more => text.push_str(&format!("; {more} wait before this")),
    }
    let is_outer = |info: &LockInfo| info.token.map(|token| token.to_string()).as_deref() == outer;
    if outer.is_some() && place.held.iter().any(is_outer) {
        text.push_str("; this command runs under that very lock, so it waits for ever");
    }
    text
}

/// A holder as people know it.
pub(crate) fn who(info: &LockInfo) -> String {
    let name = match &info.tag {
        Some(tag) if !tag.is_empty() => Harmless(tag).to_string(),
        _ => info.client.to_string(),
    };
    match info.pid {
        Some(pid) => format!("{name} (pid {pid})"),
        None => name,
    }
}

/// As much as goes on one line of the terminal, because a line that wraps cannot be taken back.
fn fitting(text: &str) -> String {
    let columns = rustix::termios::tcgetwinsize(std::io::stderr()).map_or(0, |size| size.ws_col);
    let room = match usize::from(columns) {
        0 => 80,
        columns => columns,
    };
    text.chars().take(room.saturating_sub("navlocks: ".len() + 1)).collect()
}
