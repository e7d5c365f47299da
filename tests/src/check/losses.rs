//! Locks that were lost although their clients lived.
//!
//! A session outlives its connections, and on one machine also its service. So a client loses a
//! lock by a steal or a forced release, or by being cut off for longer than its lease. A steal may
//! be the cause if it has a name in common and was requested before the loss. The client was cut
//! off when it or the service was absent: the conductor knows the lease, and records how long an
//! absence a lock outlasts. An absence shortly before the grant counts as well, because a lease
//! that is renewed late begins early.

use std::collections::HashSet;

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
    let lost = |(place, life): (usize, &crate::check::life::Life)| {
        let (why, at) = (life.lost.clone()?, life.over?);
        let token = trusted_token(place, life, wrong_tokens);
        let robbed = robberies.earliest(place, life, token, at).is_some();
        let from = Moment(life.asked.0.saturating_sub(Moment::START.after(endurance).0));
        let who = lives.fate(&life.key.who);
        let absent = who.absent(from, at).saturating_add(lives.service().absent(from, at));
        let request = life.key.clone();
        (!robbed && absent < endurance).then_some(Violation::LockLost { request, at, why })
    };
    lives.all.iter().enumerate().filter_map(lost).collect()
}
