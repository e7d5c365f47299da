//! All lives of a history, and the fates of their processes.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use crate::check::fate::Fate;
use crate::check::life::Life;
use crate::check::violation::{Key, Violation};
use crate::record::{History, Moment, SERVICE, Step, What, Who};

/// A history, sorted by requests, processes and names.
#[derive(Debug, Default)]
pub(super) struct Lives {
    /// The lives in the order of the history. Others refer to a life by its index here.
    pub(super) all: Vec<Life>,
    /// The requests for each name.
    pub(super) by_name: HashMap<Arc<str>, Vec<usize>>,
    fates: HashMap<Who, Fate>,
    /// The end of the history, and the patience of the conductor.
    pub(super) end: Option<(Moment, Duration)>,
    /// How long an absence a lock outlasts.
    pub(super) endurance: Duration,
    /// Records that contradict themselves.
    pub(super) nonsense: Vec<Violation>,
    unscathed: Fate,
}

impl Lives {
    pub(super) fn of(history: &History) -> Self {
        let mut lives = Self::default();
        let mut places = HashMap::new();
        for line in &history.lines {
            match &line.what {
                What::Request(number, step) => {
                    let key = Key { who: line.who.clone(), number: *number };
                    lives.step(&mut places, key, line.at, step);
                }
                What::Deed(whom, deed) => {
                    lives.fates.entry(whom.clone()).or_default().suffer(line.at, *deed);
                }
                What::Over { patience, endurance } => {
                    lives.end = Some((line.at, *patience));
                    lives.endurance = *endurance;
                }
            }
        }
        for (place, life) in lives.all.iter().enumerate() {
            for name in &life.names {
                lives.by_name.entry(name.clone()).or_default().push(place);
            }
        }
        lives
    }

    fn step(&mut self, places: &mut HashMap<Key, usize>, key: Key, at: Moment, step: &Step) {
        match (places.get(&key), step) {
            (Some(&place), step) => self.nonsense.extend(self.all[place].step(at, step).err()),
            (None, Step::Asked { names, mode, wait }) => {
                places.insert(key.clone(), self.all.len());
                self.all.push(Life::new(key, at, names.clone(), *mode, *wait));
            }
            (None, _) => {
                let what = "is told something and was never asked";
                self.nonsense.push(Violation::Nonsense { request: key, what });
            }
        }
    }

    pub(super) fn fate(&self, who: &Who) -> &Fate {
        self.fates.get(who).unwrap_or(&self.unscathed)
    }

    /// Returns the fate of the service, which is empty if it was never mentioned.
    pub(super) fn service(&self) -> &Fate {
        self.fate(&Who::from(SERVICE))
    }

    /// Returns how long an effect may take; for ever, if the conductor did not record it.
    pub(super) fn patience(&self) -> Duration {
        self.end.map_or(Duration::MAX, |(_, patience)| patience)
    }

    /// Returns from when on the request surely has no effect: its client knows that it is over or
    /// is gone, and the service had the time to notice.
    pub(super) fn spent(&self, life: &Life) -> Option<Moment> {
        let fate = self.fate(&life.key.who);
        let gone = fate.gone.into_iter().chain(life.over).min()?;
        Some(gone.after(self.patience()))
    }
}
