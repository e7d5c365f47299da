//! The wait-for graph: the requests of one moment with their blockers, and the cycles among them.

use std::collections::{BTreeMap, BTreeSet};

use navlocks::deadlock::Cycle;
use navlocks::{BlockedBy, ClientId, Explained, Locks, Name, RequestId, RequestInfo, Snapshot};

use crate::command::duration::say;
use crate::command::target::Target;
use crate::exit::Failure;
use crate::printer::Harmless;

/// The requests of one moment, and the blockers of the pending ones.
#[derive(Debug, Default)]
pub(crate) struct Waits {
    infos: BTreeMap<RequestId, RequestInfo>,
    /// The pending requests that were looked at, in queue order.
    pub(crate) pending: Vec<RequestId>,
    waits: BTreeMap<RequestId, BlockedBy>,
    pub(crate) cycles: Vec<Cycle>,
    /// Cycles that are none if tasks of one client do not wait for each other.
    possible: Vec<Cycle>,
    /// The number of pending requests that were not looked at.
    pub(crate) left_out: usize,
    /// The options of a command that reaches the same locks.
    options: String,
}

/// A client that waits for another one.
#[derive(Debug)]
pub(crate) struct Edge<'a> {
    /// The pending request, or a lock of a client whose command waits.
    pub(crate) waiter: &'a RequestInfo,
    pub(crate) blocker: &'a RequestInfo,
    pub(crate) over: Over<'a>,
}

/// The reason of a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Over<'a> {
    /// The blocker holds this name.
    Held(&'a Name),
    /// The blocker is an earlier pending request for this name.
    Earlier(&'a Name),
    /// The blocker is a request of the command that runs under the lock of the waiter.
    Command,
}

impl Waits {
    /// Asks the service about requests, all at one moment.
    pub(crate) async fn ask(
        target: &Target,
        locks: &Locks,
        explained: Explained,
    ) -> Result<Self, Failure> {
        let answer = target.answer(locks.waits(explained)).await?;
        let (cycles, possible) = answer.cycles.into_iter().partition(Cycle::is_certain);
        let Snapshot { held, pending, .. } = answer.requests;
        Ok(Self {
            pending: answer.waits.iter().map(|wait| wait.request).collect(),
            waits: answer.waits.into_iter().map(|wait| (wait.request, wait)).collect(),
            infos: held.into_iter().chain(pending).map(|info| (info.request, info)).collect(),
            cycles,
            possible,
            left_out: answer.more,
            options: target.options(),
        })
    }

    pub(crate) fn info(&self, request: RequestId) -> Option<&RequestInfo> {
        self.infos.get(&request)
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = &RequestInfo> {
        self.infos.values()
    }

    /// Returns the numbers of held locks and of earlier requests that block a request.
    pub(crate) fn count(&self, request: RequestId) -> (usize, usize) {
        self.waits.get(&request).map_or((0, 0), |it| (it.holders, it.before))
    }

    /// Returns the blockers of a request: all held locks, or else the last earlier request.
    fn edges_of(&self, request: RequestId) -> Vec<Edge<'_>> {
        let Some(waiter) = self.info(request) else { return Vec::new() };
        let Some(BlockedBy { hard, soft, .. }) = self.waits.get(&request) else {
            return Vec::new();
        };
        let (by, over): (_, fn(_) -> _) = match &hard[..] {
            [] => (soft.as_slice(), Over::Earlier),
            hard => (hard, Over::Held),
        };
        let edge = |id: &RequestId| {
            let blocker = self.info(*id)?;
            let common = waiter.scope.names().iter().find(|name| blocker.scope.contains(name))?;
            Some(Edge { waiter, blocker, over: over(common) })
        };
        by.iter().filter_map(edge).collect()
    }

    /// Returns all waits: those of pending requests, and those of clients for their commands.
    pub(crate) fn edges(&self) -> Vec<Edge<'_>> {
        let mut edges: Vec<Edge<'_>> =
            self.pending.iter().flat_map(|id| self.edges_of(*id)).collect();
        for blocker in self.pending.iter().filter_map(|id| self.info(*id)) {
            // Within one program, the same client has both.
            let outer = blocker.within.and_then(|outer| self.info(outer));
            let waiter = outer.filter(|outer| outer.client != blocker.client);
            edges.extend(waiter.map(|waiter| Edge { waiter, blocker, over: Over::Command }));
        }
        edges
    }

    pub(crate) fn is_deadlocked(&self, client: ClientId) -> bool {
        self.cycles.iter().any(|cycle| cycle.clients().contains(&client))
    }

    /// Returns two lines for each deadlock that a predicate selects, its clients and a remedy, and
    /// a line for each possible one.
    pub(crate) fn deadlocks(&self, wanted: impl Fn(&Cycle) -> bool) -> Vec<String> {
        let mut lines = Vec::new();
        for cycle in self.cycles.iter().filter(|cycle| wanted(cycle)) {
            let clients = cycle.clients();
            let names: Vec<String> = clients.iter().map(|client| self.client(*client)).collect();
            lines.push(format!("deadlock of {} clients: {}", names.len(), names.join(", ")));
            lines.extend(self.remedy(cycle));
        }
        lines.extend(self.possible_deadlocks(wanted));
        lines
    }

    /// Returns a line for each possible deadlock that a predicate selects.
    pub(crate) fn possible_deadlocks(&self, wanted: impl Fn(&Cycle) -> bool) -> Vec<String> {
        let line = |cycle: &Cycle| {
            let names: Vec<String> = cycle.clients().iter().map(|it| self.client(*it)).collect();
            let count = names.len();
            format!(
                "possible deadlock of {count} clients, if it is the holders of their locks that wait: {}",
                names.join(", ")
            )
        };
        self.possible.iter().filter(|cycle| wanted(cycle)).map(line).collect()
    }

    /// Returns a way to break a deadlock.
    pub(crate) fn remedy(&self, cycle: &Cycle) -> Option<String> {
        let is_part = |info: &RequestInfo| cycle.clients().contains(&info.client);
        let edges = self.edges().into_iter();
        let edges = edges.filter(|edge| is_part(edge.waiter) && is_part(edge.blocker));
        let held = edges.map(|edge| edge.blocker).filter(|info| info.token.is_some());
        let info = held.min_by_key(|info| info.age)?;
        Some(format!(
            "to break it, release the lock that was held for the shortest time, {}, of {}: navlocks release --force{} {}",
            say(info.age),
            who(info),
            self.options,
            quoted(&info.scope.names()[0].to_string())
        ))
    }

    /// Returns the clients that these clients wait for, directly or not, and themselves.
    pub(crate) fn reached(&self, from: impl Iterator<Item = ClientId>) -> BTreeSet<ClientId> {
        let edges = self.edges();
        let mut found: BTreeSet<ClientId> = BTreeSet::new();
        let mut next: Vec<ClientId> = from.collect();
        while let Some(client) = next.pop() {
            if found.insert(client) {
                let own = edges.iter().filter(|edge| edge.waiter.client == client);
                next.extend(own.map(|edge| edge.blocker.client));
            }
        }
        found
    }

    fn client(&self, client: ClientId) -> String {
        let known = self.all().find(|info| info.client == client);
        known.map_or_else(|| format!("client {client}"), who)
    }

    /// Returns the clients that block others: first those that wait for none, then one of each
    /// cycle, then the rest, whose tasks may wait for each other without a deadlock.
    pub(crate) fn roots(&self) -> Vec<ClientId> {
        let edges = self.edges();
        let waiting: BTreeSet<ClientId> = edges.iter().map(|edge| edge.waiter.client).collect();
        let mut roots: Vec<ClientId> = Vec::new();
        let blocking = || edges.iter().map(|edge| edge.blocker.client);
        let caught = self.cycles.iter().filter_map(|cycle| cycle.clients().first().copied());
        let free = blocking().filter(|client| !waiting.contains(client));
        for client in free.chain(caught).chain(blocking()) {
            if !roots.contains(&client) {
                roots.push(client);
            }
        }
        roots
    }
}

/// Returns a client in words: its tag, its process, its number.
pub(crate) fn who(info: &RequestInfo) -> String {
    let tag = info.tag.as_deref().map(|tag| format!("{} ", Harmless(tag))).unwrap_or_default();
    let pid = info.pid.map(|pid| format!("pid {pid}, ")).unwrap_or_default();
    let stopped = if info.stopped { "stopped, " } else { "" };
    format!("{tag}({pid}{stopped}client {})", info.client)
}

/// Returns a text as one word of a shell.
pub(crate) fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}
