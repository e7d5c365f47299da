//! The blocking tree: which clients block others, and how many wait behind each.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::time::Instant;

use navlocks_core::{ClientId, Deadlock, Name, RequestId, Waiter};
use navlocks_server::inspect::PartitionView;

use super::brief::{cut, entry};
use crate::shown;

/// The most roots of an answer, children of one node, and nodes below each other.
const ROOTS_MAX: usize = 30;
const CHILDREN_MAX: usize = 12;
const DEPTH_MAX: usize = 6;

/// A client that others wait for, or a request that waits.
struct Node {
    client: ClientId,
    /// A lock that the root holds, or the request that waits.
    request: RequestId,
    waits_on: Option<Name>,
    children: Vec<usize>,
    behind: u64,
}

/// The clients of all deadlocks, and the requests that make them.
struct Caught {
    clients: HashSet<ClientId>,
    requests: HashSet<RequestId>,
}

impl Caught {
    fn new(deadlocks: &[Deadlock]) -> Self {
        let clients = deadlocks.iter().flat_map(|deadlock| &deadlock.clients);
        let requests = deadlocks.iter().flat_map(|deadlock| &deadlock.requests);
        Self { clients: clients.copied().collect(), requests: requests.copied().collect() }
    }

    /// Returns true if a root, or the wait of another node, is part of a deadlock. A client of a
    /// deadlock can have other waits.
    fn has(&self, node: &Node) -> bool {
        match node.waits_on {
            Some(_) => self.requests.contains(&node.request),
            None => self.clients.contains(&node.client),
        }
    }
}

/// A tree of clients, with its roots.
struct Forest {
    nodes: Vec<Node>,
    roots: Vec<usize>,
}

/// Returns the roots of a partition with all that wait behind them, and how many roots there are.
/// Returns none if the partition has more entries than this.
pub(super) fn roots(
    partition: PartitionView<'_>,
    entries_max: usize,
    now: Instant,
) -> Option<(Vec<shown::Node>, u64)> {
    let manager = partition.manager();
    let waiters = manager.waiters_within(entries_max)?;
    let deadlocks = manager.deadlocks_within(entries_max)?;
    let caught = Caught::new(&deadlocks);
    let owner = |request: RequestId| manager.info(request).map(|info| info.client);
    let forest = Forest::new(&waiters, owner);
    let mut roots = forest.roots.clone();
    roots.sort_by_key(|&root| Reverse(forest.nodes[root].behind));
    let count = roots.len() as u64;
    let shown = roots.iter().take(ROOTS_MAX);
    let show = |&root: &usize| forest.show(root, DEPTH_MAX, partition, &caught, now);
    Some((shown.filter_map(show).collect(), count))
}

impl Forest {
    fn new(waiters: &[Waiter], owner: impl Fn(RequestId) -> Option<ClientId>) -> Self {
        // The waiters that each client blocks, each below its first blocker.
        let mut blocked: HashMap<ClientId, Vec<(&Waiter, RequestId, &Name)>> = HashMap::new();
        let mut order: Vec<ClientId> = Vec::new();
        let mut waiting: HashSet<ClientId> = HashSet::new();
        for waiter in waiters {
            waiting.insert(waiter.client);
            // A lock of its own comes last: a client rarely blocks only itself.
            let by = waiter.hard.iter().chain(&waiter.soft);
            let of_others = |(by, _): &&(RequestId, Name)| owner(*by) != Some(waiter.client);
            let found = by.clone().find(of_others).or_else(|| by.clone().next());
            let Some((by, name)) = found else { continue };
            let Some(client) = owner(*by) else { continue };
            let list = blocked.entry(client).or_insert_with(|| {
                order.push(client);
                Vec::new()
            });
            list.push((waiter, *by, name));
        }
        let mut forest = Self { nodes: Vec::new(), roots: Vec::new() };
        let mut expanded: HashSet<ClientId> = HashSet::new();
        // Those that wait for nothing first; what is left then is caught in circles.
        let free = order.iter().filter(|client| !waiting.contains(client));
        let caught = order.iter().filter(|client| waiting.contains(client));
        for &client in free.chain(caught) {
            if expanded.contains(&client) {
                continue;
            }
            let Some(&(_, request, _)) = blocked.get(&client).and_then(|list| list.first()) else {
                continue;
            };
            let root = forest.add(client, request, None);
            forest.roots.push(root);
            let mut open = vec![root];
            while let Some(node) = open.pop() {
                let client = forest.nodes[node].client;
                if !expanded.insert(client) {
                    continue;
                }
                for &(waiter, _, name) in blocked.get(&client).into_iter().flatten() {
                    let child = forest.add(waiter.client, waiter.request, Some(name.clone()));
                    forest.nodes[node].children.push(child);
                    open.push(child);
                }
            }
        }
        // Children come after their parents, so each count is whole before it is added.
        for node in (0..forest.nodes.len()).rev() {
            let children = &forest.nodes[node].children;
            let behind = children.iter().map(|&child| 1 + forest.nodes[child].behind).sum();
            forest.nodes[node].behind = behind;
        }
        forest
    }

    fn add(&mut self, client: ClientId, request: RequestId, waits_on: Option<Name>) -> usize {
        self.nodes.push(Node { client, request, waits_on, children: Vec::new(), behind: 0 });
        self.nodes.len() - 1
    }

    fn show(
        &self,
        node: usize,
        depth: usize,
        partition: PartitionView<'_>,
        caught: &Caught,
        now: Instant,
    ) -> Option<shown::Node> {
        let Node { request, waits_on, children, behind, .. } = &self.nodes[node];
        let mut nearest: Vec<usize> = children.clone();
        nearest.sort_by_key(|&child| Reverse(self.nodes[child].behind));
        let room = if depth == 0 { 0 } else { CHILDREN_MAX };
        let shown = nearest.iter().take(room);
        let show = |&child: &usize| self.show(child, depth - 1, partition, caught, now);
        Some(shown::Node {
            space: partition.key().into(),
            entry: entry(partition, *request, now)?,
            waits_on: waits_on.iter().map(|name| cut(name).0).collect(),
            behind: *behind,
            deadlocked: caught.has(&self.nodes[node]),
            children: shown.filter_map(show).collect(),
            more: children.len().saturating_sub(room) as u64,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use navlocks_core::{HashKey, LockManager, Request};

    fn forest(manager: &LockManager) -> Forest {
        let owner = |request| manager.info(request).map(|info| info.client);
        Forest::new(&manager.waiters_within(100).unwrap(), owner)
    }

    fn manager() -> (LockManager, [ClientId; 4]) {
        let mut manager = LockManager::new(HashKey::from_bytes([7; 16]));
        let clients = std::array::from_fn(|_| manager.add_client());
        (manager, clients)
    }

    #[test]
    fn client_that_waits_for_nothing_is_the_root_of_all_behind_it() {
        let (mut manager, [one, two, three, four]) = manager();
        for (client, name) in [(one, "a"), (two, "b"), (two, "a"), (three, "b"), (four, "b")] {
            manager.request(client, Request::exclusive(name)).unwrap();
        }
        let forest = forest(&manager);
        assert_eq!(forest.roots.len(), 1);
        let root = &forest.nodes[forest.roots[0]];
        assert_eq!((root.client, root.behind), (one, 3));
        let middle = &forest.nodes[root.children[0]];
        assert_eq!((middle.client, middle.behind), (two, 2));
        assert_eq!(middle.waits_on, Some("a".into()));
    }

    #[test]
    fn circle_of_clients_has_a_root_and_each_waiter_once() {
        let (mut manager, [one, two, three, _]) = manager();
        for (client, name) in [(one, "a"), (two, "b"), (one, "b"), (two, "a"), (three, "a")] {
            manager.request(client, Request::exclusive(name)).unwrap();
        }
        let forest = forest(&manager);
        assert_eq!(forest.roots.len(), 1);
        assert_eq!(forest.nodes[forest.roots[0]].behind, 3);
        assert_eq!(forest.nodes.len(), 4);
    }

    #[test]
    fn client_of_a_deadlock_is_not_marked_on_its_other_waits() {
        let (mut manager, [one, two, three, four]) = manager();
        let mut request =
            |client, name| manager.request(client, Request::exclusive(name)).unwrap().0;
        let (first, second) = (request(one, "a"), request(two, "b"));
        request(three, "c");
        let nested = [(request(one, "b"), first), (request(two, "a"), second)];
        request(one, "c");
        request(four, "c");
        for (inner, outer) in nested {
            assert!(manager.nest(inner, outer));
        }
        let caught = Caught::new(&manager.deadlocks());
        let nodes = forest(&manager).nodes;
        let marked: Vec<_> = nodes
            .iter()
            .filter(|node| node.waits_on.is_some())
            .map(|node| (node.client, node.waits_on.clone(), caught.has(node)))
            .collect();
        assert!(marked.contains(&(one, Some("b".into()), true)), "{marked:?}");
        assert!(marked.contains(&(two, Some("a".into()), true)), "{marked:?}");
        assert!(marked.contains(&(one, Some("c".into()), false)), "{marked:?}");
    }

    #[test]
    fn chain_of_a_thousand_clients_is_walked_without_recursion() {
        let mut manager = LockManager::new(HashKey::from_bytes([7; 16]));
        let mut before = None;
        for number in 0..1000 {
            let client = manager.add_client();
            manager.request(client, Request::exclusive(format!("{number}"))).unwrap();
            if let Some(before) = before.replace(number) {
                manager.request(client, Request::exclusive(format!("{before}"))).unwrap();
            }
        }
        let owner = |request| manager.info(request).map(|info| info.client);
        let forest = Forest::new(&manager.waiters_within(10_000).unwrap(), owner);
        assert_eq!(forest.nodes[forest.roots[0]].behind, 999);
    }
}
