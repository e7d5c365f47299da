//! Deadlocks: cycles of requests that wait for each other.

use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use super::LockManager;
use super::graph::{Graph, Node, WaitsFor};
use crate::id::Index;
use crate::{ClientId, Name, RequestId};

/// Requests that wait for each other: no pending one of them is granted unless a holder releases
/// its lock too early, or a request is aborted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deadlock {
    /// The clients, in order of their serials.
    pub clients: Vec<ClientId>,
    /// The requests that make the cycle, held and pending, in order of their serials.
    pub requests: Vec<RequestId>,
    /// The lock that waits for itself, if the cycle is of that holder alone: a request within it
    /// needs one of its names.
    pub outer: Option<RequestId>,
    /// False if the cycle is one only because requests share a client.
    pub certain: bool,
}

/// A request in a cycle, which waits for the request of the next step.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Step {
    /// The request.
    pub request: RequestId,
    /// Its client.
    pub client: ClientId,
    /// The name for which it waits; none if it holds its lock, and the next request was made within
    /// it or, in a possible cycle, by its client.
    pub name: Option<Name>,
}

impl Deadlock {
    /// Returns the sentence about a request that waits for its own [`outer`](Self::outer) lock.
    pub fn describe_own(outer: impl fmt::Display) -> String {
        format!(
            "the request was made within lock {outer} and would wait for it for ever: work under \
             that lock, or request this one after its release"
        )
    }
}

/// The policy of an embedder when a request begins to wait and thereby closes a cycle.
///
/// Only a request that was made [within](LockManager::nest) a held one closes a cycle.
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
    /// Declares that the pending or held request `inner` was made within the held lock `outer`,
    /// whose holder keeps it until `inner` is over. Returns false, and nothing happens, unless both
    /// are live, `outer` is held, and `inner` was requested later.
    pub fn nest(&mut self, inner: RequestId, outer: RequestId) -> bool {
        let held = self.seating.find(outer).is_some_and(|entry| self.seating.is_held(entry));
        let nests = held && self.seating.find(inner).is_some() && outer.serial() < inner.serial();
        if nests {
            self.clients.nests.insert(outer, inner);
        }
        nests
    }

    /// Returns the held lock within which a request was made, if it is still held.
    pub fn outer_of(&self, request: RequestId) -> Option<RequestId> {
        let outer = self.clients.nests.outer(request)?;
        self.seating.find(outer).map(|_| outer)
    }

    /// Returns the deadlock of a pending request with a lock within which it was made, directly or
    /// not, and which excludes it. Costs O(names of its scope) for each such lock.
    pub(crate) fn own_deadlock(&self, request: RequestId) -> Option<Deadlock> {
        let entry = self.seating.find(request).filter(|&entry| !self.seating.is_held(entry))?;
        let mut requests = Vec::from([request]);
        let outers = core::iter::successors(self.outer_of(request), |&outer| self.outer_of(outer));
        let outer = outers.inspect(|&outer| requests.push(outer)).find(|&outer| {
            self.seating.find(outer).is_some_and(|outer| self.seating.excludes(outer, entry))
        })?;
        requests.reverse();
        Some(Deadlock { outer: Some(outer), ..self.deadlock_of(requests, Graph::Certain) })
    }

    /// Returns the live entries that were made within a held one.
    pub(super) fn inner_entries(&self, outer: Index) -> impl Iterator<Item = Index> + '_ {
        let inners = self.clients.nests.inners(self.seating.id(outer));
        inners.filter_map(|inner| self.seating.find(inner))
    }

    pub(super) fn deadlock_of(&self, requests: Vec<RequestId>, graph: Graph) -> Deadlock {
        let entries = requests.iter().filter_map(|&request| self.seating.find(request));
        let clients: BTreeSet<ClientId> =
            entries.map(|entry| self.clients.id(self.owner(entry))).collect();
        let (clients, certain) = (clients.into_iter().collect(), graph == Graph::Certain);
        Deadlock { clients, requests, outer: None, certain }
    }

    /// Returns all deadlocks of this moment, in order of their first request.
    ///
    /// A wait behind a limit ends when any of several holders ends, so it makes no deadlock.
    ///
    /// Costs O(n log n) in the number of entries for which nested requests wait, directly or not,
    /// and nothing while it is not called.
    pub fn deadlocks(&self) -> Vec<Deadlock> {
        self.deadlocks_within(usize::MAX).unwrap_or_default()
    }

    /// Returns the same, or none if the search would read more entries than this, counted once for
    /// each name.
    pub fn deadlocks_within(&self, entries_max: usize) -> Option<Vec<Deadlock>> {
        let outers = self.clients.nests.all_outers().filter_map(|outer| self.seating.find(outer));
        WaitsFor::new(self, Graph::Certain, entries_max).deadlocks(outers.map(Node::Entry))
    }

    /// Returns the cycles that are none if the tasks of a client do not wait for each other: each
    /// client is taken to keep its locks until all its requests are granted. A wait of a client for
    /// itself is none. Those with a request of a [deadlock](Self::deadlocks) are left out.
    ///
    /// Costs O(n log n) in the number of entries, and nothing while it is not called.
    pub fn possible_deadlocks(&self) -> Vec<Deadlock> {
        self.possible_deadlocks_within(usize::MAX).unwrap_or_default()
    }

    /// Returns the same, or none if the search would read more entries than this, counted once for
    /// each name.
    pub fn possible_deadlocks_within(&self, entries_max: usize) -> Option<Vec<Deadlock>> {
        let certain = self.deadlocks_within(entries_max)?;
        let certain: BTreeSet<RequestId> =
            certain.into_iter().flat_map(|deadlock| deadlock.requests).collect();
        let clients = self.clients.iter().map(|(client, _)| Node::Client(client));
        let mut possible = WaitsFor::new(self, Graph::Possible, entries_max).deadlocks(clients)?;
        possible.retain(|deadlock| !deadlock.requests.iter().any(|it| certain.contains(it)));
        Some(possible)
    }

    /// Returns a shortest cycle of a deadlock through one of its requests. Costs O(n log n) in the
    /// entries of its queues.
    pub fn shortest_cycle(&self, deadlock: &Deadlock) -> Vec<Step> {
        let graph = if deadlock.certain { Graph::Certain } else { Graph::Possible };
        let mut search = WaitsFor::new(self, graph, usize::MAX);
        let entries = deadlock.requests.iter().filter_map(|&request| self.seating.find(request));
        let clients = deadlock.clients.iter().filter_map(|&client| self.clients.find(client));
        let members: BTreeSet<Node> =
            entries.clone().map(Node::Entry).chain(clients.map(Node::Client)).collect();
        let paths = entries.filter_map(|start| search.path_to_itself(Node::Entry(start), &members));
        let Some(path) = paths.min_by_key(Vec::len) else { return Vec::new() };
        let entries: Vec<Index> = path
            .into_iter()
            .filter_map(|node| match node {
                Node::Entry(entry) => Some(entry),
                Node::Client(_) => None,
            })
            .collect();
        let nexts = entries.iter().cycle().skip(1);
        let step = |(&entry, &next): (&Index, &Index)| {
            let held = self.seating.is_held(entry);
            let name = if held { None } else { self.seating.common_name(entry, next) };
            let client = self.clients.id(self.owner(entry));
            Step { request: self.seating.id(entry), client, name: name.cloned() }
        };
        entries.iter().zip(nexts).map(step).collect()
    }

    /// Returns the deadlock that `request` is part of, if it is. Costs as
    /// [`deadlocks`](Self::deadlocks), but only over the entries that it waits for, directly or
    /// not. Returns none, too, if these are more than `entries_max`, counted once for each name.
    pub fn deadlock_through(&self, request: RequestId, entries_max: usize) -> Option<Deadlock> {
        let entry = self.seating.find(request)?;
        let search = WaitsFor::new(self, Graph::Certain, entries_max);
        let mut deadlocks = search.deadlocks([Node::Entry(entry)])?;
        let part = deadlocks.iter().position(|deadlock| deadlock.requests.contains(&request))?;
        Some(deadlocks.swap_remove(part))
    }
}
