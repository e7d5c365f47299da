//! One name: its holders, and its waiters with their blockers.

use std::time::Instant;

use navlocks_core::{Blockers, RequestId};
use navlocks_wire::{self as wire, Named};

use super::survey::ROWS_MAX;
use crate::hub::partitions::{Partition, PartitionKey};
use crate::hub::{Hub, Peer};

/// The most blockers of one waiter that are shown.
const BLOCKERS_MAX: usize = 4;

/// The most entries that a page of waiters may look at for their blockers.
const LOOKS_MAX: usize = 200_000;

impl Hub {
    /// Returns the requests for one name; none if there are none that the dashboard may see.
    pub(super) fn view_queue(
        &self,
        peer: &Peer,
        of: &wire::QueueOf,
        now: Instant,
    ) -> Option<wire::Queue> {
        let key = PartitionKey::of_space(&of.space);
        if !key.is_visible_to(peer) {
            return None;
        }
        self.look(|sight| sight.hub_of(&key)?.view_own_queue(&key, of, now))
    }

    fn view_own_queue(
        &self,
        key: &PartitionKey,
        of: &wire::QueueOf,
        now: Instant,
    ) -> Option<wire::Queue> {
        let index = self.partitions.find(key)?;
        let partition = &self.partitions[index];
        let manager = partition.manager();
        let queue = match &of.of {
            Named::Name(name) => manager.queue_of(name)?,
            Named::First(key) => {
                let info = manager.info(self.find(index, *key)?)?;
                manager.queue_of(info.scope.names().first()?)?
            }
        };
        let mut answer = wire::Queue {
            name: queue.name().clone(),
            space: partition.key.space(),
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
                    let entry = partition.watched_entry(queued.request, &self.sessions, now);
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
}

fn blocked(
    partition: &Partition,
    id: RequestId,
    blockers: &Blockers,
    now: Instant,
) -> Option<wire::Blocked> {
    let first = blockers.hard.iter().chain(&blockers.soft).take(BLOCKERS_MAX);
    Some(wire::Blocked {
        entry: partition.entry(id, now)?,
        hard: blockers.hard.len() as u64,
        soft: blockers.soft.len() as u64,
        by: first.filter_map(|&id| partition.entry(id, now)).collect(),
    })
}
