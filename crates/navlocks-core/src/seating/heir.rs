//! Departures from one queue that affect one entry or none: the lists of the fast path.

use super::Seating;
use crate::entry::{Seat, Slot};
use crate::id::{Index, NIL};

impl Seating {
    /// Returns true if the entry has one name and no other entry wants it.
    #[inline]
    pub(crate) fn is_alone(&self, entry: Index) -> bool {
        let Seat { prev, next, sibling, .. } = self.entries[entry].seat;
        prev == NIL && next == NIL && sibling == NIL
    }

    /// Ends a held entry that [is alone](Self::is_alone).
    #[inline]
    pub(crate) fn depart_alone(&mut self, entry: Index) {
        debug_assert!(self.is_held(entry), "an entry that is alone has nothing to wait for");
        self.live -= 1;
        self.held -= 1;
        self.queues.leave(self.entries[entry].seat.queue);
        self.entries.remove(entry);
    }

    /// Returns the entry that becomes clear when `leaving` leaves, if it is exactly one entry of
    /// one queue: the next seat, with one name and a successor that conflicts with it.
    #[inline]
    pub(crate) fn only_heir(&self, leaving: Index) -> Option<Index> {
        let &Seat { queue, prev, next, sibling, .. } = &self.entries[leaving].seat;
        let list = &self.queues[queue];
        let alone = prev == NIL && sibling == NIL && list.clear_end == leaving;
        if !alone || next == NIL || list.tally.is_some() {
            return None;
        }
        let heir = &self.entries[next].seat;
        let waits_for_more = heir.entry != next || heir.sibling != NIL;
        let comes_alone = heir.next == NIL || self.conflict(next, heir.next);
        (!waits_for_more && comes_alone).then_some(next)
    }

    /// Ends a held entry and clears its [only heir](Self::only_heir).
    #[inline]
    pub(crate) fn depart_for_heir(&mut self, leaving: Index, heir: Index) {
        self.live -= 1;
        self.held -= 1;
        let queue = &mut self.queues[self.entries[leaving].seat.queue];
        (queue.first, queue.clear_end) = (heir, heir);
        let Slot { seat, life } = &mut self.entries[heir];
        seat.set_clear();
        (seat.prev, life.blocked) = (NIL, 0);
        self.entries.remove(leaving);
    }
}
