//! Grants and departures: which entries become clear.

use super::Seating;
use crate::entry::{Seat, Slot};
use crate::id::{Index, NIL};
use crate::{FencingToken, RequestId};

/// How entries are granted, and how they depart.
impl Seating {
    /// Makes a clear entry a held one: the request and the lock are the same entry.
    #[inline]
    pub(crate) fn hold(&mut self, entry: Index, token: u64) -> (RequestId, FencingToken) {
        self.entries[entry].life.token = token;
        self.held += 1;
        (self.id(entry), FencingToken::new(token))
    }

    /// Ends an entry, for whatever reason: it leaves all its queues.
    /// [`next_ready`](Self::next_ready) then returns the entries that became grantable.
    #[inline]
    pub(crate) fn depart(&mut self, entry: Index, sleeps: bool) {
        self.live -= 1;
        self.held -= usize::from(self.is_held(entry));
        self.wide -= usize::from(self.entries[entry].seat.sibling != NIL);
        let mut seat = entry;
        while seat != NIL {
            let sibling = self.entries[seat].seat.sibling;
            self.unlink(seat, sleeps);
            self.entries.remove(seat);
            seat = sibling;
        }
    }

    #[inline]
    fn unlink(&mut self, seat: Index, sleeps: bool) {
        let own = &self.entries[seat].seat;
        let (index, prev, next) = (own.queue, own.prev, own.next);
        let queue = &mut self.queues[index];
        queue.sleepers -= u32::from(sleeps);
        if prev == NIL && next == NIL {
            self.queues.leave(index);
            return;
        }
        if queue.tally.is_some() {
            super::limited::discount(queue, own);
        }
        if queue.clear_end == seat {
            queue.clear_end = prev;
        }
        if prev == NIL {
            queue.first = next;
        } else {
            self.entries[prev].seat.next = next;
        }
        if next == NIL {
            queue.last = prev;
        } else {
            self.entries[next].seat.prev = prev;
        }
        self.disturbed.push(index);
    }

    /// Returns the next entry, in queue order, that departures made clear on all its names.
    #[inline]
    pub(crate) fn next_ready(&mut self) -> Option<Index> {
        if !self.disturbed.is_empty() {
            while let Some(queue) = self.disturbed.pop() {
                self.extend_clear_prefix(queue);
            }
            self.sort_ready();
        }
        loop {
            let entry = self.ready.pop()?;
            // The entry may have left since, or a steal or an overtaker may stand before it now.
            let ready = |slot: &Slot| !slot.life.is_held() && slot.life.blocked == 0;
            if self.entries.get(entry).is_some_and(ready) {
                return Some(entry);
            }
        }
    }

    /// Sorts backwards, because the first in queue order is taken from the end.
    #[inline]
    fn sort_ready(&mut self) {
        if self.ready.len() > 1 {
            let entries = &self.entries;
            self.ready.sort_unstable_by_key(|&entry| {
                entries.get(entry).map(|slot| core::cmp::Reverse(slot.queue_order()))
            });
        }
    }

    /// Lets the clear prefix of a queue grow as far as the rule allows. Entries that thereby are
    /// clear on all their names become ready.
    #[inline]
    fn extend_clear_prefix(&mut self, index: Index) {
        let Some(queue) = self.queues.get(index) else { return };
        let mut end = queue.clear_end;
        let mut next = if end == NIL { queue.first } else { self.entries[end].seat.next };
        let counted = queue.tally.is_some();
        let fits = |seating: &mut Self, end, next| match counted {
            true => seating.count_next(index, next),
            false => end == NIL || !seating.conflict(end, next),
        };
        while next != NIL && fits(self, end, next) {
            let seat = &mut self.entries[next].seat;
            seat.set_clear();
            let (entry, following) = (seat.entry, seat.next);
            let life = &mut self.entries[entry].life;
            life.blocked -= 1;
            if life.blocked == 0 {
                self.ready.push(entry);
            }
            end = next;
            next = following;
        }
        self.queues[index].clear_end = end;
    }

    /// Adjusts the count of sleepers in every queue of an entry.
    pub(crate) fn count_sleeper(&mut self, entry: Index, adjust: impl Fn(&mut u32)) {
        let mut seat = entry;
        while seat != NIL {
            let Seat { queue, sibling, .. } = self.entries[seat].seat;
            adjust(&mut self.queues[queue].sleepers);
            seat = sibling;
        }
    }
}
