//! Tokens that repeat or shrink.
//!
//! A token never repeats in a lock space. A lock that was requested after another was held was
//! granted after it, so its token is larger, for any names, and also over a restart of the service.
//! Concurrent requests prove nothing.

use std::collections::{HashMap, HashSet};

use crate::check::life::{Held, Life};
use crate::check::lives::Lives;
use crate::check::violation::Violation;

/// Returns the violations, and the lives whose tokens therefore prove nothing.
pub(super) fn wrong_tokens(lives: &Lives) -> (Vec<Violation>, HashSet<usize>) {
    let mut violations = Vec::new();
    let mut wrong = HashSet::new();
    repeated(lives, &mut violations, &mut wrong);
    shrunk(lives, &mut violations, &mut wrong);
    (violations, wrong)
}

fn locks(lives: &Lives) -> impl Iterator<Item = (usize, &Life, &Held)> {
    let all = lives.all.iter().enumerate();
    all.filter_map(|(place, life)| Some((place, life, life.held.as_ref()?)))
}

fn repeated(lives: &Lives, violations: &mut Vec<Violation>, wrong: &mut HashSet<usize>) {
    let mut owners = HashMap::new();
    for (place, life, held) in locks(lives) {
        if let Some(owner) = owners.insert(held.token, place) {
            wrong.extend([owner, place]);
            violations.push(Violation::TokenRepeated {
                token: held.token,
                first: lives.all[owner].key.clone(),
                second: life.key.clone(),
            });
        }
    }
}

/// Finds shrinking tokens. Repeated ones are left out: one wrong token is reported once.
fn shrunk(lives: &Lives, violations: &mut Vec<Violation>, wrong: &mut HashSet<usize>) {
    let mut by_held: Vec<_> = locks(lives).filter(|(place, ..)| !wrong.contains(place)).collect();
    let mut by_asked = by_held.clone();
    by_held.sort_by_key(|(_, _, held)| held.at);
    by_asked.sort_by_key(|(_, life, _)| life.asked);
    let mut earlier = by_held.into_iter().peekable();
    let mut largest: Option<(usize, &Life, &Held)> = None;
    for (place, life, held) in by_asked {
        while let Some(next) = earlier.next_if(|(_, _, before)| before.at < life.asked) {
            if largest.is_none_or(|(_, _, largest)| largest.token < next.2.token) {
                largest = Some(next);
            }
        }
        if let Some((other, before, larger)) = largest.filter(|(_, _, max)| held.token < max.token)
        {
            wrong.extend([other, place]);
            violations.push(Violation::TokenShrank {
                earlier: before.key.clone(),
                earlier_token: larger.token,
                later: life.key.clone(),
                later_token: held.token,
            });
        }
    }
}
