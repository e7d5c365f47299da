//! What is true between any two inputs, checked the slow way.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use crate::id::{Index, NIL};
use crate::manager::LockManager;
use crate::{Mode, SuspendPolicy};

impl LockManager {
    /// Checks everything that must be true between two inputs, in O(n log n).
    ///
    /// Debug builds call it after every input while the manager is small, and now and then when it is large.
    ///
    /// # Panics
    ///
    /// When something is not as it must be. That is a bug of this crate.
    pub fn check_invariants(&self) {
        assert!(self.disturbed.is_empty(), "a queue was left unprocessed");
        assert!(self.ready.is_empty(), "a ready entry was left ungranted");
        let entries = self.check_clients();
        let mut seats = 0;
        for (index, queue) in self.queues.iter() {
            assert_eq!(
                self.queues.find(&queue.name),
                Some(index),
                "{} cannot be found",
                queue.name
            );
            seats += self.check_queue(index);
        }
        assert_eq!(self.queues.iter().count(), self.queues.len(), "a queue is not in the table");
        self.queues.check_kept();
        let counted: usize = entries.iter().map(|&entry| self.check_entry(entry)).sum();
        assert_eq!(seats, counted, "a seat belongs to no entry");
        let held = entries.iter().filter(|&&entry| self.entries[entry].life.is_held()).count();
        assert_eq!(held, self.held, "held locks are miscounted");
        assert_eq!(entries.len(), self.live, "entries are miscounted");
    }

    /// Every entry is in the list of its client, in order of arrival, and nobody waits for a sleeping client.
    fn check_clients(&self) -> Vec<Index> {
        let mut all = Vec::new();
        for (index, client) in self.clients.iter() {
            let mut prev = NIL;
            for entry in self.entries_of(index) {
                let life = &self.entries[entry].life;
                assert_eq!(
                    (life.client, life.client_prev),
                    (index, prev),
                    "a client's list is broken"
                );
                assert!(
                    prev == NIL || self.entries[prev].life.serial < life.serial,
                    "a client's entries are out of order"
                );
                prev = entry;
                all.push(entry);
            }
            assert_eq!(client.last, prev, "a client's list has another end");
            let sleeps = client.sleeps_under(SuspendPolicy::EvictOnContention);
            assert_eq!(sleeps, self.clients.sleeping.contains(&self.clients.id(index)));
            assert!(!(sleeps && self.is_waited_for(index)), "somebody waits for a sleeping client");
        }
        all
    }

    /// The list is sound, its clear prefix is what the rule says, and conflicting seats stand in canonical order: held in
    /// grant order before pending in queue order.
    fn check_queue(&self, index: Index) -> usize {
        let queue = &self.queues[index];
        let (mut count, mut sleepers) = (0, 0);
        let (mut prev, mut clear_end) = (NIL, NIL);
        let (mut latest, mut latest_exclusive) = (None, None);
        let mut clear = true;
        let mut exclusives = 0;
        for seat in self.seats_from(queue.first) {
            let slot = &self.entries[seat];
            let life = &self.entries[slot.seat.entry].life;
            assert_eq!(
                (slot.seat.queue, slot.seat.prev),
                (index, prev),
                "a queue's list is broken"
            );
            exclusives += usize::from(slot.seat.mode == Mode::Exclusive);
            clear = clear && (count == 0 || exclusives == 0);
            assert_eq!(slot.seat.clear, clear, "{}: a seat is wrongly clear or not", queue.name);
            clear_end = if clear { seat } else { clear_end };
            let place = Some(self.entries[slot.seat.entry].order());
            let before = match slot.seat.mode {
                Mode::Exclusive => latest,
                Mode::Shared => latest_exclusive,
            };
            assert!(before < place, "{}: conflicting entries are out of order", queue.name);
            latest = latest.max(place);
            if slot.seat.mode == Mode::Exclusive {
                latest_exclusive = latest_exclusive.max(place);
            }
            let owner = &self.clients[life.client];
            sleepers += u32::from(owner.sleeps_under(SuspendPolicy::EvictOnContention));
            prev = seat;
            count += 1;
        }
        assert!(count > 0, "{}: an empty queue was kept", queue.name);
        assert_eq!((queue.last, queue.clear_end), (prev, clear_end), "{}: wrong ends", queue.name);
        assert_eq!(queue.sleepers, sleepers, "{}: sleepers are miscounted", queue.name);
        count
    }

    /// The entry has one seat a name, counts those that are not clear, and is held exactly when there is none.
    fn check_entry(&self, entry: Index) -> usize {
        let life = &self.entries[entry].life;
        let seats: Vec<Index> = self.entries.seats(entry).collect();
        let queues: BTreeSet<Index> =
            seats.iter().map(|&seat| self.entries[seat].seat.queue).collect();
        assert_eq!(queues.len(), seats.len(), "an entry sits twice in one queue");
        assert!(seats.iter().all(|&seat| self.entries[seat].seat.entry == entry));
        assert!(
            seats.iter().all(|&seat| self.entries[seat].seat.mode == self.entries[entry].seat.mode)
        );
        let blocked = seats.iter().filter(|&&seat| !self.entries[seat].seat.clear).count();
        assert_eq!(life.blocked as usize, blocked, "an entry miscounts its blocked seats");
        assert_eq!(
            life.is_held(),
            blocked == 0,
            "an entry is held exactly when nothing earlier conflicts"
        );
        seats.len()
    }
}
