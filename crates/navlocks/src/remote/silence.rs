//! A connected service that sends nothing.
//!
//! A service that hangs keeps its connections. While a request waits for it, the client sends a
//! ping after half of the allowed silence; every message breaks the silence.

use super::entry::{Over, Stage};
use super::lease::Instant;
use super::session::{Session, State};
use crate::error::RequestErrorKind;
use navlocks_wire::ToService;

/// The number of pings against silence. Those that renew a lease are numbered from 1.
const SIGN_OF_LIFE: u64 = 0;

/// The silence of a service.
#[derive(Clone, Copy, Debug)]
pub(super) struct Silence {
    since: Instant,
    /// When the client sent a ping.
    asked: Option<Instant>,
}

impl Session {
    /// Sends a ping to a silent service, and ends all waits for it when no answer came. Returns
    /// when to check again.
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
    /// Notes that a request begins to wait for the service.
    pub(super) fn begin_silence(&mut self) {
        if self.silence.is_none() {
            self.silence = Some(Silence { since: Instant::now(), asked: None });
        }
    }

    /// Notes a message of the service.
    pub(super) fn break_silence(&mut self) {
        if let Some(silence) = &mut self.silence {
            *silence = Silence { since: Instant::now(), asked: None };
        }
    }

    fn is_waited_for(&self) -> bool {
        let pending = |entry: &super::entry::Entry| matches!(entry.stage, Stage::Pending);
        !self.asked.is_empty() || self.entries.values().any(pending)
    }

    /// Ends all waits. If the service continues, it receives that the client wants nothing of it
    /// any more.
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
