//! Seating: how entries take and leave their places in the queues.
//!
//! All of the engine's knowledge of the list structure is here: every queue is an order of seats whose clear prefix
//! is one exclusive seat or a run of shared ones, and every entry counts the seats on which it is not clear.

use crate::entry::{Seat, Slot};
use crate::id::{Index, NIL};
use crate::manager::LockManager;
use crate::{ClientId, Event, Mode, Scope, SuspendPolicy};

/// Where in each queue of its scope a new entry takes its seat.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// Behind all others.
    Last,
    /// Before all others, of which none is held.
    First,
    /// Before all pending ones: a shared entry only.
    BeforePending,
}

impl LockManager {
    /// Whether a new last seat of this mode would be clear in the queue.
    #[inline]
    pub(crate) fn admits(&self, queue: Index, mode: Mode) -> bool {
        let queue = &self.queues[queue];
        queue.clear_end == queue.last && !mode.conflicts_with(self.entries[queue.last].seat.mode)
    }

    /// Seats a new entry in the queue of each name of `scope`. True when it is clear on all of them.
    #[inline]
    pub(crate) fn take_seats(&mut self, entry: Index, scope: &Scope, place: Place) -> bool {
        let mut seat = entry;
        for (position, name) in scope.names().iter().enumerate() {
            if position > 0 {
                seat = self.entries.insert_sibling(entry, seat);
            }
            let (queue, founded) = self.queues.get_the_lock_request_queue(name, seat);
            let own = &mut self.entries[seat].seat;
            own.queue = queue;
            own.clear = founded;
            match place {
                _ if founded => {}
                Place::Last => {
                    self.sit_last(seat, queue);
                }
                Place::First => self.sit_first(seat, queue),
                Place::BeforePending => self.sit_before_pending(seat, queue),
            }
        }
        self.live += 1;
        self.entries[entry].life.blocked == 0
    }

    /// True when the seat is clear.
    #[inline]
    pub(crate) fn sit_last(&mut self, seat: Index, queue: Index) -> bool {
        let list = &mut self.queues[queue];
        let last = core::mem::replace(&mut list.last, seat);
        let before = &mut self.entries[last].seat;
        before.next = seat;
        let before_mode = before.mode;
        let own = &mut self.entries[seat].seat;
        own.prev = last;
        own.clear = list.clear_end == last && !own.mode.conflicts_with(before_mode);
        if own.clear {
            list.clear_end = seat;
            return true;
        }
        self.block(seat);
        false
    }

    fn sit_first(&mut self, seat: Index, queue: Index) {
        self.link(seat, queue, NIL);
        self.entries[seat].seat.clear = true;
        let mut passed = self.entries[seat].seat.next;
        if self.conflict(seat, passed) {
            // Nothing behind an exclusive seat is clear, and a clear exclusive seat was alone.
            while passed != NIL && self.entries[passed].seat.clear {
                self.entries[passed].seat.clear = false;
                self.block(passed);
                passed = self.entries[passed].seat.next;
            }
            self.queues[queue].clear_end = seat;
        } else if self.queues[queue].clear_end == NIL {
            self.queues[queue].clear_end = seat;
        }
    }

    fn sit_before_pending(&mut self, seat: Index, queue: Index) {
        let end = self.queues[queue].clear_end;
        if !self.conflict(seat, end) {
            // Joins the run of shared seats, at its end.
            self.link(seat, queue, end);
            self.entries[seat].seat.clear = true;
            self.queues[queue].clear_end = seat;
        } else if self.entries[self.entries[end].seat.entry].life.is_held() {
            self.link(seat, queue, end);
            self.block(seat);
        } else {
            self.sit_first(seat, queue);
        }
    }

    /// Whether two seats of one queue exclude each other.
    #[inline]
    pub(crate) fn conflict(&self, a: Index, b: Index) -> bool {
        self.entries[a].seat.mode.conflicts_with(self.entries[b].seat.mode)
    }

    #[inline]
    fn block(&mut self, seat: Index) {
        let entry = self.entries[seat].seat.entry;
        self.entries[entry].life.blocked += 1;
    }

    /// Puts a seat into the list of a queue, behind `prev` or first.
    #[inline]
    fn link(&mut self, seat: Index, queue: Index, prev: Index) {
        let list = &mut self.queues[queue];
        let next = if prev == NIL {
            core::mem::replace(&mut list.first, seat)
        } else {
            core::mem::replace(&mut self.entries[prev].seat.next, seat)
        };
        if next == NIL {
            list.last = seat;
        } else {
            self.entries[next].seat.prev = seat;
        }
        let own = &mut self.entries[seat].seat;
        own.prev = prev;
        own.next = next;
    }

    /// Ends an entry, whatever the reason: it leaves all its queues and its client. The queues that
    /// it left are disturbed, and are to be processed before the input ends.
    #[inline]
    pub(crate) fn depart(&mut self, entry: Index) {
        let life = &self.entries[entry].life;
        self.live -= 1;
        self.held -= usize::from(life.is_held());
        let sleeps = self.clients[life.client].sleeps_under(SuspendPolicy::EvictOnContention);
        self.leave_client(entry);
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

    /// Who becomes clear on all its names when this entry leaves, if that concerns one queue and exactly one entry: the next in line,
    /// which waits for nothing else, and has nobody behind it who does not have to wait for it.
    #[inline]
    pub(crate) fn only_heir(&self, leaving: Index) -> Option<Index> {
        let &Seat { queue, prev, next, sibling, .. } = &self.entries[leaving].seat;
        let alone = prev == NIL && sibling == NIL && self.queues[queue].clear_end == leaving;
        if !alone || next == NIL {
            return None;
        }
        let heir = &self.entries[next].seat;
        let waits_for_more = heir.entry != next || heir.sibling != NIL;
        let comes_alone = heir.next == NIL || self.conflict(next, heir.next);
        (!waits_for_more && comes_alone).then_some(next)
    }

    /// Takes a seat out of its queue and clears that of its [only heir](Self::only_heir).
    #[inline]
    pub(crate) fn give_way(&mut self, leaving: Index, heir: Index) {
        let queue = &mut self.queues[self.entries[leaving].seat.queue];
        (queue.first, queue.clear_end) = (heir, heir);
        let Slot { seat, life } = &mut self.entries[heir];
        (seat.prev, seat.clear, life.blocked) = (NIL, true, 0);
    }

    /// Lets the clear prefix of a queue grow as far as the rule allows. Entries that thereby are clear on all their
    /// names become ready.
    #[inline]
    pub(crate) fn extend_clear_prefix(&mut self, index: Index) {
        let Some(queue) = self.queues.get(index) else { return };
        let mut end = queue.clear_end;
        let mut next = if end == NIL { queue.first } else { self.entries[end].seat.next };
        while next != NIL && (end == NIL || !self.conflict(end, next)) {
            let seat = &mut self.entries[next].seat;
            seat.clear = true;
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

    /// Appends a new entry to the list of its client.
    #[inline]
    pub(crate) fn join_client(&mut self, owner: Index, entry: Index) {
        let client = &mut self.clients[owner];
        let last = core::mem::replace(&mut client.last, entry);
        if last == NIL {
            client.first = entry;
        } else {
            self.entries[last].life.client_next = entry;
            self.entries[entry].life.client_prev = last;
        }
    }

    #[inline]
    pub(crate) fn leave_client(&mut self, entry: Index) {
        let life = &self.entries[entry].life;
        let (prev, next) = (life.client_prev, life.client_next);
        let client = &mut self.clients[life.client];
        if prev == NIL {
            client.first = next;
        } else {
            self.entries[prev].life.client_next = next;
        }
        if next == NIL {
            client.last = prev;
        } else {
            self.entries[next].life.client_prev = prev;
        }
    }

    /// The entries of a client, in order of arrival.
    pub(crate) fn entries_of(&self, client: Index) -> impl Iterator<Item = Index> + '_ {
        let some = |entry: Index| (entry != NIL).then_some(entry);
        core::iter::successors(some(self.clients[client].first), move |&entry| {
            some(self.entries[entry].life.client_next)
        })
    }

    /// The seats of a queue, from `from` on.
    pub(crate) fn seats_from(&self, from: Index) -> impl Iterator<Item = Index> + '_ {
        let some = |seat: Index| (seat != NIL).then_some(seat);
        core::iter::successors(some(from), move |&seat| some(self.entries[seat].seat.next))
    }

    /// The entries that hold the name of a queue. Held seats are clear, so the clear prefix has them all.
    pub(crate) fn holders(&self, queue: Index) -> impl Iterator<Item = Index> + '_ {
        self.seats_from(self.queues[queue].first)
            .take_while(|&seat| self.entries[seat].seat.clear)
            .map(|seat| self.entries[seat].seat.entry)
            .filter(|&entry| self.entries[entry].life.is_held())
    }

    /// The client whose entry sits here.
    #[inline]
    pub(crate) fn owner(&self, seat: Index) -> Index {
        self.entries[self.entries[seat].seat.entry].life.client
    }

    /// Sorts entries as the queue stands: held ones in grant order, then pending ones in queue order.
    pub(crate) fn sort(&self, entries: &mut [Index]) {
        entries.sort_unstable_by_key(|&entry| self.entries[entry].order());
    }

    /// Takes entries from their owners, in the order given: each hears why, and leaves.
    pub(crate) fn take_away(&mut self, entries: &[Index], cause: crate::Cause) {
        for &entry in entries {
            let life = &self.entries[entry].life;
            let (owner, held) = (life.client, life.is_held());
            let request = self.entries.id(entry);
            let client: ClientId = self.clients.id(owner);
            let event = if held {
                Event::Lost { request, client, cause }
            } else {
                Event::Aborted { request, client, cause }
            };
            self.tell(owner, event);
            self.depart(entry);
        }
    }
}
