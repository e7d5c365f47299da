//! The waits for a connected service that sends nothing.

use super::clock;
use super::entry::Over;
use super::session::{Session, State};
use crate::error::RequestErrorKind;
use navlocks_client::{Due, Moment, SIGN_OF_LIFE, Stage};
use navlocks_wire::ToService;

impl Session {
    /// Sends a ping to a silent service, and ends all waits for it when no answer came. Returns
    /// when to check again.
    pub(super) fn check_silence(&self) -> Moment {
        let due = self.lock().keepalive.deadline();
        if !clock::has_come(due) {
            return due;
        }
        self.input(|state| {
            if !state.is_waited_for() {
                state.keepalive.stop();
            }
            match state.keepalive.elapsed(clock::now()) {
                Some(Due::Ping) => state.say(&ToService::Ping(SIGN_OF_LIFE)),
                Some(Due::GiveUp) => state.give_up_waiting(),
                None => {}
            }
            state.keepalive.deadline()
        })
    }
}

impl State {
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
