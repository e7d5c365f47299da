//! Queues in which a seat has a limit of two or more: their clear seats are counted.
//!
//! The count is made when such a seat meets another seat, and kept until the queue is empty. So
//! queues of exclusive and shared seats pay nothing for it, and a seat of a counted queue costs the
//! logarithm of the number of different limits.

use alloc::boxed::Box;
use alloc::vec::Vec;

use super::{InsertAt, Seating};
use crate::Mode;
use crate::entry::{Seat, Slot};
use crate::id::{Index, NIL};
use crate::limit::{Allowance, Tally};
use crate::queue::Queue;

impl Seating {
    /// Returns true if a new last seat with this limit is clear in a queue whose seats all are.
    pub(super) fn joins(&self, queue: &Queue, limit: Allowance) -> bool {
        if let Some(tally) = &queue.tally {
            return tally.admits(limit);
        }
        // All are shared, or there is one: no more than the limit need be counted.
        let limit = limit.min(self.limit(queue.last));
        limit == Allowance::NONE || {
            let enough = limit.holders() as usize;
            self.seats_from(queue.first).take(enough).count() < enough
        }
    }

    /// Returns true if the clear seats of the queue are counted, or must be from this new seat on.
    #[inline]
    pub(super) fn is_counted(&self, queue: Index, new: Index) -> bool {
        let queue = &self.queues[queue];
        let both = self.entries[new].seat.marks() | self.entries[queue.last].seat.marks();
        queue.tally.is_some() || both.is_limited()
    }

    /// Returns true if the seat `next` can follow the clear ones of a counted queue; counts it
    /// then.
    #[cold]
    #[inline(never)]
    pub(super) fn count_next(&mut self, queue: Index, next: Index) -> bool {
        let limit = self.limit(next);
        let Some(tally) = &mut self.queues[queue].tally else { return false };
        let admitted = tally.admits(limit);
        if admitted {
            tally.add(limit);
        }
        admitted
    }

    /// Seats a new entry in a queue whose clear seats are counted. Returns true if it is clear.
    #[cold]
    #[inline(never)]
    pub(super) fn sit_counted(&mut self, seat: Index, queue: Index, place: InsertAt) -> bool {
        let mut tally = self.take_tally(queue);
        let limit = self.limit(seat);
        let admitted = tally.admits(limit);
        if !admitted && place != InsertAt::Last && self.overtaken {
            // Clear seats may have any order, but the last in queue order leave the prefix first.
            self.sort_clear_prefix(queue);
        }
        let prev = match place {
            InsertAt::Last => self.queues[queue].last,
            InsertAt::First => NIL,
            InsertAt::BeforePending if admitted => self.queues[queue].clear_end,
            InsertAt::BeforePending => self.last_before_pending(queue),
        };
        // For a moment the seat is clear if the one before it is, whatever its limit.
        let end = self.queues[queue].clear_end;
        let joins = prev == NIL || self.entries[prev].seat.is_clear();
        self.link(seat, queue, prev);
        if joins {
            self.entries[seat].seat.set_clear();
            tally.add(limit);
            if end == prev {
                self.queues[queue].clear_end = seat;
            }
        } else {
            self.block(seat);
        }
        self.shrink_clear_prefix(queue, &mut tally);
        self.queues[queue].tally = Some(tally);
        self.entries[seat].seat.is_clear()
    }

    /// Gives a held entry a larger limit. [`next_ready`](Self::next_ready) then returns the entries
    /// that became grantable.
    pub(crate) fn raise_limit(&mut self, entry: Index, mode: Mode) {
        let mut next = entry;
        while next != NIL {
            let Seat { queue, sibling, .. } = self.entries[next].seat;
            if self.queues[queue].tally.is_some() || matches!(mode, Mode::Limited(_)) {
                let mut tally = self.take_tally(queue);
                tally.remove(self.limit(next));
                tally.add(mode.into());
                self.queues[queue].tally = Some(tally);
            }
            self.entries[next].seat.set_mode(mode);
            self.disturbed.push(queue);
            next = sibling;
        }
    }

    /// Takes seats from the end of the clear prefix until the others may be held together.
    fn shrink_clear_prefix(&mut self, queue: Index, tally: &mut Tally) {
        while tally.is_exceeded() {
            let end = self.queues[queue].clear_end;
            let seat = &mut self.entries[end].seat;
            seat.set_blocked();
            tally.remove(seat.mode().into());
            self.queues[queue].clear_end = seat.prev;
            self.block(end);
        }
    }

    /// Returns the count of a queue, made now if there is none.
    fn take_tally(&mut self, queue: Index) -> Box<Tally> {
        let list = &mut self.queues[queue];
        if let Some(tally) = list.tally.take() {
            return tally;
        }
        let (first, clear_end) = (list.first, list.clear_end);
        let mut tally = Box::<Tally>::default();
        for seat in self.clear_seats(first) {
            tally.add(self.limit(seat));
        }
        if self.overtaken {
            let behind = match clear_end {
                NIL => first,
                end => self.entries[end].seat.next,
            };
            let seats = self.seats_from(behind).collect();
            self.sort_seats(queue, seats);
        }
        tally
    }

    /// Returns the last seat that a new overtaker stands behind: that of a holder or of an earlier
    /// overtaker. The clear prefix must be sorted.
    fn last_before_pending(&self, queue: Index) -> Index {
        let goes_before = |&seat: &Index| {
            let Slot { seat, .. } = &self.entries[seat];
            seat.overtakes() || self.is_held(seat.entry)
        };
        let first = self.queues[queue].first;
        self.seats_from(first).take_while(goes_before).last().unwrap_or(NIL)
    }

    /// Sorts the clear prefix: held seats first, then pending ones in queue order.
    fn sort_clear_prefix(&mut self, queue: Index) {
        let first = self.queues[queue].first;
        let seats = self.clear_seats(first).collect();
        if let Some(end) = self.sort_seats(queue, seats) {
            self.queues[queue].clear_end = end;
        }
    }

    /// Sorts a run of seats of a queue in canonical order. Returns the last one.
    fn sort_seats(&mut self, queue: Index, mut seats: Vec<Index>) -> Option<Index> {
        let mut prev = self.entries[*seats.first()?].seat.prev;
        let behind = self.entries[*seats.last()?].seat.next;
        seats.sort_by_key(|&seat| self.order(self.entry(seat)));
        for &seat in &seats {
            self.follow(queue, prev, seat);
            prev = seat;
        }
        self.follow(queue, prev, behind);
        Some(prev)
    }

    /// Makes `next` the neighbour behind `prev`; `NIL` is the end of the queue on that side.
    fn follow(&mut self, queue: Index, prev: Index, next: Index) {
        match prev {
            NIL => self.queues[queue].first = next,
            _ => self.entries[prev].seat.next = next,
        }
        match next {
            NIL => self.queues[queue].last = prev,
            _ => self.entries[next].seat.prev = prev,
        }
    }

    /// Returns the clear seats of the queue with this first seat.
    pub(super) fn clear_seats(&self, first: Index) -> impl Iterator<Item = Index> + '_ {
        self.seats_from(first).take_while(|&seat| self.entries[seat].seat.is_clear())
    }
}

/// Takes a seat that leaves a counted queue out of the count.
#[cold]
#[inline(never)]
pub(super) fn discount(queue: &mut Queue, seat: &Seat) {
    if let Some(tally) = &mut queue.tally
        && seat.is_clear()
    {
        tally.remove(seat.mode().into());
    }
}
