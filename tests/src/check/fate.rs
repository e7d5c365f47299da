//! The acts of the conductor on a process.

use std::time::Duration;

use crate::record::{Deed, Moment};

/// The kills and stops of one process, the service included.
#[derive(Clone, Debug, Default)]
pub(super) struct Fate {
    /// It was alive until here, if it was killed.
    pub(super) killing: Option<Moment>,
    /// The times of its kills; a service may have several.
    kills: Vec<Moment>,
    /// It was gone from here on.
    pub(super) gone: Option<Moment>,
    /// When it was surely absent: stopped, or being killed and restarted. The last may have no end.
    pub(super) absences: Vec<(Moment, Moment)>,
}

impl Fate {
    pub(super) fn suffer(&mut self, at: Moment, deed: Deed) {
        match deed {
            Deed::Started => {}
            Deed::Killing => {
                self.killing = Some(at);
                self.kills.push(at);
                self.leave(at);
            }
            Deed::Stopping => self.leave(at),
            Deed::Continued | Deed::Answered => self.come_back(at),
            Deed::Killed | Deed::Finished | Deed::Failed => self.gone = Some(at),
        }
    }

    fn leave(&mut self, at: Moment) {
        // A process killed while it is stopped has one absence.
        if self.present() {
            self.absences.push((at, Moment::NEVER));
        }
    }

    fn come_back(&mut self, at: Moment) {
        if let Some((_, until)) = self.absences.last_mut() {
            *until = (*until).min(at);
        }
    }

    /// Returns true if it is present in the end, as far as the conductor knows.
    pub(super) fn present(&self) -> bool {
        self.absences.last().is_none_or(|(_, until)| *until != Moment::NEVER)
    }

    /// Returns since when it was not disturbed.
    pub(super) fn undisturbed_since(&self) -> Moment {
        self.absences.last().map_or(Moment::START, |(_, until)| *until)
    }

    /// Returns how long it was absent, in all absences that overlap the time between two moments.
    pub(super) fn absent(&self, from: Moment, until: Moment) -> Duration {
        let touching = self.absences.iter().filter(|(left, back)| from <= *back && *left <= until);
        touching.map(|(left, back)| Duration::from_nanos(back.0 - left.0)).sum()
    }

    /// Returns true if it was killed between two moments.
    pub(super) fn was_killed(&self, from: Moment, until: Moment) -> bool {
        self.kills.iter().any(|kill| from < *kill && *kill < until)
    }
}
