//! Views of the seating: which entry stands where, in which order. Nothing here changes a list.

use super::Seating;
use crate::entry::Order;
use crate::id::{Index, NIL};
use crate::limit::Allowance;
use crate::queue::Queue;
use crate::{Mode, Name, Scope};

/// The waits of the seats of one queue, found by a walk from its head.
#[derive(Debug)]
pub(crate) struct Waits {
    /// How many seats the walk has passed, and their smallest limit above 1.
    passed: u32,
    smallest: Allowance,
}

impl Waits {
    pub(crate) fn new() -> Self {
        Self { passed: 0, smallest: Allowance::NONE }
    }

    /// Passes the next seat. Returns true if it waits for all seats before it, and false if it
    /// waits for the exclusive ones alone.
    ///
    /// Where a limit is exceeded, the end of any earlier entry brings the request nearer. Otherwise
    /// only exclusive entries are in the way of a shared one.
    pub(crate) fn pass(&mut self, limit: Allowance) -> bool {
        self.passed += 1;
        if limit == Allowance::ONE {
            return true;
        }
        self.smallest = self.smallest.min(limit);
        !self.smallest.covers(self.passed)
    }
}

impl Seating {
    fn queue_of(&self, seat: Index) -> &Queue {
        &self.queues[self.entries[seat].seat.queue]
    }

    /// Returns how many names have an entry.
    pub(crate) fn name_count(&self) -> usize {
        self.queues.len()
    }

    /// Returns true if an entry has several names.
    pub(crate) fn has_wide_entries(&self) -> bool {
        self.wide > 0
    }

    /// Returns a queue in use.
    pub(crate) fn queue(&self, queue: Index) -> &Queue {
        &self.queues[queue]
    }

    /// Returns true if a queue in use has this position.
    pub(crate) fn is_queue(&self, queue: Index) -> bool {
        self.queues.get(queue).is_some()
    }

    /// Returns the queue of a name, if it is in use.
    pub(crate) fn find_queue(&self, name: &Name) -> Option<Index> {
        self.queues.find(name)
    }

    /// Returns all queues in use, in no particular order.
    pub(crate) fn queues(&self) -> impl Iterator<Item = Index> + '_ {
        self.queues.iter().map(|(queue, _)| queue)
    }

    /// Returns how many positions queues have, used and unused.
    pub(crate) fn queue_slots(&self) -> usize {
        self.queues.slot_count()
    }

    /// Returns the seats of a queue, from `from` on.
    pub(super) fn seats_from(&self, from: Index) -> impl Iterator<Item = Index> + Clone + '_ {
        let some = |seat: Index| (seat != NIL).then_some(seat);
        core::iter::successors(some(from), move |&seat| some(self.entries[seat].seat.next))
    }

    /// Returns all entries that want a name, in queue order.
    pub(crate) fn entries_on(&self, name: &Name) -> impl Iterator<Item = Index> + '_ {
        let first = self.queues.find(name).map(|queue| self.queues[queue].first);
        first.into_iter().flat_map(|first| self.seats_from(first)).map(|seat| self.entry(seat))
    }

    /// Returns the entries that hold a name. Held seats are clear, so the clear prefix has them
    /// all.
    pub(crate) fn holders(&self, name: &Name) -> impl Iterator<Item = Index> + '_ {
        self.queues.find(name).into_iter().flat_map(|queue| self.holders_in(queue))
    }

    /// Returns the entries that hold the name of a queue in use.
    pub(crate) fn holders_in(&self, queue: Index) -> impl Iterator<Item = Index> + '_ {
        let clear = self.clear_seats(self.queues[queue].first);
        clear.map(|seat| self.entry(seat)).filter(|&entry| self.is_held(entry))
    }

    /// Returns true if a suspended client has a seat in the queue of `name`.
    pub(crate) fn has_sleepers(&self, name: &Name) -> bool {
        self.queues.find(name).is_some_and(|queue| self.queues[queue].sleepers > 0)
    }

    /// Returns the entries behind `entry` that wait for it.
    pub(crate) fn waiters_behind(&self, entry: Index) -> impl Iterator<Item = Index> + '_ {
        self.entries.seats(entry).flat_map(move |own| {
            let excludes = self.limit(own) == Allowance::ONE;
            let mut waits = Waits::new();
            let seats = self.seats_from(self.queue_of(own).first);
            let each = seats.map(move |seat| (seat, waits.pass(self.limit(seat))));
            let behind = each.skip_while(move |&(seat, _)| seat != own).skip(1);
            behind.filter(move |&(_, all)| all || excludes).map(|(later, _)| self.entry(later))
        })
    }

    /// Returns the entries before `entry` on its names, once for each name in common, and whether
    /// it waits for them.
    pub(crate) fn entries_before(&self, entry: Index) -> impl Iterator<Item = (Index, bool)> + '_ {
        self.entries.seats(entry).flat_map(move |own| {
            let before = self
                .seats_from(self.queue_of(own).first)
                .take_while(move |&earlier| earlier != own);
            let mut waits = Waits::new();
            for seat in before.clone() {
                waits.pass(self.limit(seat));
            }
            let all = waits.pass(self.limit(own));
            before.map(move |seat| (self.entry(seat), all || self.limit(seat) == Allowance::ONE))
        })
    }

    /// Returns the first name that two entries have in common.
    pub(crate) fn common_name(&self, one: Index, other: Index) -> Option<&Name> {
        let shares = |queue| self.queues_of(other).any(|(its, _)| its == queue);
        let queue = self.queues_of(one).map(|(queue, _)| queue).find(|&queue| shares(queue))?;
        Some(&self.queues[queue].name)
    }

    /// Returns true if this entry cannot be held while the other one is, whatever other entries do:
    /// they have a name in common, and one of them is exclusive.
    pub(crate) fn excludes(&self, one: Index, other: Index) -> bool {
        let exclusive = |entry: Index| self.limit(entry) == Allowance::ONE;
        (exclusive(one) || exclusive(other)) && self.common_name(one, other).is_some()
    }

    /// Returns true if an entry waits for this held one. The first seat that is not clear waits for
    /// all that are.
    pub(crate) fn is_contended(&self, entry: Index) -> bool {
        self.entries.seats(entry).any(|seat| {
            let queue = self.queue_of(seat);
            queue.clear_end != queue.last
        })
    }

    /// Returns the queues in which an entry has a seat, each with that seat.
    pub(crate) fn queues_of(&self, entry: Index) -> impl Iterator<Item = (Index, Index)> + '_ {
        self.entries.seats(entry).map(|seat| (self.entries[seat].seat.queue, seat))
    }

    /// Returns the seats of a queue in order, each with its entry and mode.
    pub(crate) fn seats_of(&self, queue: Index) -> impl Iterator<Item = (Index, Index, Mode)> + '_ {
        let seats = self.seats_from(self.queues[queue].first);
        seats.map(|seat| (seat, self.entry(seat), self.mode(seat)))
    }

    /// Returns the names of an entry. They were taken from a scope, in its order.
    pub(crate) fn scope(&self, entry: Index) -> Scope {
        let name = |seat: Index| &self.queue_of(seat).name;
        let rest = self.entries.seats(entry).skip(1).map(name);
        Scope::of_sorted(name(entry), rest)
    }

    /// Returns the canonical place of an entry: held ones in grant order, then pending ones in
    /// queue order.
    pub(crate) fn order(&self, entry: Index) -> Order {
        self.entries[entry].order()
    }

    /// Sorts entries in canonical order.
    pub(crate) fn sort(&self, entries: &mut [Index]) {
        entries.sort_unstable_by_key(|&entry| self.order(entry));
    }
}
