//! Deadlocks: cycles of clients that wait for each other.
//!
//! The graph has a node for each entry and each client. A pending entry waits for the earlier
//! entries that it conflicts with. A held one waits for its client, which may keep it until all its
//! requests are granted. A client waits for its pending entries and for its children. A strongly
//! connected component with more than one client is a deadlock. Its requests are those by which
//! one of its clients waits for another: the tasks of one client may release independently.
//!
//! Entries of one queue need few edges: an exclusive one waits for the run of shared ones right
//! before it, or else for the exclusive one there. That one in turn waits for those before. So the
//! graph is no larger than the queues.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use super::LockManager;
use crate::id::Index;
use crate::{ClientId, Mode, RequestId};

/// Clients that wait for each other: none of their requests here is granted unless one of them
/// releases a lock or aborts a request. A client that waits only for itself is none, because its
/// tasks may release independently.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deadlock {
    /// The clients, in order of their serials.
    pub clients: Vec<ClientId>,
    /// The requests that make the cycle, held and pending, in order of their serials.
    pub requests: Vec<RequestId>,
}

/// The policy of an embedder when a request begins to wait and thereby closes a cycle of clients
/// that wait for each other.
///
/// Between two clients, each is taken to keep its locks until all its requests are granted. A
/// client that waits for its own lock closes no cycle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DeadlockPolicy {
    /// The request waits, and a question about deadlocks reports the cycle. The default, and free
    /// of cost.
    #[default]
    Ignore,
    /// The request waits, and the event stream reports the cycle.
    Report,
    /// The request fails, and its error names the cycle.
    Refuse,
}

impl LockManager {
    /// Returns all deadlocks of this moment, in order of their first request.
    ///
    /// Between two clients, each is taken to keep its locks until all its requests are granted. A
    /// client that would release sooner, because its tasks do not wait for each other, is reported
    /// all the same. A wait of a client for itself is not.
    ///
    /// Costs O(n log n) in the number of entries, and nothing while it is not called.
    pub fn deadlocks(&self) -> Vec<Deadlock> {
        self.deadlocks_within(usize::MAX).unwrap_or_default()
    }

    /// Returns the same, or none if the search would read more entries than this, counted once for
    /// each name.
    pub fn deadlocks_within(&self, entries_max: usize) -> Option<Vec<Deadlock>> {
        let clients = self.clients.iter().map(|(client, _)| Node::Client(client));
        let mut deadlocks = WaitsFor::new(self, entries_max).components(clients)?;
        deadlocks.sort_unstable_by_key(|deadlock| deadlock.requests[0]);
        Some(deadlocks)
    }

    /// Declares that `parent` keeps its locks until `child` ends: a program that waits for one that
    /// it started. Only the search for deadlocks uses it. Returns false when one of them is not
    /// known.
    pub fn add_child(&mut self, parent: ClientId, child: ClientId) -> bool {
        let known = self.clients.find(parent).zip(self.clients.find(child));
        if let Some((parent, child)) = known {
            self.clients.add_child(parent, child);
        }
        known.is_some()
    }

    /// Returns the deadlock that `request` is part of, if it is. Costs as
    /// [`deadlocks`](Self::deadlocks), but only over the entries that it waits for, directly or
    /// not. Returns none, too, if these are more than `entries_max`, counted once for each name.
    pub fn deadlock_through(&self, request: RequestId, entries_max: usize) -> Option<Deadlock> {
        let entry = self.seating.find(request)?;
        let mut deadlocks = WaitsFor::new(self, entries_max).components([Node::Entry(entry)])?;
        let part = deadlocks.iter().position(|deadlock| deadlock.requests.contains(&request))?;
        Some(deadlocks.swap_remove(part))
    }
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Node {
    Entry(Index),
    Client(Index),
}

/// The graph, built as far as the search goes.
struct WaitsFor<'a> {
    manager: &'a LockManager,
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
    fn new(manager: &'a LockManager, entries_max: usize) -> Self {
        let (scanned, before) = (BTreeSet::new(), BTreeMap::new());
        Self { manager, scanned, before, left: entries_max }
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
                for child in manager.clients.children(client) {
                    self.count_read()?;
                    successors.push(Node::Client(child));
                }
            }
            Node::Entry(entry) if manager.seating.is_held(entry) => {
                successors.push(Node::Client(manager.owner(entry)));
            }
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

    /// Returns the deadlocks among all nodes that can be reached from `roots`: Tarjan's algorithm,
    /// without recursion. Returns none if the search would read too many entries.
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

    /// Returns a component as a deadlock, if it has more than one client.
    fn deadlock(&self, component: &[Node]) -> Option<Deadlock> {
        let is_client = |node: &&Node| matches!(node, Node::Client(_));
        if component.iter().filter(is_client).count() < 2 {
            return None;
        }
        let Self { manager, .. } = self;
        let entries = self.entries_between_clients(component);
        let clients = entries.iter().map(|&entry| manager.clients.id(manager.owner(entry)));
        let clients: BTreeSet<ClientId> = clients.collect();
        let mut requests: Vec<RequestId> =
            entries.iter().map(|&entry| manager.seating.id(entry)).collect();
        requests.sort_unstable();
        let clients = clients.into_iter().collect();
        (!requests.is_empty()).then_some(Deadlock { clients, requests })
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
