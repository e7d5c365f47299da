//! Deadlocks as rings: a shortest cycle of each, and a log of the last ones.

use std::collections::{HashSet, VecDeque};
use std::time::Instant;

use navlocks_core::{ClientId, Deadlock};
use navlocks_server::inspect::{PartitionKey, PartitionView};
use navlocks_wire as wire;

use super::brief::{age, cut, entry};
use crate::shown;

/// How many deadlocks of each tenant are kept.
const LOGGED_MAX: usize = 50;

/// A deadlock that was found.
#[derive(Debug)]
struct Logged {
    key: PartitionKey,
    found: Instant,
    over: Option<Instant>,
    hops: Vec<shown::Hop>,
    others: u64,
}

/// The last deadlocks, oldest first.
#[derive(Debug, Default)]
pub(super) struct Log {
    logged: VecDeque<Logged>,
}

impl Log {
    /// Looks for deadlocks in a partition, and notes those that are new or over. Returns false if
    /// it has more entries than this.
    pub(super) fn look(
        &mut self,
        partition: PartitionView<'_>,
        entries_max: usize,
        now: Instant,
    ) -> bool {
        let manager = partition.manager();
        // Without a waiter there is no circle to look for.
        let search = match manager.pending_count() {
            0 => Some(Vec::new()),
            _ => manager.deadlocks_within(entries_max),
        };
        let Some(deadlocks) = search else { return false };
        let found: Vec<(Vec<shown::Hop>, u64)> =
            deadlocks.iter().map(|deadlock| ring(deadlock, partition, now)).collect();
        for logged in self.logged.iter_mut().filter(|logged| logged.key == *partition.key()) {
            let lasts = found.iter().any(|(hops, _)| is_same(hops, &logged.hops));
            if !lasts && logged.over.is_none() {
                logged.over = Some(now);
            }
        }
        for (hops, others) in found {
            let known = self.logged.iter_mut().find(|logged| {
                logged.key == *partition.key()
                    && logged.over.is_none()
                    && is_same(&hops, &logged.hops)
            });
            match known {
                Some(logged) => (logged.hops, logged.others) = (hops, others),
                None => self.add(partition.key(), hops, others, now),
            }
        }
        true
    }

    fn add(&mut self, key: &PartitionKey, hops: Vec<shown::Hop>, others: u64, now: Instant) {
        let of_tenant = |logged: &Logged| logged.key.tenant() == key.tenant();
        if self.logged.iter().filter(|logged| of_tenant(logged)).count() >= LOGGED_MAX
            && let Some(oldest) = self.logged.iter().position(of_tenant)
        {
            self.logged.remove(oldest);
        }
        self.logged.push_back(Logged { key: key.clone(), found: now, over: None, hops, others });
    }

    /// Notes that the partition of some deadlocks is gone.
    pub(super) fn end(&mut self, exists: impl Fn(&PartitionKey) -> bool, now: Instant) {
        for logged in self.logged.iter_mut().filter(|logged| logged.over.is_none()) {
            if !exists(&logged.key) {
                logged.over = Some(now);
            }
        }
    }

    /// Returns those of the partitions that are wanted: those that last, then the latest.
    pub(super) fn rings(
        &self,
        wanted: impl Fn(&PartitionKey) -> bool,
        now: Instant,
    ) -> Vec<shown::Ring> {
        let mut visible: Vec<&Logged> =
            self.logged.iter().rev().filter(|logged| wanted(&logged.key)).collect();
        visible.sort_by_key(|logged| logged.over.is_some());
        let ring = |logged: &Logged| shown::Ring {
            space: (&logged.key).into(),
            found_ms: age(logged.found, now),
            over_ms: logged.over.map(|over| age(over, now)),
            hops: logged.hops.clone(),
            others: logged.others,
        };
        visible.into_iter().take(LOGGED_MAX).map(ring).collect()
    }
}

/// Returns true if two rings have the same waiting requests.
fn is_same(a: &[shown::Hop], b: &[shown::Hop]) -> bool {
    let waits = |hops: &[shown::Hop]| -> HashSet<(wire::ClientKey, Option<wire::RequestKey>)> {
        hops.iter().map(|hop| (hop.client, hop.waits.as_ref().map(|entry| entry.request))).collect()
    };
    waits(a) == waits(b)
}

/// Returns the hops of a shortest cycle of a deadlock, and how many further clients are caught.
fn ring(deadlock: &Deadlock, partition: PartitionView<'_>, now: Instant) -> (Vec<shown::Hop>, u64) {
    let cycle = partition.manager().shortest_cycle(deadlock);
    let nexts = cycle.iter().cycle().skip(1);
    let hops = cycle.iter().zip(nexts).filter_map(|(step, next)| {
        let client = partition.client_key(step.client);
        let empty = shown::Hop { client, waits: None, name: Vec::new(), by: None };
        match &step.name {
            Some(name) => Some(shown::Hop {
                waits: entry(partition, step.request, now),
                by: entry(partition, next.request, now),
                name: vec![cut(name).0],
                ..empty
            }),
            // A program that was started within the lock.
            None if next.client != step.client => Some(empty),
            None => None,
        }
    });
    let hops: Vec<shown::Hop> = hops.collect();
    let shown: HashSet<ClientId> = cycle.iter().map(|step| step.client).collect();
    (hops, deadlock.clients.len().saturating_sub(shown.len()) as u64)
}
