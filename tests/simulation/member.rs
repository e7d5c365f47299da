//! A node's part in a cluster: it renews its key, finds silent nodes, and chooses slots to take and
//! to give. A short form of `navlocks-etcd`, over the model of etcd.

use std::collections::BTreeMap;
use std::rc::Rc;

use navlocks_server::cluster::{Hash, Registry as _};

use crate::etcd::{Belief, Call, Etcd, Incarnation, OwnedSlot};

/// The node lease: the successor of a dead node begins after it.
pub(crate) const NODE_LEASE: u64 = 1000;
/// The most slots that one transaction takes.
const SLOTS_AT_A_TIME: usize = 16;

#[derive(Debug)]
pub(crate) struct Member {
    pub(crate) me: Incarnation,
    pub(crate) belief: Rc<Belief>,
    pub(crate) owned: BTreeMap<u32, Rc<OwnedSlot>>,
    /// Slots that are not served any more and not given yet.
    pub(crate) giving: BTreeMap<u32, Rc<OwnedSlot>>,
    /// The revision of each node's key, and since when it is that.
    seen: BTreeMap<Incarnation, (u64, u64)>,
    looked: u64,
    renewal: Option<u64>,
    /// How many calls that take slots are not answered yet.
    taking: u32,
    pub(crate) drains: bool,
}

/// The next steps of a node.
#[derive(Debug, Default)]
pub(crate) struct Steps {
    pub(crate) calls: Vec<Call>,
    pub(crate) lost: Vec<u32>,
    /// Slots that another node should have.
    pub(crate) give: Vec<(u32, usize)>,
}

impl Member {
    pub(crate) fn new(me: Incarnation) -> Self {
        Self {
            me,
            belief: Rc::default(),
            owned: BTreeMap::new(),
            giving: BTreeMap::new(),
            seen: BTreeMap::new(),
            looked: 0,
            renewal: None,
            taking: 0,
            drains: false,
        }
    }

    /// Takes the answer to a renewal.
    pub(crate) fn renewed(&mut self, sent: u64) {
        self.renewal = None;
        self.belief.until.set(self.belief.until.get().max(sent + NODE_LEASE * 7 / 8));
    }

    pub(crate) fn taken(&mut self) {
        self.taking -= 1;
    }

    /// Returns the node that should have a slot.
    fn target(&self, slot: u32, live: &[Incarnation]) -> Option<Incarnation> {
        live.iter().copied().max_by_key(|(node, _)| {
            let mut hash = Hash::new();
            hash.add(&(*node as u64).to_le_bytes());
            hash.add(&slot.to_le_bytes());
            hash.end()
        })
    }

    pub(crate) fn look(&mut self, etcd: &Etcd, drains: &[Incarnation], now: u64) -> Steps {
        let mut steps = Steps::default();
        let writes = self.owned.values().chain(self.giving.values());
        steps.calls.extend(writes.filter_map(|slot| slot.next_write()));
        let due = (self.belief.until.get() + NODE_LEASE / 4).saturating_sub(NODE_LEASE * 7 / 8);
        if self.renewal.is_none() && now >= due {
            self.renewal = Some(now);
            steps.calls.push(Call::Renew { sent: now });
        }
        if !etcd.has_quorum {
            return steps;
        }
        // A node that has read nothing for a time counts the silence of others anew.
        let was_deaf = now > self.looked + NODE_LEASE / 4;
        self.looked = now;
        self.seen.retain(|node, _| etcd.nodes.contains_key(node));
        for (&node, &revision) in &etcd.nodes {
            let seen = self.seen.entry(node).or_insert((revision, now));
            if was_deaf || seen.0 != revision {
                *seen = (revision, now);
            }
        }
        self.plan(etcd, drains, now, &mut steps);
        steps
    }

    fn plan(&mut self, etcd: &Etcd, drains: &[Incarnation], now: u64, steps: &mut Steps) {
        let is_live = |node: &Incarnation| {
            *node == self.me || self.seen.get(node).is_some_and(|seen| now < seen.1 + NODE_LEASE)
        };
        let nodes = etcd.nodes.keys().copied();
        let live: Vec<Incarnation> =
            nodes.filter(|node| is_live(node) && !drains.contains(node)).collect();
        let mut takes: BTreeMap<Option<Incarnation>, Vec<(u32, u64)>> = BTreeMap::new();
        let mut may_give = self.giving.is_empty() || self.drains;
        for (slot, keys) in (0..).zip(&etcd.slots) {
            let Some(target) = self.target(slot, &live) else { continue };
            if let Some(owned) = self.owned.get(&slot) {
                if owned.is_over() || owned.epoch().0 != keys.revision {
                    steps.lost.push(slot);
                } else if target != self.me && may_give {
                    may_give = self.drains;
                    steps.give.push((slot, target.0));
                }
            } else if !self.giving.contains_key(&slot)
                && self.taking == 0
                && (target == self.me || keys.owner == Some(self.me))
                && etcd.nodes.contains_key(&self.me)
                && keys.owner.is_none_or(|owner| owner == self.me || !is_live(&owner))
            {
                let former = keys.owner.filter(|owner| *owner != self.me);
                takes.entry(former).or_default().push((slot, keys.revision));
            }
        }
        for (former, slots) in takes {
            let revision = |node: Incarnation| (node, self.seen.get(&node).map_or(0, |it| it.0));
            for slots in slots.chunks(SLOTS_AT_A_TIME) {
                self.taking += 1;
                let (slots, former) = (slots.to_vec(), former.map(revision));
                steps.calls.push(Call::Take { slots, former });
            }
        }
    }
}
