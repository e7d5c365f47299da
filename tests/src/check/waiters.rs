//! Lost waiters.
//!
//! Only the end of a history can show one: the conductor was [patient](crate::record::What::Over),
//! the service answers, the client of the waiter is alive and not stopped, and still there is no
//! answer. Then
//!
//! - a request that does not wait, or not any longer, should have been answered;
//! - of a group of waiters that exclude each other, the head of the queue should hold the lock,
//!   unless a request outside the group blocks it. The head is not known, so the group is reported.
//!   A request outside blocks when its lock is not over, or was over too late for the conductor's
//!   patience.
//!
//! A lost waiter that then gave up, was killed, or requested again after a restart of the service
//! leaves no proof.

use std::collections::HashSet;
use std::time::Duration;

use crate::check::life::Life;
use crate::check::lives::Lives;
use crate::check::violation::Violation;
use crate::record::{Moment, Wait};

/// Returns the requests that should have been answered in the end.
pub(super) fn lost_waiters(lives: &Lives) -> Vec<Violation> {
    let Some((end, _)) = lives.end else { return Vec::new() };
    let service = lives.service();
    if !service.present() || end < service.undisturbed_since().after(lives.patience()) {
        return Vec::new();
    }
    let unanswered: Vec<usize> =
        (0..lives.all.len()).filter(|&place| is_unanswered(lives, &lives.all[place])).collect();
    let (hasty, waiting): (Vec<usize>, Vec<usize>) =
        unanswered.into_iter().partition(|&place| patience_of(&lives.all[place]).is_some());
    let alone = hasty.into_iter().map(|place| vec![place]);
    let overdue = alone.filter(|group| is_overdue(lives, &lives.all[group[0]], end));
    let stuck = groups(lives, &waiting).into_iter().filter(|group| is_free(lives, group, end));
    overdue
        .chain(stuck)
        .map(|group| Violation::LostWaiters {
            waiters: group.iter().map(|&place| lives.all[place].key.clone()).collect(),
        })
        .collect()
}

fn is_unanswered(lives: &Lives, life: &Life) -> bool {
    let fate = lives.fate(&life.key.who);
    life.answered().is_none() && fate.gone.is_none() && fate.present()
}

/// Returns how long the request waits, if not until its turn comes.
fn patience_of(life: &Life) -> Option<Duration> {
    match life.wait {
        Wait::Queue | Wait::Overtake => None,
        Wait::AtMost(time) => Some(time),
        Wait::IfAvailable | Wait::Steal | Wait::Force => Some(Duration::ZERO),
    }
}

/// Returns true if the answer had all the time it may take.
fn is_overdue(lives: &Lives, life: &Life, end: Moment) -> bool {
    let waited = life.asked.after(patience_of(life).unwrap_or_default());
    let undisturbed = lives.fate(&life.key.who).undisturbed_since();
    waited.max(undisturbed).after(lives.patience()) <= end
}

/// Returns the waiters in groups that exclude each other.
fn groups(lives: &Lives, waiting: &[usize]) -> Vec<Vec<usize>> {
    let mut left: HashSet<usize> = waiting.iter().copied().collect();
    let mut groups = Vec::new();
    for &first in waiting {
        if !left.remove(&first) {
            continue;
        }
        let mut group = vec![first];
        let mut looked = 0;
        while let Some(&member) = group.get(looked) {
            let near = rivals(lives, member).filter(|rival| left.remove(rival));
            group.extend(near.collect::<Vec<_>>());
            looked += 1;
        }
        group.sort_unstable();
        groups.push(group);
    }
    groups
}

/// Returns all requests that exclude this one, perhaps more than once.
fn rivals(lives: &Lives, place: usize) -> impl Iterator<Item = usize> {
    let life = &lives.all[place];
    let near = life.names.iter().flat_map(|name| lives.by_name[name].iter().copied());
    near.filter(move |&other| other != place && lives.all[other].conflict(life).is_some())
}

/// Returns true if no request outside can block the group.
fn is_free(lives: &Lives, group: &[usize], end: Moment) -> bool {
    let overdue = group.iter().all(|&place| is_overdue(lives, &lives.all[place], end));
    let spent = |place: usize| lives.spent(&lives.all[place]).is_some_and(|spent| spent <= end);
    let mut outside = group
        .iter()
        .flat_map(|&member| rivals(lives, member))
        .filter(|rival| !group.contains(rival));
    overdue && outside.all(spent)
}
