//! Deadlocks of programs that start each other: a client waits for those that run under its locks.

use std::collections::{HashMap, HashSet};

use navlocks::wire::{ClientKey, Cycle, RequestKey};
use navlocks_core::RequestId;

use super::partition::Partition;
use super::sessions::Sessions;

/// For whom each client of a partition waits.
pub(crate) struct Lineage<'a> {
    partition: &'a Partition,
    children: HashMap<ClientKey, Vec<ClientKey>>,
    pending: HashMap<ClientKey, Vec<RequestId>>,
}

impl<'a> Lineage<'a> {
    /// None, when no client has a parent: then the engine knows all.
    pub(crate) fn new(partition: &'a Partition, sessions: &Sessions) -> Option<Self> {
        let mut children: HashMap<ClientKey, Vec<ClientKey>> = HashMap::new();
        for (parent, child) in sessions.lineage() {
            children.entry(parent).or_default().push(child);
        }
        if children.is_empty() {
            return None;
        }
        let mut pending: HashMap<ClientKey, Vec<RequestId>> = HashMap::new();
        for info in partition.manager.snapshot().pending {
            pending.entry(partition.owner(info.request)).or_default().push(info.request);
        }
        Some(Self { partition, children, pending })
    }

    /// All cycles that some client waits in, each once.
    pub(crate) fn cycles(&self) -> Vec<Cycle> {
        let mut waiting: Vec<ClientKey> = self.pending.keys().copied().collect();
        waiting.sort_unstable();
        let mut known: HashSet<ClientKey> = HashSet::new();
        let mut cycles = Vec::new();
        for client in waiting {
            if known.contains(&client) {
                continue;
            }
            if let Some(cycle) = self.cycle_through(client) {
                known.extend(&cycle.clients);
                cycles.push(cycle);
            }
        }
        cycles
    }

    /// A cycle that this client waits in.
    pub(crate) fn cycle_through(&self, start: ClientKey) -> Option<Cycle> {
        let mut reached_from: HashMap<ClientKey, ClientKey> = HashMap::new();
        let mut open = vec![start];
        while let Some(client) = open.pop() {
            for next in self.waits_for(client) {
                if next == start {
                    return Some(self.cycle(start, client, &reached_from));
                }
                if let std::collections::hash_map::Entry::Vacant(new) = reached_from.entry(next) {
                    new.insert(client);
                    open.push(next);
                }
            }
        }
        None
    }

    fn waits_for(&self, client: ClientKey) -> Vec<ClientKey> {
        let requests = self.pending.get(&client).into_iter().flatten();
        let blockers = requests.flat_map(|&id| {
            let blockers = self.partition.manager.blockers(id);
            blockers.hard.into_iter().chain(blockers.soft)
        });
        let owners = blockers.map(|id| self.partition.owner(id));
        owners.chain(self.children.get(&client).into_iter().flatten().copied()).collect()
    }

    /// The clients from the last one back to the start, and their requests that make the cycle.
    fn cycle(
        &self,
        start: ClientKey,
        last: ClientKey,
        reached_from: &HashMap<ClientKey, ClientKey>,
    ) -> Cycle {
        let back = |client: &ClientKey| reached_from.get(client).copied();
        let mut clients: Vec<ClientKey> =
            std::iter::successors(Some(last), back).take_while(|client| *client != start).collect();
        clients.push(start);
        clients.sort_unstable();
        let mut requests: Vec<RequestKey> = Vec::new();
        for &id in clients.iter().filter_map(|client| self.pending.get(client)).flatten() {
            let blockers = self.partition.manager.blockers(id);
            let held = blockers.hard.into_iter();
            let held = held.filter(|&id| clients.contains(&self.partition.owner(id)));
            requests.extend(self.partition.request_keys(&held.collect::<Vec<_>>()));
            requests.extend(self.partition.request_keys(&[id]));
        }
        requests.sort_unstable();
        requests.dedup();
        Cycle { clients, requests }
    }
}
