//! The wait-for graph: the requests of one moment with their blockers, and the cycles among them.

use std::collections::{BTreeMap, BTreeSet};

use navlocks::{Blockers, ClientId, LockInfo, Locks, Name, RequestId, Snapshot};

use super::duration::say;
use super::target::Target;
use crate::exit::Failure;
use crate::printer::Harmless;

/// The most pending requests whose blockers are asked for.
const ASKED_MAX: usize = 500;

/// The requests of one moment, and the blockers of the pending ones.
#[derive(Debug, Default)]
pub(super) struct Waits {
    infos: BTreeMap<RequestId, LockInfo>,
    /// The pending requests that were looked at, in queue order.
    pub(super) pending: Vec<RequestId>,
    blockers: BTreeMap<RequestId, Blockers>,
    /// The clients of each cycle.
    pub(super) cycles: Vec<Vec<ClientId>>,
    /// The number of pending requests that were not looked at.
    pub(super) left_out: usize,
}

/// A client that waits for another one.
#[derive(Debug)]
pub(super) struct Edge<'a> {
    pub(super) waiter: &'a LockInfo,
    pub(super) blocker: &'a LockInfo,
    pub(super) name: Name,
    /// True if the blocker holds its lock; otherwise it is an earlier pending request.
    pub(super) hard: bool,
}

impl Waits {
    /// Asks the service about all requests.
    pub(super) async fn ask(
        target: &Target,
        locks: &Locks,
        snapshot: Snapshot,
    ) -> Result<Self, Failure> {
        Self::ask_about(target, locks, snapshot, |_, _| true).await
    }

    /// Asks the service about deadlocked clients.
    pub(super) async fn ask_caught(
        target: &Target,
        locks: &Locks,
        snapshot: Snapshot,
    ) -> Result<Self, Failure> {
        Self::ask_about(target, locks, snapshot, |waits, info| waits.is_deadlocked(info.client))
            .await
    }

    async fn ask_about(
        target: &Target,
        locks: &Locks,
        snapshot: Snapshot,
        wanted: fn(&Self, &LockInfo) -> bool,
    ) -> Result<Self, Failure> {
        let mut waits = Self::default();
        if !snapshot.pending.is_empty() {
            let cycles = target.answer(locks.deadlocks()).await?;
            waits.cycles = cycles.iter().map(|cycle| cycle.clients().to_vec()).collect();
        }
        let asked: Vec<RequestId> = snapshot
            .pending
            .iter()
            .filter(|info| wanted(&waits, info))
            .take(ASKED_MAX)
            .map(|info| info.request)
            .collect();
        for request in asked {
            let blockers = target.answer(locks.blockers(request)).await?;
            waits.pending.push(request);
            waits.blockers.insert(request, blockers);
        }
        waits.left_out = snapshot.pending.len().saturating_sub(ASKED_MAX);
        let all = snapshot.held.into_iter().chain(snapshot.pending);
        waits.infos = all.map(|info| (info.request, info)).collect();
        Ok(waits)
    }

    pub(super) fn info(&self, request: RequestId) -> Option<&LockInfo> {
        self.infos.get(&request)
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &LockInfo> {
        self.infos.values()
    }

    /// Returns the numbers of held locks and of earlier requests that block a request.
    pub(super) fn count(&self, request: RequestId) -> (usize, usize) {
        self.blockers.get(&request).map_or((0, 0), |it| (it.hard.len(), it.soft.len()))
    }

    /// Returns the blockers of a request: all held locks, or else the last earlier request.
    pub(super) fn edges(&self, request: RequestId) -> Vec<Edge<'_>> {
        let Some(waiter) = self.info(request) else { return Vec::new() };
        let Some(blockers) = self.blockers.get(&request) else { return Vec::new() };
        let hard = !blockers.hard.is_empty();
        let last = blockers.soft.len().saturating_sub(1);
        let by = if hard { &blockers.hard[..] } else { &blockers.soft[last..] };
        let edge = |id: &RequestId| {
            let blocker = self.info(*id)?;
            let common = waiter.scope.names().iter().find(|name| blocker.scope.contains(name))?;
            Some(Edge { waiter, blocker, name: common.clone(), hard })
        };
        by.iter().filter_map(edge).collect()
    }

    /// Returns the pending requests of a client.
    pub(super) fn pending_of(&self, client: ClientId) -> impl Iterator<Item = RequestId> + '_ {
        let of_client = move |id: &RequestId| self.info(*id).is_some_and(|it| it.client == client);
        self.pending.iter().copied().filter(of_client)
    }

    pub(super) fn is_deadlocked(&self, client: ClientId) -> bool {
        self.cycles.iter().any(|cycle| cycle.contains(&client))
    }

    /// Returns a line for each deadlock, and one with a way to break it.
    pub(super) fn deadlocks(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for cycle in &self.cycles {
            let names: Vec<String> = cycle.iter().map(|client| self.client(*client)).collect();
            let what = match cycle.len() {
                1 => format!("deadlock: {} waits for itself", names[0]),
                count => format!("deadlock of {count} clients: {}", names.join(", ")),
            };
            lines.push(what);
            let held = |info: &&LockInfo| info.token.is_some() && cycle.contains(&info.client);
            let blocks = |info: &&LockInfo| {
                let edges = cycle.iter().flat_map(|it| self.pending_of(*it));
                edges.flat_map(|it| self.edges(it)).any(|it| it.blocker.request == info.request)
            };
            let cheapest = self.all().filter(held).filter(blocks).min_by_key(|info| info.age);
            if let Some(info) = cheapest {
                lines.push(format!(
                    "to break it, release the lock that was held for the shortest time, {}, of {}: navlocks release --force '{}'",
                    say(info.age),
                    who(info),
                    info.scope.names()[0]
                ));
            }
        }
        lines
    }

    fn client(&self, client: ClientId) -> String {
        let known = self.all().find(|info| info.client == client);
        known.map_or_else(|| format!("client {client}"), who)
    }

    /// Returns the clients that block others and wait for none, then one of each cycle.
    pub(super) fn roots(&self) -> Vec<ClientId> {
        let waiting: BTreeSet<ClientId> =
            self.pending.iter().filter_map(|id| self.info(*id)).map(|info| info.client).collect();
        let mut blocking: Vec<ClientId> = Vec::new();
        for edge in self.pending.iter().flat_map(|id| self.edges(*id)) {
            if !blocking.contains(&edge.blocker.client) {
                blocking.push(edge.blocker.client);
            }
        }
        let caught = self.cycles.iter().filter_map(|cycle| cycle.first().copied());
        let free = blocking.into_iter().filter(|client| !waiting.contains(client));
        free.chain(caught).collect()
    }
}

/// Returns a client in words: its tag, its process, its number.
pub(super) fn who(info: &LockInfo) -> String {
    let tag = info.tag.as_deref().map(|tag| format!("{} ", Harmless(tag))).unwrap_or_default();
    let pid = info.pid.map(|pid| format!("pid {pid}, ")).unwrap_or_default();
    format!("{tag}({pid}client {})", info.client)
}
