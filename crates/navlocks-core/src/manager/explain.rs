//! Explanations: the waits, the cycles and the requests of one moment.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use super::{Blockers, Deadlock, LockManager, RequestInfo, Snapshot};
use crate::{ClientId, RequestId};

/// The waits of one moment, from [`LockManager::explain`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Explanation {
    /// The requests that are explained.
    pub requests: Snapshot,
    /// The waits of the first pending ones, in queue order.
    pub waits: Vec<BlockedBy>,
    /// The certain deadlocks, and then the possible ones.
    pub deadlocks: Vec<Deadlock>,
    /// How many further pending requests were not looked at.
    pub more: usize,
}

/// A pending request, and what it waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockedBy {
    /// The request.
    pub request: RequestId,
    /// The first held locks that conflict with it, in grant order.
    pub hard: Vec<RequestId>,
    /// The last earlier request that conflicts with it and waits itself.
    pub soft: Option<RequestId>,
    /// How many held locks conflict with it.
    pub holders: usize,
    /// How many earlier requests conflict with it and wait themselves.
    pub before: usize,
}

/// The requests that an explanation is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Explained {
    /// All.
    All,
    /// Those of clients in deadlocks, certain or possible.
    Deadlocked,
}

/// The bounds of an explanation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExplainBounds {
    /// The waits that are listed.
    pub waits_max: usize,
    /// The holders of each wait that are listed.
    pub holders_max: usize,
    /// The entries that the search for deadlocks reads, and those that all waits pass.
    pub entries_max: usize,
}

impl Default for ExplainBounds {
    fn default() -> Self {
        Self { waits_max: 500, holders_max: 16, entries_max: usize::MAX }
    }
}

impl LockManager {
    /// Returns the requests, waits and cycles of this moment. Returns none if the search for
    /// deadlocks would read too many entries.
    pub fn explain(&self, explained: Explained, bounds: ExplainBounds) -> Option<Explanation> {
        let mut deadlocks = Vec::new();
        if self.pending_count() > 0 {
            deadlocks = self.deadlocks_within(bounds.entries_max)?;
            deadlocks.extend(self.possible_deadlocks_within(bounds.entries_max)?);
        }
        let mut requests = Snapshot::default();
        match explained {
            Explained::All => requests = self.snapshot(),
            Explained::Deadlocked if deadlocks.is_empty() => {}
            Explained::Deadlocked => {
                let caught: BTreeSet<ClientId> =
                    deadlocks.iter().flat_map(|deadlock| &deadlock.clients).copied().collect();
                requests = self.snapshot();
                let is_caught = |info: &RequestInfo| caught.contains(&info.client);
                requests.held.retain(is_caught);
                requests.pending.retain(is_caught);
            }
        }
        let mut waits = Vec::new();
        let mut left = bounds.entries_max;
        for info in requests.pending.iter().take(bounds.waits_max) {
            let Some(blockers) = self.blockers_within(info.request, left) else { break };
            let Blockers { mut hard, soft } = blockers;
            let (holders, before) = (hard.len(), soft.len());
            left = left.saturating_sub(holders + before);
            hard.truncate(bounds.holders_max);
            let soft = soft.last().copied();
            waits.push(BlockedBy { request: info.request, hard, soft, holders, before });
        }
        let more = requests.pending.len() - waits.len();
        Some(Explanation { requests, waits, deadlocks, more })
    }
}
