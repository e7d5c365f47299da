//! Locks that were lost although their clients lived.
//!
//! A session outlives its connections, and on one machine also its service. So a client loses a
//! lock by a steal or a forced release, or by being cut off for longer than its lease. A steal may
//! be the cause if it has a name in common and was requested before the loss. The client was cut
//! off when it or the service was absent: the conductor knows the lease, and records how long an
//! absence a lock outlasts. An absence shortly before the grant counts as well, because a lease
//! that is renewed late begins early.
//!
//! One steal or forced release takes what is held at one moment, so it cannot explain the losses of
//! two locks that exclude each other.

use std::collections::{HashMap, HashSet};

use crate::check::interval::{Robberies, trusted_token};
use crate::check::lives::Lives;
use crate::check::violation::Violation;
use crate::record::Moment;

/// Returns the losses without an explanation.
pub(super) fn lost_locks(lives: &Lives, wrong_tokens: &HashSet<usize>) -> Vec<Violation> {
    let endurance = lives.endurance;
    if endurance.is_zero() {
        return Vec::new();
    }
    let robberies = Robberies::of(lives, wrong_tokens);
    let mut victims: HashMap<usize, Vec<usize>> = HashMap::new();
    let mut violations = Vec::new();
    for (place, life) in lives.all.iter().enumerate() {
        let (Some(why), Some(at)) = (life.lost.clone(), life.over) else { continue };
        let token = trusted_token(place, life, wrong_tokens);
        let from = Moment(life.asked.0.saturating_sub(Moment::START.after(endurance).0));
        let fate = lives.fate(&life.key.who);
        let absent = fate.absent(from, at).saturating_add(lives.service().absent(from, at));
        if absent >= endurance {
            continue;
        }
        let possible = robberies.possible(place, life, token, at);
        // A client that releases behind its own steal knows of no loss, and predicts it.
        if let [robber] = possible[..]
            && lives.all[robber].key.who != life.key.who
        {
            victims.entry(robber).or_default().push(place);
        }
        if possible.is_empty() {
            violations.push(Violation::LockLost { request: life.key.clone(), at, why });
        }
    }
    for places in victims.into_values() {
        let of = |place: usize| &lives.all[place];
        let later = |place: usize| {
            let token = of(place).held.as_ref().map(|held| held.token);
            places.iter().any(|&other| {
                let earlier = of(other).held.as_ref().map(|held| held.token) < token;
                earlier && of(other).conflict(of(place)).is_some()
            })
        };
        for life in places.iter().filter(|&&place| later(place)).map(|&place| of(place)) {
            if let (Some(why), Some(at)) = (life.lost.clone(), life.over) {
                violations.push(Violation::LockLost { request: life.key.clone(), at, why });
            }
        }
    }
    violations.sort_by_key(|violation| violation.to_string());
    violations
}
