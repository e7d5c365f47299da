//! Which slots a node takes and gives away now: a function of what it has seen and of the time.

use std::collections::BTreeSet;

use crate::clock::Moment;
use crate::keys::hashing;
use crate::keys::record::Incarnation;
use crate::view::{SeenNode, View};

/// The next step of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Takes a slot, if its key has not changed.
    Take { slot: u32, former: Former },
    /// Asks the service to stop serving a slot, which another node should have.
    Give { slot: u32, to: Incarnation },
}

/// The owner from which a slot is taken, and why its belief is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Former {
    /// There is none: the slot is new, or its owner gave it away, or it is this node itself.
    None,
    /// Its key has not changed for a whole node lease and is ended by the take-over.
    Silent { node: Incarnation, revision: i64 },
    /// Its end is recorded.
    Ended(Incarnation),
    /// Its key was deleted by hand, a whole node lease ago or more.
    Missing(Incarnation),
}

impl Former {
    /// Returns the former owner after a slot was taken from it, which records its end.
    pub(crate) fn recorded(self) -> Self {
        match self {
            Self::None => Self::None,
            Self::Silent { node, .. } | Self::Ended(node) | Self::Missing(node) => {
                Self::Ended(node)
            }
        }
    }
}

/// The steps of the node `me`, which holds the slots of `held` and is giving some of them away.
pub(crate) fn steps(
    view: &View,
    me: Incarnation,
    held: &BTreeSet<u32>,
    giving: &BTreeSet<u32>,
    now: Moment,
) -> Vec<Step> {
    let is_live = |node: &SeenNode| !view.is_silent(node, now);
    let live: Vec<(&Incarnation, &SeenNode)> =
        view.nodes.iter().filter(|(number, node)| **number == me || is_live(node)).collect();
    let is_draining = view.nodes.get(&me).is_some_and(|node| node.is_draining);
    let target = |slot: u32| {
        let names = live.iter().filter(|(_, node)| !node.is_draining);
        let name = hashing::node_of(slot, names.map(|(_, node)| node.name.as_str()))?;
        // Of two nodes with one name, the one that began earlier counts until it is silent.
        let named = live.iter().filter(|(_, node)| node.name == name);
        named.min_by_key(|(_, node)| node.created).map(|(number, _)| **number)
    };
    let mut steps = Vec::new();
    let mut may_give = giving.is_empty() || is_draining;
    for (slot, seen) in (0..).zip(&view.slots) {
        let take = |former| Step::Take { slot, former };
        // A node that failed to give its slot takes it again first, because no other node can.
        if seen.node == Some(me) && !held.contains(&slot) {
            steps.push(take(Former::None));
            continue;
        }
        let Some(target) = target(slot) else { continue };
        if held.contains(&slot) {
            if target != me && may_give && !giving.contains(&slot) {
                steps.push(Step::Give { slot, to: target });
                may_give = is_draining;
            }
            continue;
        }
        let former = match seen.node {
            None => Some(Former::None),
            Some(owner) if view.ended.contains(&owner) => Some(Former::Ended(owner)),
            Some(owner) => match (view.nodes.get(&owner), view.missing.get(&owner)) {
                (Some(node), _) if view.is_silent(node, now) => {
                    Some(Former::Silent { node: owner, revision: node.revision })
                }
                (None, Some(since)) if now.since(*since) >= view.node_lease() => {
                    Some(Former::Missing(owner))
                }
                _ => None,
            },
        };
        if let Some(former) = former
            && target == me
        {
            steps.push(take(former));
        }
    }
    steps
}

/// Nodes whose end is recorded and that no slot names any more.
pub(crate) fn forgotten(view: &View) -> Vec<Incarnation> {
    let is_named = |node: &Incarnation| view.slots.iter().any(|slot| slot.node == Some(*node));
    view.ended.iter().copied().filter(|node| !is_named(node)).collect()
}

/// Drained nodes that are gone.
pub(crate) fn undrained(view: &View) -> Vec<Incarnation> {
    view.drains.iter().copied().filter(|node| !view.nodes.contains_key(node)).collect()
}

/// Returns other nodes that are silent and own no slot, with the revisions of their keys. A node
/// whose first write was not answered leaves such a key, because it joins again as another one.
pub(crate) fn abandoned(view: &View, me: Incarnation, now: Moment) -> Vec<(Incarnation, i64)> {
    let is_named = |node: &Incarnation| view.slots.iter().any(|slot| slot.node == Some(*node));
    let silent = view.nodes.iter().filter(|(_, node)| view.is_silent(node, now));
    let abandoned = silent.filter(|(node, _)| **node != me && !is_named(node));
    abandoned.map(|(node, seen)| (*node, seen.revision)).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::time::Duration;

    use super::*;
    use crate::keys::record::{ClusterRecord, VERSION};
    use crate::view::SeenSlot;

    const ME: u64 = 1;
    const OTHER: u64 = 2;

    fn at(seconds: u64) -> Moment {
        Moment::new(Duration::from_secs(seconds))
    }

    fn node(name: &str, revision: i64, since: u64) -> SeenNode {
        let name = name.to_owned();
        let (address, since, created) = (String::new(), at(since), revision);
        SeenNode { name, address, seats: 0, revision, created, since, is_draining: false }
    }

    /// Two nodes, seen at second 100, and slots of this owner.
    fn view(owner: Option<u64>) -> View {
        let slot = SeenSlot { node: owner.map(Incarnation::numbered), revision: 7, epoch_floor: 0 };
        View {
            cluster: ClusterRecord {
                secret: String::new(),
                version: VERSION,
                slots: 16,
                node_lease_ms: 5_000,
                etcd: String::new(),
                restored: 0,
                epoch_floor: 0,
            },
            nodes: BTreeMap::from([
                (Incarnation::numbered(ME), node("me", 3, 100)),
                (Incarnation::numbered(OTHER), node("other", 4, 100)),
            ]),
            ended: BTreeSet::new(),
            drains: BTreeSet::new(),
            slots: vec![slot; 16],
            missing: BTreeMap::new(),
        }
    }

    fn plan(view: &View, held: &BTreeSet<u32>, now: u64) -> Vec<Step> {
        steps(view, Incarnation::numbered(ME), held, &BTreeSet::new(), at(now))
    }

    fn formers(steps: &[Step]) -> Vec<Former> {
        let former = |step: &Step| match step {
            Step::Take { former, .. } => *former,
            Step::Give { .. } => panic!("{step:?}"),
        };
        steps.iter().map(former).collect()
    }

    #[test]
    fn free_slots_are_taken_by_their_nodes_only() {
        let steps = plan(&view(None), &BTreeSet::new(), 100);
        assert!(!steps.is_empty() && steps.len() < 16, "{steps:?}");
        assert!(formers(&steps).iter().all(|former| *former == Former::None));
    }

    #[test]
    fn slots_of_a_node_that_renews_are_left_alone() {
        assert_eq!(plan(&view(Some(OTHER)), &BTreeSet::new(), 104), []);
    }

    #[test]
    fn silent_node_without_slots_is_abandoned() {
        let (mine, free) = (view(Some(ME)), view(Some(OTHER)));
        let (me, other) = (Incarnation::numbered(ME), Incarnation::numbered(OTHER));
        assert_eq!(abandoned(&mine, me, at(106)), [(other, 4)]);
        assert_eq!(abandoned(&free, me, at(106)), [], "its slots are taken first");
        assert_eq!(abandoned(&mine, me, at(101)), [], "it may be alive");
    }

    #[test]
    fn slots_of_a_silent_node_are_taken_after_a_whole_lease() {
        let silent = Former::Silent { node: Incarnation::numbered(OTHER), revision: 4 };
        let steps = plan(&view(Some(OTHER)), &BTreeSet::new(), 105);
        assert_eq!(formers(&steps), [silent; 16]);
    }

    #[test]
    fn slots_of_an_ended_node_are_taken_at_once() {
        let mut view = view(Some(3));
        view.ended.insert(Incarnation::numbered(3));
        let steps = plan(&view, &BTreeSet::new(), 100);
        assert!(!steps.is_empty());
        assert!(formers(&steps).iter().all(|it| *it == Former::Ended(Incarnation::numbered(3))));
    }

    #[test]
    fn slots_of_a_node_deleted_by_hand_are_taken_after_a_whole_lease() {
        let mut view = view(Some(3));
        view.missing.insert(Incarnation::numbered(3), at(102));
        assert_eq!(plan(&view, &BTreeSet::new(), 104), []);
        view.nodes.insert(Incarnation::numbered(OTHER), node("other", 5, 107));
        let steps = plan(&view, &BTreeSet::new(), 107);
        assert!(!steps.is_empty());
        assert!(formers(&steps).iter().all(|it| *it == Former::Missing(Incarnation::numbered(3))));
    }

    #[test]
    fn own_slot_that_is_not_held_is_taken_again_by_whichever_node_it_belongs_to() {
        let mut view = view(Some(ME));
        assert_eq!(formers(&plan(&view, &BTreeSet::new(), 100)), [Former::None; 16]);
        view.nodes.get_mut(&Incarnation::numbered(ME)).unwrap().is_draining = true;
        assert_eq!(formers(&plan(&view, &BTreeSet::new(), 100)), [Former::None; 16]);
    }

    #[test]
    fn of_two_nodes_with_one_name_the_earlier_has_the_slots_until_it_is_silent() {
        let mut view = view(None);
        let (me, other) = (Incarnation::numbered(ME), Incarnation::numbered(OTHER));
        view.nodes.insert(other, node("me", 4, 100));
        assert_eq!(plan(&view, &BTreeSet::new(), 101).len(), 16, "this node began earlier");
        // The order of renewals does not count.
        view.nodes.get_mut(&me).unwrap().created = 5;
        assert_eq!(plan(&view, &BTreeSet::new(), 101), []);
        assert_eq!(plan(&view, &BTreeSet::new(), 106).len(), 16);
    }

    #[test]
    fn drain_of_a_node_that_is_gone_is_removed() {
        let mut view = view(None);
        view.drains.extend([ME, 3].map(Incarnation::numbered));
        assert_eq!(undrained(&view), [Incarnation::numbered(3)]);
    }

    #[test]
    fn slots_move_to_a_new_node_one_by_one() {
        let held: BTreeSet<u32> = (0..16).collect();
        let steps = plan(&view(Some(ME)), &held, 100);
        let [Step::Give { slot, to }] = steps[..] else { panic!("{steps:?}") };
        assert_eq!(to, Incarnation::numbered(OTHER));
        let giving = BTreeSet::from([slot]);
        let me = Incarnation::numbered(ME);
        assert_eq!(super::steps(&view(Some(ME)), me, &held, &giving, at(100)), []);
    }

    #[test]
    fn draining_node_gives_all_its_slots_at_once_and_takes_none() {
        let mut view = view(Some(ME));
        view.nodes.get_mut(&Incarnation::numbered(ME)).unwrap().is_draining = true;
        view.slots[8..].iter_mut().for_each(|slot| slot.node = None);
        let held: BTreeSet<u32> = (0..8).collect();
        let steps = plan(&view, &held, 100);
        assert_eq!(steps.len(), 8);
        assert!(steps.iter().all(|step| matches!(step, Step::Give { .. })));
    }

    #[test]
    fn records_of_ended_nodes_are_forgotten_when_no_slot_names_them() {
        let mut view = view(Some(3));
        view.ended.extend([3, 4].map(Incarnation::numbered));
        assert_eq!(forgotten(&view), [Incarnation::numbered(4)]);
    }
}
