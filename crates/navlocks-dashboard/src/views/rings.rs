//! Deadlocks as rings: a shortest cycle of each, and a log of the last ones.

use std::collections::{HashMap, HashSet, VecDeque};
use std::time::Instant;

use navlocks_core::{ClientId, Deadlock, Name, RequestId, Waiter};
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
        let waiters = match deadlocks.is_empty() {
            true => Vec::new(),
            false => manager.waiters_within(entries_max).unwrap_or_default(),
        };
        let found: Vec<(Vec<shown::Hop>, u64)> =
            deadlocks.iter().map(|deadlock| ring(deadlock, &waiters, partition, now)).collect();
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

/// Why a client waits for another one.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Edge {
    /// Its request waits for a request of the other one.
    Request(RequestId, RequestId, Name),
    /// It started the other one, and waits until that ends.
    Child,
}

/// Returns the hops of a shortest cycle of a deadlock, and how many further clients are caught.
fn ring(
    deadlock: &Deadlock,
    waiters: &[Waiter],
    partition: PartitionView<'_>,
    now: Instant,
) -> (Vec<shown::Hop>, u64) {
    let manager = partition.manager();
    let owner = |request: RequestId| manager.info(request).map(|info| info.client);
    let children = |client: ClientId| manager.children_of(client).collect::<Vec<_>>();
    let cycle = shortest(deadlock, waiters, owner, children);
    let others = deadlock.clients.len().saturating_sub(cycle.len()) as u64;
    let hops = cycle.into_iter().map(|(client, edge)| {
        let client = partition.client_key(client);
        let empty = shown::Hop { client, waits: None, name: Vec::new(), by: None };
        match edge {
            Edge::Child => empty,
            Edge::Request(waits, by, name) => shown::Hop {
                waits: entry(partition, waits, now),
                by: entry(partition, by, now),
                name: vec![cut(&name).0],
                ..empty
            },
        }
    });
    (hops.collect(), others)
}

/// Returns the clients of a shortest cycle through the first client that is on one, each with the
/// reason why it waits for the next.
fn shortest(
    deadlock: &Deadlock,
    waiters: &[Waiter],
    owner: impl Fn(RequestId) -> Option<ClientId>,
    children: impl Fn(ClientId) -> Vec<ClientId>,
) -> Vec<(ClientId, Edge)> {
    let members: HashSet<ClientId> = deadlock.clients.iter().copied().collect();
    let requests: HashSet<RequestId> = deadlock.requests.iter().copied().collect();
    let mut edges: HashMap<ClientId, Vec<(ClientId, Edge)>> = HashMap::new();
    for waiter in waiters.iter().filter(|waiter| requests.contains(&waiter.request)) {
        for (by, name) in waiter.hard.iter().chain(&waiter.soft) {
            // A wait of a client for itself is no part of a deadlock.
            let other = |next: &ClientId| *next != waiter.client && members.contains(next);
            let Some(next) = owner(*by).filter(other) else { continue };
            let edge = Edge::Request(waiter.request, *by, name.clone());
            edges.entry(waiter.client).or_default().push((next, edge));
        }
    }
    for &client in &deadlock.clients {
        let below = children(client).into_iter().filter(|child| members.contains(child));
        edges.entry(client).or_default().extend(below.map(|child| (child, Edge::Child)));
    }
    let cycle = deadlock.clients.iter().find_map(|&start| {
        let mut from: HashMap<ClientId, (ClientId, Edge)> = HashMap::new();
        let mut open = VecDeque::from([start]);
        while let Some(client) = open.pop_front() {
            for (next, edge) in edges.get(&client).into_iter().flatten() {
                if *next == start {
                    let mut cycle = vec![(client, edge.clone())];
                    let mut at = client;
                    while at != start {
                        let (before, edge) = from.get(&at)?.clone();
                        cycle.push((before, edge));
                        at = before;
                    }
                    cycle.reverse();
                    return Some(cycle);
                }
                if !from.contains_key(next) {
                    from.insert(*next, (client, edge.clone()));
                    open.push_back(*next);
                }
            }
        }
        None
    });
    cycle.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use navlocks_core::{HashKey, LockManager, Request};

    #[test]
    fn shortest_cycle_names_each_wait_in_order() {
        let mut manager = LockManager::new(HashKey::from_bytes([7; 16]));
        let [one, two, three, four] = std::array::from_fn(|_| manager.add_client());
        for (client, name) in [
            (one, "a"),
            (two, "b"),
            (three, "c"),
            (one, "b"),
            (two, "c"),
            (three, "a"),
            (four, "d"),
            (four, "a"),
        ] {
            manager.request(client, Request::exclusive(name)).unwrap();
        }
        let deadlocks = manager.deadlocks();
        let waiters = manager.waiters_within(100).unwrap();
        let owner = |request| manager.info(request).map(|info| info.client);
        let cycle = shortest(&deadlocks[0], &waiters, owner, |_| Vec::new());
        let clients: Vec<ClientId> = cycle.iter().map(|(client, _)| *client).collect();
        assert_eq!(clients, [one, two, three]);
        let names: Vec<&Name> = cycle
            .iter()
            .map(|(_, edge)| match edge {
                Edge::Request(_, _, name) => name,
                Edge::Child => panic!("no client started another"),
            })
            .collect();
        assert_eq!(names, [&Name::from("b"), &Name::from("c"), &Name::from("a")]);
    }

    #[test]
    fn cycle_has_no_wait_of_a_client_for_itself() {
        let mut manager = LockManager::new(HashKey::from_bytes([7; 16]));
        let (one, two) = (manager.add_client(), manager.add_client());
        manager.request(one, Request::exclusive("a")).unwrap();
        manager.request(two, Request::exclusive("b")).unwrap();
        manager.request(one, Request::exclusive(["a", "b"])).unwrap();
        manager.request(two, Request::exclusive("a")).unwrap();
        let waiters = manager.waiters_within(100).unwrap();
        let owner = |request| manager.info(request).map(|info| info.client);
        let cycle = shortest(&manager.deadlocks()[0], &waiters, owner, |_| Vec::new());
        assert_eq!(cycle.iter().map(|(client, _)| *client).collect::<Vec<_>>(), [one, two]);
    }

    #[test]
    fn cycle_through_a_child_says_so() {
        let mut manager = LockManager::new(HashKey::from_bytes([7; 16]));
        let (parent, child) = (manager.add_client(), manager.add_client());
        manager.add_child(parent, child);
        manager.request(parent, Request::exclusive("a")).unwrap();
        manager.request(child, Request::exclusive("a")).unwrap();
        let waiters = manager.waiters_within(100).unwrap();
        let owner = |request| manager.info(request).map(|info| info.client);
        let children = |client| manager.children_of(client).collect::<Vec<_>>();
        let cycle = shortest(&manager.deadlocks()[0], &waiters, owner, children);
        assert_eq!(cycle.len(), 2);
        assert_eq!(cycle[0], (parent, Edge::Child));
    }
}
