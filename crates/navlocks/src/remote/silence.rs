//! A service that is connected and says nothing.
//!
//! A service that hangs keeps its connections. While something waits for it, it is asked for a sign
//! of life after half of the time that it may be silent; anything that it says is one.

use super::entry::{Over, Stage};
use super::lease::Instant;
use super::session::{Session, State};
use crate::error::RequestErrorKind;
use navlocks_wire::ToService;

/// Pings for a sign of life. Those that renew a lease are numbered from 1.
const SIGN_OF_LIFE: u64 = 0;

/// Since when the service says nothing.
#[derive(Clone, Copy, Debug)]
pub(super) struct Silence {
    since: Instant,
    /// When it was asked for a sign of life.
    asked: Option<Instant>,
}

impl Session {
    /// Asks a silent service for a sign of life, and ends the wait of all who wait for it when none
    /// came. Returns when to look again.
    pub(super) fn check_silence(&self) -> Instant {
        let Some(limit) = self.options.answers_within else { return Instant::NEVER };
        let half = limit / 2;
        let Some(silence) = self.lock().silence else { return Instant::NEVER };
        let due = silence.asked.unwrap_or(silence.since).saturating_add(half);
        let now = Instant::now();
        if now < due {
            return due;
        }
        self.input(|state| {
            if !state.is_waited_for() {
                state.silence = None;
                return Instant::NEVER;
            }
            if silence.asked.is_some() {
                state.give_up_waiting();
                state.silence = None;
                return Instant::NEVER;
            }
            state.silence = Some(Silence { asked: Some(now), ..silence });
            state.say(&ToService::Ping(SIGN_OF_LIFE));
            now.saturating_add(half)
        })
    }
}

impl State {
    /// Something begins to wait for the service.
    pub(super) fn begin_silence(&mut self) {
        if self.silence.is_none() {
            self.silence = Some(Silence { since: Instant::now(), asked: None });
        }
    }

    /// The service said something.
    pub(super) fn break_silence(&mut self) {
        if let Some(silence) = &mut self.silence {
            *silence = Silence { since: Instant::now(), asked: None };
        }
    }

    fn is_waited_for(&self) -> bool {
        let pending = |entry: &super::entry::Entry| matches!(entry.stage, Stage::Pending);
        !self.asked.is_empty() || self.entries.values().any(pending)
    }

    /// Ends the wait of all. The service hears that they want nothing any more, should it go on.
    fn give_up_waiting(&mut self) {
        let mut given_up = Vec::new();
        for (&number, entry) in &mut self.entries {
            if let Stage::Pending = entry.stage {
                entry.end(Over::Failed(RequestErrorKind::Unreachable), &mut self.wakes);
                given_up.push(number);
            }
        }
        for asked in self.asked.values_mut() {
            asked.give_up(&mut self.wakes);
        }
        for number in given_up {
            self.say(&ToService::Abort(number));
        }
    }
}
