//! Two holders at one moment.

use std::collections::BTreeMap;

use crate::check::interval::Interval;
use crate::check::lives::Lives;
use crate::check::violation::Violation;

/// Returns pairs of locks that exclude each other and whose intervals overlap.
pub(super) fn two_holders(lives: &Lives, intervals: &[Option<Interval>]) -> Vec<Violation> {
    // By pair, because two scopes may have several names in common.
    let mut found = BTreeMap::new();
    for places in lives.by_name.values() {
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
        }
    }
    found.into_values().collect()
}
