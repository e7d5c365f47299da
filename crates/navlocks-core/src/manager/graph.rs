//! The graph of waits, in which the search for deadlocks looks for components.
//!
//! The graph has a node for each entry. A pending entry waits for the earlier entries that it
//! conflicts with. A held one waits for the entries that were made within it. A strongly connected
//! component of several entries is a deadlock.
//!
//! A second graph finds the possible deadlocks, where it is not known which holder waits: it has a
//! node for each client, too. A held entry waits for its client, which may keep it until all its
//! requests are granted. A client waits for its pending entries. The requests of a component with
//! several clients are those by which one of them waits for another: the tasks of one client may
//! release independently.
//!
//! Entries of one queue need few edges: an exclusive one waits for the run of shared ones right
//! before it, or else for the exclusive one there. That one in turn waits for those before. So the
//! graph is no larger than the queues.

use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::vec::Vec;

use super::{Deadlock, LockManager};
use crate::id::Index;
use crate::{Mode, RequestId};

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Node {
    Entry(Index),
    Client(Index),
}

/// Whether a wait belongs to the holder within which it began, or to the client.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Graph {
    Certain,
    Possible,
}

/// The graph, built as far as the search goes.
pub(super) struct WaitsFor<'a> {
    manager: &'a LockManager,
    graph: Graph,
    scanned: BTreeSet<Index>,
    /// For each scanned seat, the entries right before it that it waits for.
    before: BTreeMap<Index, Vec<Index>>,
    /// How many entries may still be read.
    left: usize,
}

/// Tarjan's numbers for a node that was visited.
struct Visit {
    number: usize,
    low: usize,
    open: bool,
}

/// A node whose successors are being visited.
struct Frame {
    node: Node,
    successors: Vec<Node>,
}

impl<'a> WaitsFor<'a> {
    pub(super) fn new(manager: &'a LockManager, graph: Graph, entries_max: usize) -> Self {
        let (scanned, before) = (BTreeSet::new(), BTreeMap::new());
        Self { manager, graph, scanned, before, left: entries_max }
    }

    /// Returns the deadlocks among all nodes that can be reached from `roots`, in order of their
    /// first request. Returns none if the search would read too many entries.
    pub(super) fn deadlocks(self, roots: impl IntoIterator<Item = Node>) -> Option<Vec<Deadlock>> {
        let mut deadlocks = self.components(roots)?;
        deadlocks.sort_unstable_by_key(|deadlock| deadlock.requests[0]);
        Some(deadlocks)
    }

    /// Counts an entry that is read. Returns none if there were too many.
    fn count_read(&mut self) -> Option<()> {
        self.left = self.left.checked_sub(1)?;
        Some(())
    }

    fn successors(&mut self, node: Node) -> Option<Vec<Node>> {
        let manager = self.manager;
        let mut successors = Vec::new();
        match node {
            Node::Client(client) => {
                for entry in manager.entries_of(client) {
                    self.count_read()?;
                    if !manager.seating.is_held(entry) {
                        successors.push(Node::Entry(entry));
                    }
                }
            }
            Node::Entry(entry) if manager.seating.is_held(entry) => match self.graph {
                Graph::Possible => successors.push(Node::Client(manager.owner(entry))),
                Graph::Certain => {
                    for inner in manager.inner_entries(entry) {
                        self.count_read()?;
                        successors.push(Node::Entry(inner));
                    }
                }
            },
            Node::Entry(entry) => {
                for (queue, seat) in manager.seating.queues_of(entry) {
                    self.count_read()?;
                    self.scan(queue)?;
                    let before = self.before.get(&seat).into_iter().flatten();
                    successors.extend(before.map(|&entry| Node::Entry(entry)));
                }
            }
        }
        Some(successors)
    }

    /// Notes for each seat of a queue the entries right before it that it waits for.
    fn scan(&mut self, queue: Index) -> Option<()> {
        if !self.scanned.insert(queue) {
            return Some(());
        }
        let mut exclusive = None;
        let mut shared = Vec::new();
        let manager = self.manager;
        for (seat, entry, mode) in manager.seating.seats_of(queue) {
            self.count_read()?;
            let before = match mode {
                // A wait behind a limit ends when any of several holders ends, so it is no certain
                // wait for one of them.
                Mode::Shared | Mode::Limited(_) => {
                    shared.push(entry);
                    exclusive.into_iter().collect()
                }
                Mode::Exclusive => {
                    let last = exclusive.replace(entry);
                    if shared.is_empty() {
                        last.into_iter().collect()
                    } else {
                        core::mem::take(&mut shared)
                    }
                }
            };
            self.before.insert(seat, before);
        }
        Some(())
    }

    /// Returns the same in no particular order, by Tarjan's algorithm without recursion.
    fn components(mut self, roots: impl IntoIterator<Item = Node>) -> Option<Vec<Deadlock>> {
        let mut visits: BTreeMap<Node, Visit> = BTreeMap::new();
        let mut open: Vec<Node> = Vec::new();
        let mut deadlocks = Vec::new();
        for root in roots {
            let mut path: Vec<Frame> = Vec::new();
            let mut arrive = Some(root);
            loop {
                if let Some(node) = arrive.take().filter(|node| !visits.contains_key(node)) {
                    let number = visits.len();
                    visits.insert(node, Visit { number, low: number, open: true });
                    open.push(node);
                    path.push(Frame { node, successors: self.successors(node)? });
                }
                let Some(frame) = path.last_mut() else { break };
                let node = frame.node;
                if let Some(successor) = frame.successors.pop() {
                    match visits.get(&successor) {
                        None => arrive = Some(successor),
                        Some(seen) if seen.open => {
                            let number = seen.number;
                            lower(&mut visits, node, number);
                        }
                        Some(_) => {}
                    }
                    continue;
                }
                path.pop();
                let Visit { number, low, .. } = visits[&node];
                if let Some(parent) = path.last() {
                    lower(&mut visits, parent.node, low);
                }
                if low == number {
                    let start = open.iter().rposition(|&other| other == node).unwrap_or(0);
                    let component = open.split_off(start);
                    for member in &component {
                        if let Some(visit) = visits.get_mut(member) {
                            visit.open = false;
                        }
                    }
                    deadlocks.extend(self.deadlock(&component));
                }
            }
        }
        Some(deadlocks)
    }

    /// Returns a shortest path from a node back to itself over members of a component.
    pub(super) fn path_to_itself(
        &mut self,
        start: Node,
        members: &BTreeSet<Node>,
    ) -> Option<Vec<Node>> {
        let mut before: BTreeMap<Node, Node> = BTreeMap::new();
        let mut open = VecDeque::from([start]);
        while let Some(node) = open.pop_front() {
            for next in self.successors(node)? {
                if next == start {
                    let back = core::iter::successors(Some(node), |node| before.get(node).copied());
                    let mut path: Vec<Node> = back.collect();
                    path.reverse();
                    return Some(path);
                }
                if members.contains(&next) && !before.contains_key(&next) {
                    before.insert(next, node);
                    open.push_back(next);
                }
            }
        }
        None
    }

    /// Returns a component as a deadlock, if it has several entries, or clients in the graph of the
    /// possible ones.
    fn deadlock(&self, component: &[Node]) -> Option<Deadlock> {
        let Self { manager, graph, .. } = *self;
        let is_client = |node: &&Node| matches!(node, Node::Client(_));
        let mut requests: Vec<RequestId> = match graph {
            Graph::Certain if component.len() < 2 => return None,
            Graph::Certain => {
                let entries = component.iter().filter_map(|node| match *node {
                    Node::Entry(entry) => Some(manager.seating.id(entry)),
                    Node::Client(_) => None,
                });
                entries.collect()
            }
            Graph::Possible if component.iter().filter(is_client).count() < 2 => return None,
            Graph::Possible => {
                let entries = self.entries_between_clients(component);
                entries.into_iter().map(|entry| manager.seating.id(entry)).collect()
            }
        };
        requests.sort_unstable();
        (!requests.is_empty()).then(|| manager.deadlock_of(requests, graph))
    }

    /// Returns the entries of a component by which a client waits for another client: the others
    /// are there only because a client waits for itself.
    fn entries_between_clients(&self, component: &[Node]) -> Vec<Index> {
        let Self { manager, before, .. } = self;
        let mut ends: BTreeMap<Index, Ends> = BTreeMap::new();
        let mut clients = BTreeSet::new();
        for node in component {
            match *node {
                Node::Entry(entry) => drop(ends.insert(entry, Ends::default())),
                Node::Client(client) => drop(clients.insert(client)),
            }
        }
        let mut entries: Vec<Index> = ends.keys().copied().collect();
        manager.seating.sort(&mut entries);
        let waited_for = |entry: Index| {
            let seats = manager.seating.queues_of(entry).map(|(_, seat)| seat);
            seats.filter_map(|seat| before.get(&seat)).flatten().copied()
        };
        // An entry waits for earlier ones alone, so one pass in each direction suffices.
        for &entry in &entries {
            let owner = manager.owner(entry);
            let mut holders = Clients::None;
            if manager.seating.is_held(entry) {
                holders.add(Clients::One(owner));
            } else {
                let further = waited_for(entry).filter_map(|earlier| ends.get(&earlier));
                further.for_each(|further| holders.add(further.holders));
            }
            if let Some(own) = ends.get_mut(&entry) {
                own.holders = holders;
            }
        }
        for &entry in entries.iter().rev().filter(|&&entry| !manager.seating.is_held(entry)) {
            let owner = manager.owner(entry);
            let Some(own) = ends.get_mut(&entry) else { continue };
            if clients.contains(&owner) {
                own.waiters.add(Clients::One(owner));
            }
            let waiters = own.waiters;
            for earlier in waited_for(entry) {
                if let Some(further) = ends.get_mut(&earlier) {
                    further.waiters.add(waiters);
                }
            }
        }
        entries.retain(|entry| ends.get(entry).is_some_and(Ends::are_two_clients));
        entries
    }
}

/// The clients of a component that wait through an entry, and those that they wait for.
#[derive(Default)]
struct Ends {
    waiters: Clients,
    holders: Clients,
}

impl Ends {
    /// Returns true if a client waits for another one through the entry.
    fn are_two_clients(&self) -> bool {
        match (self.waiters, self.holders) {
            (Clients::None, _) | (_, Clients::None) => false,
            (Clients::One(waiter), Clients::One(holder)) => waiter != holder,
            _ => true,
        }
    }
}

/// A set of clients, as far as the search must know it.
#[derive(Clone, Copy, Default, PartialEq)]
enum Clients {
    #[default]
    None,
    One(Index),
    Several,
}

impl Clients {
    fn add(&mut self, other: Self) {
        *self = match (*self, other) {
            (known, Self::None) => known,
            (Self::None, other) => other,
            (known, other) if known == other => known,
            _ => Self::Several,
        };
    }
}

fn lower(visits: &mut BTreeMap<Node, Visit>, node: Node, low: usize) {
    if let Some(visit) = visits.get_mut(&node) {
        visit.low = visit.low.min(low);
    }
}
