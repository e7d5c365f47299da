//! The invariants of the seating, which are true between any two inputs, checked the slow way.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use super::Seating;
use crate::id::{Index, NIL};
use crate::limit::{Allowance, Tally};

impl Seating {
    /// Checks the rule itself and the lists that store it, for `entries`, which must be all.
    /// `sleeps` tells which clients are suspended until contention.
    pub(crate) fn check(&self, entries: &[Index], sleeps: impl Fn(Index) -> bool) {
        assert!(self.disturbed.is_empty(), "a queue was left unprocessed");
        assert!(self.ready.is_empty(), "a ready entry was left ungranted");
        self.queues.check();
        let seats: usize =
            self.queues.iter().map(|(index, _)| self.check_queue(index, &sleeps)).sum();
        let counted: usize = entries.iter().map(|&entry| self.check_entry(entry)).sum();
        assert_eq!(seats, counted, "a seat belongs to no entry");
        let held = entries.iter().filter(|&&entry| self.is_held(entry)).count();
        assert_eq!(held, self.held, "held locks are miscounted");
        assert_eq!(entries.len(), self.live, "entries are miscounted");
    }

    /// Checks that the list is sound, that its clear prefix is what the rule says, and that seats
    /// whose order matters stand in canonical order. Returns how many seats there are.
    fn check_queue(&self, index: Index, sleeps: impl Fn(Index) -> bool) -> usize {
        let queue = &self.queues[index];
        let (mut count, mut sleepers) = (0, 0);
        let (mut prev, mut clear_end) = (NIL, NIL);
        let (mut latest, mut latest_exclusive) = (None, None);
        let mut smallest = Allowance::NONE;
        let mut tally = Tally::default();
        let mut limited = false;
        for seat in self.seats_from(queue.first) {
            let own = &self.entries[seat].seat;
            assert_eq!((own.queue, own.prev), (index, prev), "a queue's list is broken");
            let limit = self.limit(seat);
            // The rule: the entries up to this one are no more than the smallest limit among them.
            smallest = smallest.min(limit);
            let clear = smallest.covers(count as u32 + 1);
            assert_eq!(own.is_clear(), clear, "{}: a seat is wrongly clear or not", queue.name);
            limited |= own.marks().is_limited();
            if clear {
                clear_end = seat;
                tally.add(limit);
            }
            let place = Some(self.order(own.entry));
            // Clear seats may have any order. Behind them, only seats without a limit that no seat
            // with a limit or an exclusive one stands between may.
            let exclusive = limit == Allowance::ONE;
            let before = match queue.tally {
                Some(_) if clear => None,
                None if !exclusive => latest_exclusive,
                _ => latest,
            };
            assert!(before < place, "{}: conflicting entries are out of order", queue.name);
            latest = latest.max(place);
            if exclusive {
                latest_exclusive = latest_exclusive.max(place);
            }
            sleepers += u32::from(sleeps(self.life(own.entry).member.client));
            prev = seat;
            count += 1;
        }
        assert!(count > 0, "{}: an empty queue was kept", queue.name);
        match &queue.tally {
            Some(counted) => assert_eq!(**counted, tally, "{}: limits are miscounted", queue.name),
            None => assert!(count == 1 || !limited, "{}: limits are not counted", queue.name),
        }
        assert_eq!((queue.last, queue.clear_end), (prev, clear_end), "{}: wrong ends", queue.name);
        assert_eq!(queue.sleepers, sleepers, "{}: sleepers are miscounted", queue.name);
        count
    }

    /// Checks that the entry has one seat a name, counts those that are not clear, and is held
    /// exactly when there is none. Returns how many seats it has.
    fn check_entry(&self, entry: Index) -> usize {
        let life = self.life(entry);
        let seats: Vec<Index> = self.entries.seats(entry).collect();
        let queues: BTreeSet<Index> = self.queues_of(entry).map(|(queue, _)| queue).collect();
        assert_eq!(queues.len(), seats.len(), "an entry sits twice in one queue");
        assert!(seats.iter().all(|&seat| self.entry(seat) == entry));
        let limit = self.limit(entry);
        assert!(seats.iter().all(|&seat| self.limit(seat) == limit));
        let blocked = seats.iter().filter(|&&seat| !self.entries[seat].seat.is_clear()).count();
        assert_eq!(life.blocked as usize, blocked, "an entry miscounts its blocked seats");
        assert_eq!(life.is_held(), blocked == 0, "an entry is held without being clear, or not");
        seats.len()
    }
}
