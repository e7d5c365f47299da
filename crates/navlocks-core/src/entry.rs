//! Entries: all live requests, pending and held, and their seats in the queues.

use core::ops::{BitOr, Index as IndexTrait, IndexMut};

use crate::id::{Index, NIL, Shard};
use crate::slots::Slots;
use crate::{Limit, Mode, RequestId};

/// One slot of the slab. Each further name of an entry takes another slot of which only the seat is
/// used, so that queues link seats of one kind.
#[derive(Debug)]
pub(crate) struct Slot {
    pub(crate) seat: Seat,
    pub(crate) life: Life,
}

/// An entry's place in the queue of one name.
#[derive(Debug)]
pub(crate) struct Seat {
    /// The queue this seat stands in, and its neighbours there.
    pub(crate) queue: Index,
    pub(crate) prev: Index,
    pub(crate) next: Index,
    /// The slot of the entry that has this seat: this one, or for a further name an earlier one.
    pub(crate) entry: Index,
    /// The entry's seat for its next name.
    pub(crate) sibling: Index,
    marks: Marks,
}

/// Facts of a seat in four bytes: three marks and the entry's limit, so that a walk along a queue
/// touches nothing else.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Marks(u32);

impl Marks {
    /// The seat is one of those that may be held together, from the head of its queue on.
    const CLEAR: u32 = 1;
    /// The entry stands before the pending entries that do not overtake.
    const OVERTAKES: u32 = 1 << 1;
    /// The entry allows no other holder.
    const EXCLUSIVE: u32 = 1 << 2;
    /// The entry has a limit of two or more, which is in the bits above.
    const LIMITED: u32 = 1 << 3;
    const LIMIT_SHIFT: u32 = u32::BITS - Limit::BITS;

    /// Returns true if an entry with these marks allows no other holder.
    #[inline]
    pub(crate) fn is_exclusive(self) -> bool {
        self.0 & Self::EXCLUSIVE != 0
    }

    /// Returns true if an entry with these marks has a limit of two or more.
    #[inline]
    pub(crate) fn is_limited(self) -> bool {
        self.0 & Self::LIMITED != 0
    }

    #[inline]
    fn of(mode: Mode) -> Self {
        Self(match mode {
            Mode::Exclusive => Self::EXCLUSIVE,
            Mode::Shared => 0,
            Mode::Limited(limit) => Self::LIMITED | limit.get() << Self::LIMIT_SHIFT,
        })
    }
}

/// The marks of either seat.
impl BitOr for Marks {
    type Output = Self;

    #[inline]
    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl Seat {
    #[inline]
    fn new(entry: Index, marks: Marks) -> Self {
        Self { queue: NIL, prev: NIL, next: NIL, entry, sibling: NIL, marks }
    }

    /// Returns a seat of the same entry that stands in no queue.
    fn copy(&self, entry: Index) -> Self {
        Self::new(entry, Marks(self.marks.0 & !Marks::CLEAR))
    }

    /// Returns true if the seat is one of those that may be held together, from the head of its
    /// queue on.
    #[inline]
    pub(crate) fn is_clear(&self) -> bool {
        self.marks.0 & Marks::CLEAR != 0
    }

    #[inline]
    pub(crate) fn set_clear(&mut self) {
        self.marks.0 |= Marks::CLEAR;
    }

    #[inline]
    pub(crate) fn set_blocked(&mut self) {
        self.marks.0 &= !Marks::CLEAR;
    }

    #[inline]
    pub(crate) fn marks(&self) -> Marks {
        self.marks
    }

    #[inline]
    pub(crate) fn mode(&self) -> Mode {
        match Limit::new(self.marks.0 >> Marks::LIMIT_SHIFT) {
            Some(limit) => Mode::Limited(limit),
            None if self.marks.is_exclusive() => Mode::Exclusive,
            None => Mode::Shared,
        }
    }

    pub(crate) fn set_mode(&mut self, mode: Mode) {
        let kept = self.marks.0 & (Marks::CLEAR | Marks::OVERTAKES);
        self.marks.0 = Marks::of(mode).0 | kept;
    }

    /// Returns true if the entry stands before the pending entries that do not overtake.
    #[inline]
    pub(crate) fn overtakes(&self) -> bool {
        self.marks.0 & Marks::OVERTAKES != 0
    }
}

/// The state of an entry that does not depend on the number of its names.
#[derive(Debug)]
pub(crate) struct Life {
    /// The number of the request; 0 in a slot that is free or only a further seat.
    pub(crate) serial: u64,
    /// The fencing token; 0 while the entry is pending.
    pub(crate) token: u64,
    pub(crate) member: Member,
    /// On how many of its names the entry is not clear. It is held exactly when this is 0.
    pub(crate) blocked: u32,
}

/// The client of an entry, and the neighbours in the list of that client's entries.
#[derive(Debug)]
pub(crate) struct Member {
    pub(crate) client: Index,
    pub(crate) prev: Index,
    pub(crate) next: Index,
}

impl Member {
    const fn of(client: Index) -> Self {
        Self { client, prev: NIL, next: NIL }
    }
}

impl Life {
    /// The value in a slot that is only a further seat.
    const NONE: Self = Self { serial: 0, token: 0, member: Member::of(NIL), blocked: 0 };

    #[inline]
    pub(crate) fn is_held(&self) -> bool {
        self.token != 0
    }
}

impl Slot {
    fn free() -> Self {
        Self { seat: Seat::new(NIL, Marks(0)), life: Life::NONE }
    }

    /// Returns the place among pending entries: overtakers first, each group in order of arrival.
    #[inline]
    pub(crate) fn queue_order(&self) -> (bool, u64) {
        (!self.seat.overtakes(), self.life.serial)
    }

    /// Returns the place among all entries: held ones in grant order, then pending ones in queue
    /// order.
    #[inline]
    pub(crate) fn order(&self) -> Order {
        (!self.life.is_held(), self.life.token, self.queue_order())
    }
}

/// The sort key of entries.
pub(crate) type Order = (bool, u64, (bool, u64));

/// All entries of a manager.
#[derive(Debug)]
pub(crate) struct Entries {
    slots: Slots<Slot>,
    shard: Shard,
    /// How often a slot was read; the cost tests count it.
    #[cfg(test)]
    pub(crate) reads: core::cell::Cell<usize>,
}

impl Entries {
    pub(crate) const BYTES_PER_SEAT: usize = size_of::<Slot>();

    pub(crate) fn new(shard: Shard) -> Self {
        Self {
            slots: Slots::with_limit(shard.limit()),
            shard,
            #[cfg(test)]
            reads: core::cell::Cell::default(),
        }
    }

    /// Returns the shard that these entries belong to.
    #[inline]
    pub(crate) fn shard(&self) -> Shard {
        self.shard
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.slots.len() == 0
    }

    #[inline]
    pub(crate) fn capacity(&self) -> usize {
        self.slots.capacity()
    }

    /// Returns the slot that [`insert`](Self::insert) takes next.
    #[inline]
    pub(crate) fn vacant(&self) -> Index {
        self.slots.vacant()
    }

    /// Takes the [vacant](Self::vacant) slot for a new entry that stands in no queue yet.
    #[inline(always)]
    pub(crate) fn insert(
        &mut self,
        serial: u64,
        client: Index,
        mode: Mode,
        overtakes: bool,
    ) -> &mut Slot {
        let (entry, slot) = self.slots.occupy(Slot::free);
        let mut marks = Marks::of(mode);
        if overtakes {
            marks.0 |= Marks::OVERTAKES;
        }
        slot.seat = Seat::new(entry, marks);
        slot.life = Life { serial, member: Member::of(client), ..Life::NONE };
        slot
    }

    /// Takes a slot for a further seat of `entry`, after its seat `before`.
    pub(crate) fn insert_sibling(&mut self, entry: Index, before: Index) -> Index {
        let seat = self[entry].seat.copy(entry);
        let (sibling, slot) = self.slots.occupy(Slot::free);
        *slot = Slot { seat, life: Life::NONE };
        self[before].seat.sibling = sibling;
        sibling
    }

    /// Takes these slots for entries that are [put](Self::put) there. There must be none yet.
    pub(crate) fn make_room(&mut self, slots: impl Iterator<Item = usize> + Clone) {
        self.slots.take(slots, Slot::free);
    }

    /// Puts an entry of another shard into a slot, as one that stands in no queue and belongs to no
    /// client yet.
    pub(crate) fn put(&mut self, slot: Index, other: &Slot) {
        let Life { serial, token, ref member, .. } = other.life;
        let life = Life { serial, token, member: Member::of(member.client), ..Life::NONE };
        self[slot] = Slot { seat: other.seat.copy(slot), life };
    }

    /// Frees one slot, whose seat stands in no queue any more.
    #[inline]
    pub(crate) fn remove(&mut self, slot: Index) {
        let freed = &mut self[slot];
        freed.life.serial = 0;
        freed.seat.entry = NIL;
        self.slots.remove(slot);
    }

    /// Returns the slot of the entry with this id, if it is still live.
    #[inline]
    pub(crate) fn find(&self, id: RequestId) -> Option<Index> {
        // Serials begin at 1, so no id fits a free slot.
        let own = self.shard.own(id.slot());
        let slot = self.slots.get(own)?;
        (slot.life.serial == id.serial()).then_some(own as Index)
    }

    /// Returns the slot at this position, unless it is free.
    #[inline]
    pub(crate) fn get(&self, slot: Index) -> Option<&Slot> {
        self.slots.get(slot as usize).filter(|slot| slot.seat.entry != NIL)
    }

    #[inline]
    pub(crate) fn id(&self, entry: Index) -> RequestId {
        self.shard.id(entry, self[entry].life.serial)
    }

    /// Returns the seats of an entry, one for each name of its scope, in order of the names.
    pub(crate) fn seats(&self, entry: Index) -> impl Iterator<Item = Index> + '_ {
        let sibling = |&seat: &Index| {
            let next = self[seat].seat.sibling;
            (next != NIL).then_some(next)
        };
        core::iter::successors(Some(entry), sibling)
    }
}

impl IndexTrait<Index> for Entries {
    type Output = Slot;

    #[inline]
    fn index(&self, index: Index) -> &Slot {
        #[cfg(test)]
        self.reads.set(self.reads.get() + 1);
        &self.slots[index]
    }
}

impl IndexMut<Index> for Entries {
    #[inline]
    fn index_mut(&mut self, index: Index) -> &mut Slot {
        #[cfg(test)]
        self.reads.set(self.reads.get() + 1);
        &mut self.slots[index]
    }
}
