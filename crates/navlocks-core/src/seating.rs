//! Seating: the one rule, as lists.
//!
//! > A request is clear on a name when the entries up to it in that name's queue are no more than
//! > the smallest limit among them. It is held when it is clear on all its names.
//!
//! An exclusive request has the limit 1, a shared one has none. So every queue is an order of seats
//! whose clear prefix is one exclusive seat, a run of shared ones, or a run that `limited` counts.
//! Every entry counts the seats on which it is not clear; at zero it is held. All list structure is
//! kept here.

mod check;
mod heir;
mod limited;
mod view;
mod order;

use alloc::vec::Vec;

pub(crate) use view::Waits;

use crate::entry::{Entries, Life, Member, Slot};
use crate::id::{Index, NIL, Shard};
use crate::limit::Allowance;
use crate::queue::Queues;
use crate::{Mode, Name, RequestId, Scope};

/// The entries of a manager and the queues in which they stand.
#[derive(Debug)]
pub(crate) struct Seating {
    queues: Queues,
    entries: Entries,
    /// How many entries there are, and how many of them are held.
    live: usize,
    held: usize,
    /// How many entries have several names.
    wide: usize,
    /// Queues that lost a seat and must be processed. Scratch list, empty between inputs.
    disturbed: Vec<Index>,
    /// Entries that became clear on all their names. Scratch list, empty between inputs.
    ready: Vec<Index>,
    /// True once an entry has overtaken: pending seats may then be out of queue order where their
    /// order does not matter, in queues that are not counted.
    overtaken: bool,
}

/// Where in each queue of its scope a new entry takes its seat.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum InsertAt {
    /// At the tail.
    Last,
    /// At the head of queues in which no entry is held.
    First,
    /// Before all pending entries: a shared entry only.
    BeforePending,
}

/// Above this many slots, an idle manager drops its memory.
const IDLE_CAPACITY: usize = 1024;

impl Seating {
    /// A seat, a queue, and the queue's places in the table and in the list of free ones.
    pub(crate) const BYTES_PER_NAME: usize =
        Entries::BYTES_PER_SEAT + size_of::<crate::queue::Queue>() + 4 * size_of::<Index>();

    pub(crate) fn new(queues: Queues, shard: Shard) -> Self {
        Self {
            queues,
            entries: Entries::new(shard),
            live: 0,
            held: 0,
            wide: 0,
            disturbed: Vec::new(),
            ready: Vec::new(),
            overtaken: false,
        }
    }

    /// Returns the seating of another manager that hashes names alike and has no entries.
    pub(crate) fn empty(&self, shard: Shard) -> Self {
        Self::new(self.queues.empty(), shard)
    }

    /// Drops all entries and their memory.
    pub(crate) fn clear(&mut self) {
        *self = self.empty(self.entries.shard());
    }

    /// Drops the memory of a burst once no entry is left.
    #[inline]
    pub(crate) fn clear_if_idle(&mut self) {
        debug_assert!(self.disturbed.is_empty() && self.ready.is_empty());
        if self.entries.is_empty() && self.entries.capacity() > IDLE_CAPACITY {
            self.clear();
        }
    }

    #[inline]
    pub(crate) fn live(&self) -> usize {
        self.live
    }

    #[inline]
    pub(crate) fn held(&self) -> usize {
        self.held
    }

    /// Returns how many bytes entries and queues take, long names aside.
    pub(crate) fn memory(&self) -> usize {
        self.entries.capacity() * size_of::<Slot>() + self.queues.memory()
    }

    #[inline]
    pub(crate) fn shard(&self) -> Shard {
        self.entries.shard()
    }

    /// Returns the slot of the entry with this id, if it is live.
    #[inline]
    pub(crate) fn find(&self, id: RequestId) -> Option<Index> {
        self.entries.find(id)
    }

    #[inline]
    pub(crate) fn id(&self, entry: Index) -> RequestId {
        self.entries.id(entry)
    }

    /// Returns the id that the next entry gets with this serial.
    pub(crate) fn next_id(&self, serial: u64) -> RequestId {
        self.shard().id(self.entries.vacant(), serial)
    }

    #[inline]
    pub(crate) fn life(&self, entry: Index) -> &Life {
        &self.entries[entry].life
    }

    #[inline]
    pub(crate) fn is_held(&self, entry: Index) -> bool {
        self.life(entry).is_held()
    }

    pub(crate) fn mode(&self, entry: Index) -> Mode {
        self.entries[entry].seat.mode()
    }

    /// Returns true if the entry stands before the pending entries that do not overtake.
    pub(crate) fn overtakes(&self, entry: Index) -> bool {
        self.entries[entry].seat.overtakes()
    }

    /// Returns the links of an entry in its client's list, which
    /// [`Clients`](crate::client::Clients) keeps.
    #[inline]
    pub(crate) fn member(&mut self, entry: Index) -> &mut Member {
        &mut self.entries[entry].life.member
    }

    #[cfg(test)]
    pub(crate) fn reads(&self) -> usize {
        self.entries.reads.get()
    }
}

/// How entries enter.
impl Seating {
    /// Returns true if a new last seat of this mode would be clear in the queue of `name`.
    pub(crate) fn admits(&self, name: &Name, mode: Mode) -> bool {
        let Some(queue) = self.queues.find(name) else { return true };
        let queue = &self.queues[queue];
        queue.clear_end == queue.last && self.joins(queue, mode.into())
    }

    /// Adds an entry that stands in no queue yet.
    #[inline(always)]
    pub(crate) fn insert(
        &mut self,
        serial: u64,
        client: Index,
        mode: Mode,
        overtakes: bool,
    ) -> Index {
        self.live += 1;
        self.overtaken |= overtakes;
        self.entries.insert(serial, client, mode, overtakes).seat.entry
    }

    /// Seats a new entry in the queue of each name of `scope`. Returns true if it is clear on all
    /// of them.
    pub(crate) fn seat(&mut self, entry: Index, scope: &Scope, place: InsertAt) -> bool {
        self.wide += usize::from(scope.names().len() > 1);
        let mut seat = entry;
        for (position, name) in scope.names().iter().enumerate() {
            if position > 0 {
                seat = self.entries.insert_sibling(entry, seat);
            }
            let (queue, founded) = self.queues.get_the_lock_request_queue(name, seat);
            let own = &mut self.entries[seat].seat;
            own.queue = queue;
            if founded {
                own.set_clear();
                continue;
            }
            match place {
                InsertAt::First | InsertAt::BeforePending if self.is_counted(queue, seat) => {
                    self.sit_counted(seat, queue, place);
                }
                InsertAt::Last => {
                    self.sit_last(seat, queue);
                }
                InsertAt::First => self.sit_first(seat, queue),
                InsertAt::BeforePending => self.sit_before_pending(seat, queue),
            }
        }
        self.entries[entry].life.blocked == 0
    }

    /// Returns the queue of `name` for the next entry, and true if that entry is the only one
    /// there.
    #[inline]
    pub(crate) fn open_queue(&mut self, name: &Name) -> (Index, bool) {
        self.queues.get_the_lock_request_queue(name, self.entries.vacant())
    }

    /// Adds an entry that is alone in the queue that it [opened](Self::open_queue), and so is
    /// clear.
    #[inline]
    pub(crate) fn insert_alone(
        &mut self,
        serial: u64,
        client: Index,
        mode: Mode,
        queue: Index,
    ) -> Index {
        self.live += 1;
        let seat = &mut self.entries.insert(serial, client, mode, false).seat;
        seat.queue = queue;
        seat.set_clear();
        seat.entry
    }

    /// Adds an entry at the tail of one queue. Returns true if it is clear.
    #[inline]
    pub(crate) fn insert_last(
        &mut self,
        serial: u64,
        client: Index,
        mode: Mode,
        queue: Index,
    ) -> (Index, bool) {
        let entry = self.insert(serial, client, mode, false);
        self.entries[entry].seat.queue = queue;
        (entry, self.sit_last(entry, queue))
    }

    /// Seats an entry of another manager here, in the slot of its id. Returns the slot.
    pub(crate) fn adopt(&mut self, other: &Self, entry: Index) -> Index {
        let own = other.id(entry).slot() as Index;
        self.entries.put(own, &other.entries[entry]);
        self.live += 1;
        let clear = self.seat(own, &other.scope(entry), InsertAt::Last);
        debug_assert_eq!(clear, other.is_held(entry));
        self.held += usize::from(clear);
        own
    }

    /// Takes slots for entries that are [adopted](Self::adopt). There must be no entry yet.
    pub(crate) fn make_room(&mut self, slots: impl Iterator<Item = usize> + Clone) {
        self.entries.make_room(slots);
    }

    /// Appends a seat to a queue. Returns true if the seat is clear. Inlined, because a call costs
    /// as much as the work.
    #[inline(always)]
    fn sit_last(&mut self, seat: Index, queue: Index) -> bool {
        let marks = self.entries[seat].seat.marks();
        let list = &mut self.queues[queue];
        let last = list.last;
        let before = &mut self.entries[last].seat;
        let both = marks | before.marks();
        if list.tally.is_some() || both.is_limited() {
            return self.sit_counted(seat, queue, InsertAt::Last);
        }
        before.next = seat;
        list.last = seat;
        let own = &mut self.entries[seat].seat;
        own.prev = last;
        if list.clear_end == last && !both.is_exclusive() {
            own.set_clear();
            list.clear_end = seat;
            return true;
        }
        self.block(seat);
        false
    }

    fn sit_first(&mut self, seat: Index, queue: Index) {
        self.link(seat, queue, NIL);
        self.entries[seat].seat.set_clear();
        let mut passed = self.entries[seat].seat.next;
        if self.conflict(seat, passed) {
            // Nothing behind an exclusive seat is clear, and a clear exclusive seat was alone.
            while passed != NIL && self.entries[passed].seat.is_clear() {
                self.entries[passed].seat.set_blocked();
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
            // The seat joins the run of shared seats, at its end.
            self.link(seat, queue, end);
            self.entries[seat].seat.set_clear();
            self.queues[queue].clear_end = seat;
        } else if self.is_held(self.entry(end)) {
            self.link(seat, queue, end);
            self.block(seat);
        } else {
            self.sit_first(seat, queue);
        }
    }

    #[inline]
    fn block(&mut self, seat: Index) {
        let entry = self.entry(seat);
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
}

/// Reading seats.
impl Seating {
    #[inline]
    fn entry(&self, seat: Index) -> Index {
        self.entries[seat].seat.entry
    }

    fn limit(&self, seat: Index) -> Allowance {
        self.entries[seat].seat.mode().into()
    }

    /// Returns true if two neighbours in a queue that is not counted exclude each other.
    #[inline]
    fn conflict(&self, a: Index, b: Index) -> bool {
        (self.entries[a].seat.marks() | self.entries[b].seat.marks()).is_exclusive()
    }
}
