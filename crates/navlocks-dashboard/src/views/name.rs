//! One name: its holders, and its waiters with their blockers.

use std::time::Instant;

use navlocks_core::{Blockers, RequestId};
use navlocks_server::inspect::{Inspect, PartitionKey, PartitionView, Viewer};

use super::brief::{entry, watched_entry};
use super::survey::ROWS_MAX;
use crate::shown::{Blocked, Queue};
use crate::view::{Named, QueueOf};

/// The most blockers of one waiter that are shown.
const BLOCKERS_MAX: usize = 4;

/// The most entries that a page of waiters may look at for their blockers.
const LOOKS_MAX: usize = 200_000;

/// Returns the requests for one name; none if there are none that the viewer may see.
pub(super) fn queue(
    inspect: &Inspect<'_>,
    viewer: &Viewer,
    of: &QueueOf,
    now: Instant,
) -> Option<Queue> {
    let key = PartitionKey::from(&of.space);
    let partition = inspect.find(&key).filter(|_| viewer.sees(key.tenant()))?;
    let manager = partition.manager();
    let queue = match &of.of {
        Named::Name(name) => manager.queue_of(name)?,
        Named::First(key) => {
            let info = manager.info(partition.find(*key)?)?;
            manager.queue_of(info.scope.names().first()?)?
        }
    };
    let mut answer = Queue {
        name: queue.name().clone(),
        space: partition.key().into(),
        held: 0,
        waiting: 0,
        holders: Vec::new(),
        waiters: Vec::new(),
    };
    let mut waiters: Vec<(usize, RequestId)> = Vec::new();
    for (place, queued) in queue.requests().enumerate() {
        if queued.held {
            answer.held += 1;
            if answer.holders.len() < ROWS_MAX {
                let entry = watched_entry(partition, queued.request, now);
                answer.holders.extend(entry);
            }
            continue;
        }
        answer.waiting += 1;
        if answer.waiting > of.skip && waiters.len() < ROWS_MAX {
            waiters.push((place, queued.request));
        }
    }
    let mut looks = LOOKS_MAX;
    for (place, id) in waiters {
        // Each costs the entries before it.
        let blockers = match looks.checked_sub(place) {
            Some(left) => {
                looks = left;
                manager.blockers(id)
            }
            None => Blockers::default(),
        };
        answer.waiters.extend(blocked(partition, id, &blockers, now));
    }
    Some(answer)
}

fn blocked(
    partition: PartitionView<'_>,
    id: RequestId,
    blockers: &Blockers,
    now: Instant,
) -> Option<Blocked> {
    let first = blockers.hard.iter().chain(&blockers.soft).take(BLOCKERS_MAX);
    Some(Blocked {
        entry: entry(partition, id, now)?,
        hard: blockers.hard.len() as u64,
        soft: blockers.soft.len() as u64,
        by: first.filter_map(|&id| entry(partition, id, now)).collect(),
    })
}
