//! The time in which a client surely took its lock for held, and surely was entitled to.
//!
//! Three readings of the clock bound it. The first is after the client received the grant, so the
//! lock was granted by then. The last is before the client checked for a loss and found none. A
//! client that never checked again has no interval.
//!
//! A victim learns of a steal late, and no client waits for it: that is the meaning of a steal. So
//! the interval ends no later than the earliest *request* that may have stolen the lock: every
//! steal with a name in common, unless it was answered before this lock was requested, or was
//! granted an earlier token. (A token that the history shows to be wrong proves nothing.) A steal
//! whose client was killed or gave up before the grant counts until the service must have noticed.
//!
//! Nothing else cuts an interval: no lapsed lease, no stopped process, no restarted service. A
//! client that takes its lock for held then, while another client holds it, is the violation that
//! this finds.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crate::check::life::Life;
use crate::check::lives::Lives;
use crate::record::Moment;

/// An interval with a length: equal clock readings do not show which came first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Interval {
    pub(super) from: Moment,
    pub(super) until: Moment,
}

impl Interval {
    /// Returns the common part of both, if it has a length.
    pub(super) fn overlap(self, other: Self) -> Option<Self> {
        let (from, until) = (self.from.max(other.from), self.until.min(other.until));
        (from < until).then_some(Self { from, until })
    }
}

/// Returns the interval of each life that has one, by its index.
pub(super) fn intervals(lives: &Lives, wrong_tokens: &HashSet<usize>) -> Vec<Option<Interval>> {
    let robberies = Robberies::of(lives, wrong_tokens);
    let interval = |(place, life): (usize, &Life)| {
        let from = life.held.as_ref()?.at;
        // Only for a program that outlives the client of its lock, such as the child of a command.
        let killing = lives.fate(&life.key.who).killing.unwrap_or(Moment::NEVER);
        let until = life.believed?.min(killing);
        let token = trusted_token(place, life, wrong_tokens);
        let until = robberies.earliest(place, life, token, until).unwrap_or(until);
        (from < until).then_some(Interval { from, until })
    };
    lives.all.iter().enumerate().map(interval).collect()
}

pub(super) fn trusted_token(place: usize, life: &Life, wrong: &HashSet<usize>) -> Option<u64> {
    life.held.as_ref().map(|held| held.token).filter(|_| !wrong.contains(&place))
}

/// All requests that may have taken a lock away.
#[derive(Default)]
pub(super) struct Robberies {
    /// The robberies by name; each list in order of request.
    by_name: HashMap<Arc<str>, Vec<Robbery>>,
}

struct Robbery {
    by: usize,
    asked: Moment,
    /// It has happened by then, if ever.
    done: Moment,
    /// All earlier ones of the list have happened by then, too.
    all_done: Moment,
    token: Option<u64>,
}

impl Robberies {
    pub(super) fn of(lives: &Lives, wrong_tokens: &HashSet<usize>) -> Self {
        let mut robberies = Self::default();
        for (by, life) in lives.all.iter().enumerate().filter(|(_, life)| life.robs()) {
            let done = life.done.or_else(|| lives.spent(life)).unwrap_or(Moment::NEVER);
            let token = trusted_token(by, life, wrong_tokens);
            for name in &life.names {
                let list = robberies.by_name.entry(name.clone()).or_default();
                list.push(Robbery { by, asked: life.asked, done, all_done: done, token });
            }
        }
        for list in robberies.by_name.values_mut() {
            list.sort_by_key(|robbery| robbery.asked);
            let mut all_done = Moment::START;
            for robbery in list {
                all_done = all_done.max(robbery.done);
                robbery.all_done = all_done;
            }
        }
        robberies
    }

    /// Returns when the first request that may have stolen this lock before `until` was made.
    pub(super) fn earliest(
        &self,
        place: usize,
        life: &Life,
        token: Option<u64>,
        until: Moment,
    ) -> Option<Moment> {
        let lists = life.names.iter().filter_map(|name| self.by_name.get(name));
        lists
            .filter_map(|list| in_time(list, place, life, token, until).next())
            .map(|it| it.asked)
            .min()
    }

    /// Returns all requests that may have stolen this lock before `until`.
    pub(super) fn possible(
        &self,
        place: usize,
        life: &Life,
        token: Option<u64>,
        until: Moment,
    ) -> Vec<usize> {
        let lists = life.names.iter().filter_map(|name| self.by_name.get(name));
        let robbers = lists.flat_map(|list| in_time(list, place, life, token, until));
        let mut robbers: Vec<usize> = robbers.map(|robbery| robbery.by).collect();
        robbers.sort_unstable();
        robbers.dedup();
        robbers
    }
}

/// Returns those of a list of robberies that may have stolen a lock before `until`.
fn in_time<'r>(
    list: &'r [Robbery],
    place: usize,
    life: &'r Life,
    token: Option<u64>,
    until: Moment,
) -> impl Iterator<Item = &'r Robbery> {
    let first = list.partition_point(|robbery| robbery.all_done < life.asked);
    // A client that robs itself knows its loss in the moment of the request.
    let in_time = list[first..].iter().take_while(move |robbery| robbery.asked <= until);
    in_time.filter(move |robbery| {
        let before = robbery.done < life.asked
            || robbery.token.zip(token).is_some_and(|(theirs, ours)| theirs < ours);
        robbery.by != place && !before
    })
}
