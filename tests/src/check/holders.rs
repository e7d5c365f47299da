//! Two holders at one moment.

use std::collections::BTreeMap;

use crate::check::interval::Interval;
use crate::check::lives::Lives;
use crate::check::violation::Violation;
use crate::record::Mode;

/// Returns pairs of locks that exclude each other and whose intervals overlap, and moments at which
/// a limit is exceeded.
pub(super) fn two_holders(lives: &Lives, intervals: &[Option<Interval>]) -> Vec<Violation> {
    // By pair, because two scopes may have several names in common.
    let mut found = BTreeMap::new();
    for (name, places) in &lives.by_name {
        let mut held: Vec<(Interval, usize)> = places
            .iter()
            .filter_map(|&place| intervals[place].map(|interval| (interval, place)))
            .collect();
        held.sort_by_key(|(interval, place)| (interval.from, *place));
        let mut earlier: Vec<(Interval, usize)> = Vec::new();
        for (interval, place) in held {
            earlier.retain(|(before, _)| interval.from < before.until);
            for &(before, other) in &earlier {
                let (first, second) = (&lives.all[other], &lives.all[place]);
                if let (Some(name), Some(both)) = (first.conflict(second), before.overlap(interval))
                {
                    found.insert(
                        (both.from, other, place),
                        Violation::TwoHolders {
                            name: name.clone(),
                            first: first.key.clone(),
                            second: second.key.clone(),
                            from: both.from,
                            until: both.until,
                        },
                    );
                }
            }
            earlier.push((interval, place));
            let limits = earlier.iter().filter_map(|&(_, place)| match lives.all[place].mode {
                Mode::Limited(limit) => Some(limit),
                Mode::Exclusive | Mode::Shared => None,
            });
            if let Some(limit) = limits.min().filter(|&limit| earlier.len() > limit as usize) {
                let (name, last) = (name.clone(), lives.all[place].key.clone());
                let (holders, at) = (earlier.len(), interval.from);
                found.insert(
                    (at, place, place),
                    Violation::TooManyHolders { name, last, holders, limit, at },
                );
            }
        }
    }
    found.into_values().collect()
}
