//! Grants out of turn.
//!
//! First come, first served is checked where the record shows the order. A request came first when
//! its client had seen it pending before another was requested. It went second when the other was
//! held, and it was seen pending or was granted after that. (If it was granted before the other and
//! received late, both held at once, which is no better.)
//!
//! A request keeps its place in the queue while the service gives it the same id, also over a
//! restart; a client that lost its session requests again under another id. Steals, requests that
//! may overtake, and requests that do not exclude each other are not compared.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use crate::check::interval::Interval;
use crate::check::lives::Lives;
use crate::check::violation::Violation;
use crate::record::{Moment, Wait};

/// A time in which a request was surely pending, at the same place.
struct Queued {
    place: usize,
    from: Moment,
    until: Moment,
}

/// Returns the requests that were granted while an earlier one waited.
pub(super) fn out_of_turn(lives: &Lives, intervals: &[Option<Interval>]) -> Vec<Violation> {
    let turns = turns(lives);
    let mut found = BTreeMap::new();
    for queued in waits(lives, intervals) {
        for (held, overtaker) in meanwhile(&turns, lives, &queued) {
            let (waiting, first) = (&lives.all[queued.place], &lives.all[overtaker]);
            if let Some(name) = waiting.conflict(first).filter(|_| queued.from < first.asked) {
                found.insert(
                    (held, overtaker, queued.place),
                    Violation::OutOfTurn {
                        name: name.clone(),
                        waiting: waiting.key.clone(),
                        queued: queued.from,
                        overtaker: first.key.clone(),
                        held,
                    },
                );
            }
        }
    }
    found.into_values().collect()
}

/// Returns how many pairs were compared: requests that were granted, if only in turn, while another
/// was known to wait for the same name.
pub(super) fn comparisons(lives: &Lives, intervals: &[Option<Interval>]) -> usize {
    let turns = turns(lives);
    waits(lives, intervals).map(|queued| meanwhile(&turns, lives, &queued).count()).sum()
}

fn waits(lives: &Lives, intervals: &[Option<Interval>]) -> impl Iterator<Item = Queued> {
    lives.all.iter().zip(intervals).enumerate().filter_map(|(place, (life, interval))| {
        let seen = life.seen.first()?;
        let again = life.seen.iter().filter(|again| again.id == seen.id).map(|again| again.since);
        let told = life.held.as_ref().filter(|held| interval.is_some() && held.id == seen.id);
        let until = again.chain(told.map(|held| held.at)).max()?;
        Some(Queued { place, from: seen.until, until })
    })
}

/// Returns the requests of each name that have to come in turn and were held, with their times.
fn turns(lives: &Lives) -> HashMap<Arc<str>, Vec<(Moment, usize)>> {
    let in_turn = |&place: &usize| {
        let life = &lives.all[place];
        let bound = matches!(life.wait, Wait::Queue | Wait::AtMost(_) | Wait::IfAvailable);
        life.held.as_ref().filter(|_| bound).map(|held| (held.at, place))
    };
    let sorted = |places: &Vec<usize>| {
        let mut turns: Vec<_> = places.iter().filter_map(in_turn).collect();
        turns.sort_unstable();
        turns
    };
    lives.by_name.iter().map(|(name, places)| (name.clone(), sorted(places))).collect()
}

/// Returns the requests that were held on one of its names before the wait was over.
fn meanwhile<'a>(
    turns: &'a HashMap<Arc<str>, Vec<(Moment, usize)>>,
    lives: &'a Lives,
    queued: &'a Queued,
) -> impl Iterator<Item = (Moment, usize)> {
    let lists = lives.all[queued.place].names.iter().filter_map(|name| turns.get(name));
    lists.flat_map(|list| {
        let from = list.partition_point(|(held, _)| *held <= queued.from);
        let until = list.partition_point(|(held, _)| *held < queued.until);
        list[from..until.max(from)].iter().copied()
    })
}
