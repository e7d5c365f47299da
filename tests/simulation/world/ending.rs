//! The end of a world: clients ask for each name once more, all leave, and nothing may be left.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use navlocks_server::hub::Contents;
use navlocks_tests::check::{Violation, check};
use navlocks_tests::record::{History, Line, What};

use super::{Phase, World};
use crate::client::{Client, HOLD_SLACK, Traits};
use crate::errands::{Errand, Errands};
use crate::events::Event;
use crate::tally::Tally;

/// More connections of one client in a calm world are a loop.
const DIALS_MAX: u64 = 12;

/// The outcome of a plan.
pub(crate) struct Played {
    pub(crate) history: History,
    pub(crate) findings: Vec<Finding>,
    /// The faults that happened, by their names.
    pub(crate) faults: BTreeMap<String, u64>,
    pub(crate) tally: Tally,
}

/// An event that a correct service and a correct client cannot cause.
#[derive(Clone, Debug)]
pub(crate) enum Finding {
    Violation(Violation),
    /// A client connects again and again although nothing is disturbed.
    Loop(String),
    /// A lock is held beyond its maximum.
    HeldTooLong(String),
    /// A service keeps something of clients that have left.
    Kept(String),
    /// A peer that has proven nothing has changed something.
    Stranger(String),
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Violation(violation) => violation.fmt(f),
            Self::Loop(text)
            | Self::HeldTooLong(text)
            | Self::Kept(text)
            | Self::Stranger(text) => f.write_str(text),
        }
    }
}

impl World {
    pub(super) fn patience(&self) -> u64 {
        10 * self.plan.lease
    }

    /// Goes on to the next phase when one is over. Returns true after the last one.
    pub(super) fn is_over(&mut self) -> bool {
        if self.faults_left > 0 || self.is_out {
            return false;
        }
        if self.now <= self.disturbed + self.plan.lease {
            self.dials = None;
        } else if self.dials.is_none() {
            self.dials = Some(self.clients.iter().map(|client| client.tally.dials).collect());
        }
        let is_done = |client: &Client| !client.alive || (client.is_done() && !client.stopped);
        let are_done = self.clients.iter().all(is_done);
        let waited = self.now > self.disturbed.max(self.phase.1) + 2 * self.patience();
        match self.phase.0 {
            Phase::Play | Phase::Probe if !are_done && !waited => false,
            Phase::Play | Phase::Probe if waited || !self.plan.checks => true,
            Phase::Play => {
                self.dies_after = None;
                self.phase = (Phase::Probe, self.now);
                self.probe();
                false
            }
            Phase::Probe => {
                self.phase = (Phase::Leave, self.now);
                for client in 0..self.clients.len() {
                    if self.clients[client].alive {
                        let acts = self.clients[client].leave(self.now);
                        self.act(client, acts);
                        let at = self.now + self.plan.lease / 4;
                        self.events.put(at, Event::Buried(client));
                    }
                }
                false
            }
            Phase::Leave => self.now > self.phase.1 + 3 * self.plan.lease,
        }
    }

    /// Lets a client in each partition ask for every name: no lock stays for ever.
    fn probe(&mut self) {
        let mut partitions: Vec<Traits> = self.plan.clients.clone();
        partitions.sort_by(|one, other| one.partition.cmp(&other.partition));
        partitions.dedup_by(|one, other| one.partition == other.partition);
        for (number, traits) in partitions.into_iter().enumerate() {
            let errand = |name| Errand { looks: 0, ..Errand::new(self.now, name, 0) };
            let tasks = ["a", "b", "c"].map(|name| Errands::script([errand(name)])).to_vec();
            self.start_client(Traits { name: format!("probe{number}"), tasks, ..traits });
        }
    }

    pub(super) fn end(mut self) -> Played {
        if let Some(dials) = &self.dials {
            for (client, before) in self.clients.iter().zip(dials) {
                let again = client.tally.dials - before;
                if again > DIALS_MAX {
                    let text = format!("{} connects {again} times in a calm world", client.who);
                    self.findings.push(Finding::Loop(text));
                }
            }
        }
        if self.phase.0 == Phase::Leave {
            self.look_at_leftovers();
        }
        self.now += self.patience();
        let patience = Duration::from_nanos(self.patience());
        let endurance = if self.plan.outlasts_all { u64::MAX } else { self.plan.endurance };
        let endurance = Duration::from_nanos(endurance);
        self.write(What::Over { patience, endurance });
        let mut tally = Tally {
            messages: self.messages,
            transactions: self.services.etcd.transactions,
            operations: self.services.etcd.operations,
            ..Tally::default()
        };
        self.clients.iter().for_each(|client| tally += client.tally);
        self.look_at_deadlines();
        let too_long = self.clients.iter().filter_map(|it| it.held_too_long.clone());
        self.findings.extend(too_long.map(Finding::HeldTooLong));
        // Tokens of two partitions are not comparable: they may be in two slots.
        let mut partitions: BTreeMap<String, Vec<Line>> = BTreeMap::new();
        for client in self.clients {
            partitions.entry(client.traits.partition).or_default().extend(client.lines);
        }
        let mut violations = Vec::new();
        let mut history = History { lines: self.lines.clone() };
        for lines in partitions.into_values() {
            history.lines.extend(lines.iter().cloned());
            let of_one = lines.into_iter().chain(self.lines.iter().cloned());
            violations.extend(check(&History { lines: of_one.collect() }));
        }
        let violations = violations.into_iter().map(Finding::Violation);
        Played {
            findings: violations.chain(self.findings).collect(),
            history,
            faults: self.faults,
            tally,
        }
    }

    /// Finds waiters that were granted long after the maximum hold of the lock before them.
    fn look_at_deadlines(&mut self) {
        for holder in &self.clients {
            for (name, until) in &holder.deadlines {
                let is_late = |(of, asked, granted): &&(Arc<str>, u64, u64)| {
                    of == name && asked < until && *granted > until + HOLD_SLACK
                };
                let late = self.clients.iter().find_map(|it| it.grants.iter().find(is_late));
                let text = late.map(|(_, _, granted)| {
                    let who = &holder.who;
                    format!("{name}: {who} held it until {granted} and not until {until}")
                });
                self.findings.extend(text.map(Finding::HeldTooLong));
            }
        }
    }

    /// Finds what services, tables and etcd keep after all clients have left.
    fn look_at_leftovers(&mut self) {
        if !self.services.is_cluster() {
            let mut kept = self.services.contents();
            self.services.kill(0);
            self.services.start(0, self.now);
            kept.extend(self.services.contents());
            kept.retain(|contents| *contents != Contents::default());
            self.findings.extend(kept.iter().map(|it| Finding::Kept(format!("kept: {it:?}"))));
            return;
        }
        let mut kept = self.services.contents();
        kept.retain(|contents| *contents != Contents::default());
        self.findings.extend(kept.iter().map(|it| Finding::Kept(format!("kept: {it:?}"))));
        for (slot, keys) in self.services.etcd.slots.iter().enumerate() {
            if !keys.sessions.is_empty() || !keys.taken.is_empty() {
                let text = format!("etcd keeps in slot {slot}: {keys:?}");
                self.findings.push(Finding::Kept(text));
            }
        }
    }
}
