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
    /// False if it exists only because requests share a client. Such a one is not kept.
    certain: bool,
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
            _ => manager
                .deadlocks_within(entries_max)
                .zip(manager.possible_deadlocks_within(entries_max))
                .map(|(certain, possible)| [certain, possible].concat()),
        };
        let Some(deadlocks) = search else { return false };
        let found: Vec<Logged> =
            deadlocks.iter().map(|deadlock| log(deadlock, partition, now)).collect();
        for logged in self.logged.iter_mut().filter(|logged| logged.key == *partition.key()) {
            let lasts = found.iter().any(|found| found.is_same(logged));
            if !lasts && logged.over.is_none() {
                logged.over = Some(now);
            }
        }
        self.logged.retain(|logged| logged.certain || logged.over.is_none());
        for found in found {
            let is_known = |logged: &&mut Logged| logged.over.is_none() && found.is_same(logged);
            match self.logged.iter_mut().find(is_known) {
                Some(logged) => (logged.hops, logged.others) = (found.hops, found.others),
                None => self.add(found),
            }
        }
        true
    }

    fn add(&mut self, found: Logged) {
        let of_tenant = |logged: &Logged| logged.key.tenant() == found.key.tenant();
        if self.logged.iter().filter(|logged| of_tenant(logged)).count() >= LOGGED_MAX
            && let Some(oldest) = self.logged.iter().position(of_tenant)
        {
            self.logged.remove(oldest);
        }
        self.logged.push_back(found);
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
            possible: !logged.certain,
        };
        visible.into_iter().take(LOGGED_MAX).map(ring).collect()
    }
}

impl Logged {
    /// Returns true if both have the same waiting requests.
    fn is_same(&self, other: &Self) -> bool {
        let waits = |logged: &Self| -> HashSet<(wire::ClientKey, Option<wire::RequestKey>)> {
            let request = |hop: &shown::Hop| hop.waits.as_ref().map(|entry| entry.request);
            logged.hops.iter().map(|hop| (hop.client, request(hop))).collect()
        };
        (&self.key, self.certain) == (&other.key, other.certain) && waits(self) == waits(other)
    }
}

fn log(deadlock: &Deadlock, partition: PartitionView<'_>, now: Instant) -> Logged {
    let (hops, others) = ring(deadlock, partition, now);
    let (key, certain) = (partition.key().clone(), deadlock.certain);
    Logged { key, found: now, over: None, hops, others, certain }
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
