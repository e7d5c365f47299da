//! Views of the seating: which entry stands where, in which order. Nothing here changes a list.

use super::Seating;
use crate::entry::Order;
use crate::id::{Index, NIL};
use crate::queue::Queue;
use crate::{Mode, Name, Scope};

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
    pub(super) fn seats_from(&self, from: Index) -> impl Iterator<Item = Index> + '_ {
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
        let seats = self.seats_from(self.queues[queue].first);
        let clear = seats.take_while(|&seat| self.entries[seat].seat.clear);
        clear.map(|seat| self.entry(seat)).filter(|&entry| self.is_held(entry))
    }

    /// Returns true if a suspended client has a seat in the queue of `name`.
    pub(crate) fn has_sleepers(&self, name: &Name) -> bool {
        self.queues.find(name).is_some_and(|queue| self.queues[queue].sleepers > 0)
    }

    /// Returns the entries behind `entry` that conflict with it.
    pub(crate) fn conflicts_behind(&self, entry: Index) -> impl Iterator<Item = Index> + '_ {
        self.entries.seats(entry).flat_map(move |seat| {
            self.seats_from(self.entries[seat].seat.next)
                .filter(move |&later| self.conflict(seat, later))
                .map(|later| self.entry(later))
        })
    }

    /// Returns the entries before `entry` on its names, once for each name in common, and whether
    /// they conflict with it.
    pub(crate) fn entries_before(&self, entry: Index) -> impl Iterator<Item = (Index, bool)> + '_ {
        self.entries.seats(entry).flat_map(move |seat| {
            self.seats_from(self.queue_of(seat).first)
                .take_while(move |&earlier| earlier != seat)
                .map(move |earlier| (self.entry(earlier), self.conflict(earlier, seat)))
        })
    }

    /// Returns true if an entry waits for this held one. The first seat that is not clear conflicts
    /// with all that are.
    pub(crate) fn is_contended(&self, entry: Index) -> bool {
        self.entries.seats(entry).any(|seat| {
            let queue = self.queue_of(seat);
            queue.clear_end != queue.last
        })
    }

    /// Returns true if the client of this pending entry waits for the same locks already: on each
    /// name the seat right before belongs to it, and waits for all that the entry waits for.
    pub(crate) fn follows_own_seats(&self, entry: Index) -> bool {
        let client = self.life(entry).member.client;
        let mut blocked = self.entries.seats(entry).filter(|&seat| !self.entries[seat].seat.clear);
        blocked.all(|seat| {
            let own = &self.entries[seat].seat;
            let before = &self.entries[own.prev].seat;
            let covers = before.mode == Mode::Exclusive || own.mode == Mode::Shared;
            covers && self.life(before.entry).member.client == client
        })
    }

    /// Returns true if the entry stands before pending entries that do not overtake.
    pub(crate) fn overtakes(&self, entry: Index) -> bool {
        self.entries[entry].overtakes()
    }

    /// Returns the queues in which an entry has a seat, each with that seat.
    pub(crate) fn queues_of(&self, entry: Index) -> impl Iterator<Item = (Index, Index)> + '_ {
        self.entries.seats(entry).map(|seat| (self.entries[seat].seat.queue, seat))
    }

    /// Returns the seats of a queue in order, each with its entry and mode.
    pub(crate) fn seats_of(&self, queue: Index) -> impl Iterator<Item = (Index, Index, Mode)> + '_ {
        let seats = self.seats_from(self.queues[queue].first);
        seats.map(|seat| (seat, self.entry(seat), self.entries[seat].seat.mode))
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
