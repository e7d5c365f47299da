//! Counts of events, to show that random histories are worth their time.

use std::collections::{BTreeMap, BTreeSet};

use crate::history::Witness;
use crate::model::Scopes;
use crate::model::words::{
    Answer, Decided, Event, Input, LossCause, Mode, Refusal, RequestNo, State, Wait,
};

/// The kinds of events, by name.
pub const KINDS: [&str; 26] = [
    "granted at once",
    "granted later",
    "granted while asleep",
    "granted past a waiting writer",
    "several granted by one input",
    "unavailable",
    "released",
    "aborted by its client",
    "without effect",
    "downgraded",
    "granted beside a limit",
    "waits behind a limit",
    "lost: stolen",
    "lost: stolen by a reader",
    "lost: force-released",
    "lost: held too long",
    "lost: evicted",
    "lost: suspended",
    "aborted: stolen",
    "aborted: evicted",
    "client evicted",
    "deadlock",
    "deadlock of three clients",
    "refused: unknown client",
    "refused: suspended client",
    "refused: exclusive overtake",
];

/// The counts, over any number of histories.
#[derive(Debug, Default)]
pub struct Tally {
    counts: BTreeMap<&'static str, usize>,
}

impl Tally {
    /// Returns how often a kind of the [`KINDS`] happened.
    pub fn count(&self, kind: &str) -> usize {
        self.counts.get(kind).copied().unwrap_or(0)
    }

    /// Returns a witness that counts during one history.
    pub fn witness(&mut self) -> Counting<'_> {
        Counting {
            tally: self,
            waiting: BTreeSet::new(),
            readers: BTreeSet::new(),
            resuming: false,
            granted: 0,
            deadlocks: 0,
        }
    }

    fn add(&mut self, kind: &'static str) {
        assert!(KINDS.contains(&kind), "{kind:?} is not in the list");
        *self.counts.entry(kind).or_default() += 1;
    }
}

/// Counts during one history.
#[derive(Debug)]
pub struct Counting<'a> {
    tally: &'a mut Tally,
    waiting: BTreeSet<RequestNo>,
    readers: BTreeSet<RequestNo>,
    /// True if this operation resumes a client, so that events are old ones.
    resuming: bool,
    granted: usize,
    deadlocks: usize,
}

impl Counting<'_> {
    fn event(&mut self, event: &Event) {
        match event {
            Event::Granted { .. } if self.resuming => self.tally.add("granted while asleep"),
            Event::Granted { .. } => self.granted += 1,
            Event::Evicted { .. } => self.tally.add("client evicted"),
            Event::Lost { cause, .. } => {
                self.tally.add(match cause {
                    LossCause::Stolen { .. } => "lost: stolen",
                    LossCause::ForceReleased => "lost: force-released",
                    LossCause::HeldTooLong => "lost: held too long",
                    LossCause::Evicted => "lost: evicted",
                    LossCause::Suspended => "lost: suspended",
                });
                if matches!(cause, LossCause::Stolen { by } if self.readers.contains(by)) {
                    self.tally.add("lost: stolen by a reader");
                }
            }
            Event::Aborted { cause, .. } => self.tally.add(match cause {
                LossCause::Stolen { .. } => "aborted: stolen",
                LossCause::Evicted => "aborted: evicted",
                LossCause::ForceReleased | LossCause::HeldTooLong | LossCause::Suspended => {
                    panic!("a pending request stays: {event}")
                }
            }),
        }
    }
}

impl Witness for Counting<'_> {
    fn see(&mut self, input: &Input, answer: &Answer, model: &Scopes) -> Result<(), String> {
        match (input, answer) {
            (Input::Request { scope, mode, wait, .. }, &Answer::Made(request, decided)) => {
                if *mode == Mode::Shared {
                    self.readers.insert(request);
                }
                let limited = |info: &crate::model::words::Info| {
                    matches!(info.mode, Mode::Limited(_)) && !info.scope.is_disjoint(scope)
                };
                let meets_limit = model
                    .snapshot()
                    .held
                    .iter()
                    .any(|info| info.request != request && limited(info));
                match decided {
                    Decided::Granted { .. } if meets_limit => {
                        self.tally.add("granted beside a limit")
                    }
                    Decided::Pending if meets_limit => self.tally.add("waits behind a limit"),
                    _ => {}
                }
                match decided {
                    Decided::Pending => {
                        self.waiting.insert(request);
                    }
                    Decided::Granted { .. } => {
                        self.granted += 1;
                        self.tally.add("granted at once");
                        let passed = |info: &crate::model::words::Info| {
                            info.mode == Mode::Exclusive && !info.scope.is_disjoint(scope)
                        };
                        if *wait == Wait::Overtake && model.snapshot().pending.iter().any(passed) {
                            self.tally.add("granted past a waiting writer");
                        }
                    }
                    Decided::Unavailable => self.tally.add("unavailable"),
                }
            }
            (_, Answer::Refused(refusal)) => self.tally.add(match refusal {
                Refusal::UnknownClient => "refused: unknown client",
                Refusal::ClientSuspended => "refused: suspended client",
                Refusal::ExclusiveOvertake => "refused: exclusive overtake",
            }),
            (_, Answer::Event(Some(event))) => self.event(event),
            (_, Answer::Effect(false)) => self.tally.add("without effect"),
            (Input::Release(_), _) => self.tally.add("released"),
            (Input::Downgrade(..), _) => self.tally.add("downgraded"),
            (Input::Abort(_), _) => self.tally.add("aborted by its client"),
            (Input::Resume(_), _) => self.resuming = true,
            _ => {}
        }
        Ok(())
    }

    fn settle(&mut self, model: &Scopes) -> Result<(), String> {
        self.waiting.retain(|&request| match model.state(request) {
            Some(State::Pending) => true,
            Some(State::Held { .. }) => {
                self.tally.add("granted later");
                false
            }
            None => false,
        });
        if self.granted > 1 {
            self.tally.add("several granted by one input");
        }
        let deadlocks = model.deadlocks();
        if deadlocks.len() > self.deadlocks {
            self.tally.add("deadlock");
            if deadlocks.iter().any(|deadlock| deadlock.clients.len() > 2) {
                self.tally.add("deadlock of three clients");
            }
        }
        self.deadlocks = deadlocks.len();
        self.granted = 0;
        self.resuming = false;
        Ok(())
    }
}
