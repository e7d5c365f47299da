//! A model of etcd: the keys of a cluster, the transactions of its nodes, and the registry of an
//! owned slot. `tests/cluster_model` proves the protocol; here the shipped hubs run on it.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use navlocks_server::cluster::{
    Change, ChangeNumber, Epoch, Inherited, Registry, SessionKey, SessionRecord, TakenRecord,
};
use tokio::sync::Notify;

use crate::bug::{Bug, Seeded};

/// The most operations of one transaction.
const OPERATIONS_MAX: u64 = 100;

/// A process of a node: its number and how often the node was started.
pub(crate) type Incarnation = (usize, u32);
/// A change with its number.
pub(crate) type Numbered = (ChangeNumber, Change);

/// The keys of a cluster.
#[derive(Debug)]
pub(crate) struct Etcd {
    /// False while no call is answered.
    pub(crate) has_quorum: bool,
    revision: u64,
    pub(crate) nodes: BTreeMap<Incarnation, u64>,
    pub(crate) ended: BTreeSet<Incarnation>,
    pub(crate) slots: Vec<SlotKeys>,
    pub(crate) transactions: u64,
    pub(crate) operations: u64,
    pub(crate) bug: Seeded,
}

/// The keys of one slot.
#[derive(Clone, Debug, Default)]
pub(crate) struct SlotKeys {
    pub(crate) owner: Option<Incarnation>,
    pub(crate) revision: u64,
    /// The last change of this owner that was applied.
    batch: ChangeNumber,
    pub(crate) sessions: BTreeMap<SessionKey, SessionRecord>,
    pub(crate) taken: BTreeMap<(SessionKey, u64), TakenRecord>,
    tokens: u64,
    grace_over: Option<Epoch>,
}

/// A call of a node.
#[derive(Clone, Debug)]
pub(crate) enum Call {
    Renew {
        sent: u64,
    },
    Write {
        slot: u32,
        epoch: Epoch,
        changes: Vec<Numbered>,
    },
    /// Takes slots whose keys have these revisions, from a node whose key has that one.
    Take {
        slots: Vec<(u32, u64)>,
        former: Option<(Incarnation, u64)>,
    },
    Give {
        slot: u32,
        epoch: Epoch,
    },
}

/// The answer of etcd.
#[derive(Debug)]
pub(crate) enum Answer {
    /// The node has renewed its key, unless its end is recorded.
    Renewed {
        sent: u64,
        lives: bool,
    },
    /// The changes are durable up to here, or the slot has another owner.
    Written {
        slot: u32,
        epoch: Epoch,
        upto: Option<ChangeNumber>,
    },
    Taken(Vec<(u32, Epoch, SlotKeys)>),
    Given(u32),
}

impl Etcd {
    pub(crate) fn new(slots: u32, bug: Seeded) -> Self {
        Self {
            has_quorum: true,
            revision: 1,
            nodes: BTreeMap::new(),
            ended: BTreeSet::new(),
            slots: vec![SlotKeys::default(); slots as usize],
            transactions: 0,
            operations: 0,
            bug,
        }
    }

    fn count(&mut self, operations: u64) {
        self.transactions += operations.div_ceil(OPERATIONS_MAX).max(1);
        self.operations += operations;
        self.revision += 1;
    }

    /// Carries out a call of a node. A call whose answer was lost may come again.
    pub(crate) fn call(&mut self, me: Incarnation, call: Call) -> Answer {
        match call {
            Call::Renew { sent } => {
                let lives = !self.ended.contains(&me);
                if lives {
                    self.count(1);
                    self.nodes.insert(me, self.revision);
                }
                Answer::Renewed { sent, lives }
            }
            Call::Write { slot, epoch, changes } => {
                let upto = self.write(me, slot, epoch, changes);
                Answer::Written { slot, epoch, upto }
            }
            Call::Take { slots, former } => Answer::Taken(self.take(me, &slots, former)),
            Call::Give { slot, epoch } => {
                if self.owns(me, slot, epoch) {
                    self.count(1);
                    let keys = &mut self.slots[slot as usize];
                    (keys.owner, keys.revision) = (None, self.revision);
                }
                Answer::Given(slot)
            }
        }
    }

    fn owns(&self, me: Incarnation, slot: u32, epoch: Epoch) -> bool {
        let keys = &self.slots[slot as usize];
        keys.owner == Some(me) && keys.revision == epoch.0
    }

    fn write(
        &mut self,
        me: Incarnation,
        slot: u32,
        epoch: Epoch,
        changes: Vec<Numbered>,
    ) -> Option<ChangeNumber> {
        let upto = changes.last()?.0;
        if !self.owns(me, slot, epoch) {
            return None;
        }
        // Compared like the number of a batch: an answer may have been lost.
        if self.slots[slot as usize].batch >= upto {
            return Some(upto);
        }
        self.count(1 + changes.len() as u64);
        for (_, change) in changes {
            let keys = &mut self.slots[slot as usize];
            match change {
                Change::Begin(session) => _ = keys.sessions.insert(session.key, session),
                Change::End(_) if self.bug.strikes(Bug::KeepEnded) => {}
                Change::End(session) => keys.end(session),
                Change::Taken(taken) => _ = keys.taken.insert(taken.victim, taken),
                Change::Heard(session, request) => _ = keys.taken.remove(&(session, request)),
                Change::Reserve(tokens) => keys.tokens = tokens,
                Change::GraceOver(sessions) => {
                    sessions.into_iter().for_each(|session| keys.end(session));
                    keys.grace_over = Some(epoch);
                }
            }
        }
        self.slots[slot as usize].batch = upto;
        Some(upto)
    }

    fn take(
        &mut self,
        me: Incarnation,
        slots: &[(u32, u64)],
        former: Option<(Incarnation, u64)>,
    ) -> Vec<(u32, Epoch, SlotKeys)> {
        let is_same =
            |&(slot, revision): &(u32, u64)| self.slots[slot as usize].revision == revision;
        let is_silent = former.is_none_or(|(node, revision)| {
            self.ended.contains(&node) || self.nodes.get(&node) == Some(&revision)
        });
        if self.ended.contains(&me) || !is_silent || !slots.iter().all(is_same) {
            return Vec::new();
        }
        self.count(2 + 6 * slots.len() as u64);
        if let Some((node, _)) = former {
            self.nodes.remove(&node);
            self.ended.insert(node);
        }
        let epoch = Epoch(self.revision);
        let mut taken = Vec::new();
        for &(slot, _) in slots {
            let keys = &mut self.slots[slot as usize];
            (keys.owner, keys.revision, keys.batch) = (Some(me), epoch.0, ChangeNumber::default());
            let mut found = keys.clone();
            if !found.sessions.is_empty() && self.bug.strikes(Bug::ForgetSessions) {
                found.sessions.clear();
            }
            taken.push((slot, epoch, found));
        }
        taken
    }
}

impl SlotKeys {
    fn end(&mut self, session: SessionKey) {
        self.sessions.remove(&session);
        self.taken.retain(|(victim, _), _| *victim != session);
    }

    pub(crate) fn inherit(self, won_at: Instant) -> Inherited {
        Inherited {
            sessions: self.sessions.into_values().collect(),
            taken: self.taken.into_values().collect(),
            tokens_reserved_to: self.tokens,
            grace_over: self.grace_over,
            won_at,
            is_complete: true,
        }
    }
}

/// The time of the world, and until when a node believes in its slots.
#[derive(Debug, Default)]
pub(crate) struct Belief {
    pub(crate) now: Cell<u64>,
    pub(crate) until: Cell<u64>,
}

/// The registry of a slot, for its owner.
#[derive(Debug)]
pub(crate) struct OwnedSlot {
    slot: u32,
    epoch: Epoch,
    belief: Rc<Belief>,
    changes: RefCell<Vec<Numbered>>,
    last: Cell<ChangeNumber>,
    confirmed: Cell<ChangeNumber>,
    is_writing: Cell<bool>,
    is_over: Cell<bool>,
}

impl OwnedSlot {
    pub(crate) fn new(slot: u32, epoch: Epoch, belief: Rc<Belief>) -> Self {
        Self {
            slot,
            epoch,
            belief,
            changes: RefCell::default(),
            last: Cell::default(),
            confirmed: Cell::default(),
            is_writing: Cell::default(),
            is_over: Cell::default(),
        }
    }

    /// Returns the next write: all changes since the last one was answered.
    pub(crate) fn next_write(&self) -> Option<Call> {
        if self.is_writing.get() || self.changes.borrow().is_empty() {
            return None;
        }
        self.is_writing.set(true);
        let (slot, epoch, changes) = (self.slot, self.epoch, self.changes.take());
        Some(Call::Write { slot, epoch, changes })
    }

    pub(crate) fn written(&self, upto: Option<ChangeNumber>) {
        self.is_writing.set(false);
        match upto {
            Some(upto) => self.confirmed.set(upto),
            None => self.end(),
        }
    }

    pub(crate) fn end(&self) {
        self.is_over.set(true);
    }
}

impl Registry for OwnedSlot {
    fn slot(&self) -> u32 {
        self.slot
    }

    fn epoch(&self) -> Epoch {
        self.epoch
    }

    fn may_send(&self) -> bool {
        !self.is_over.get() && self.belief.now.get() < self.belief.until.get()
    }

    fn write(&self, change: Change) -> ChangeNumber {
        let number = ChangeNumber(self.last.get().0 + 1);
        self.last.set(number);
        self.changes.borrow_mut().push((number, change));
        number
    }

    fn confirmed(&self) -> ChangeNumber {
        self.confirmed.get()
    }

    fn is_flushed(&self) -> bool {
        self.confirmed.get() >= self.last.get()
    }

    fn is_over(&self) -> bool {
        self.is_over.get()
    }

    fn news(&self) -> Arc<Notify> {
        Arc::default()
    }
}
