//! The lock request queue map: for each name in use, the entries that want it, in order.

use alloc::boxed::Box;
use core::ops::{Index as IndexTrait, IndexMut};

use hashbrown::HashTable;
use hashbrown::hash_table::Entry as TableEntry;

use crate::Name;
use crate::hash::{HashKey, Seed};
use crate::id::{Index, NIL};
use crate::limit::Tally;
use crate::slots::Slots;

/// All seats for one name, held and pending, as a list in order. Its *clear* prefix has all seats
/// that may be held together, from the head on: as many as the smallest of their limits allows. So
/// it is one exclusive seat, a run of shared ones, or a run in which some have a limit.
///
/// The standard keeps held locks and waiting requests apart; here the held ones are part of that
/// prefix.
///
/// <https://w3c.github.io/web-locks/#lock-request-queue>
#[derive(Debug)]
pub(crate) struct Queue {
    pub(crate) name: Name,
    hash: u64,
    pub(crate) first: Index,
    pub(crate) last: Index,
    /// The last seat of the clear prefix; none only for a moment, between a departure and
    /// processing.
    pub(crate) clear_end: Index,
    /// How many seats belong to clients that are suspended until contention.
    pub(crate) sleepers: u32,
    /// The limits of the clear prefix. Without it, all seats are exclusive or shared, or there is
    /// one seat.
    pub(crate) tally: Option<Box<Tally>>,
}

impl Queue {
    /// Gives an unused queue its first seat, which is clear.
    #[inline]
    fn found(&mut self, founder: Index) {
        (self.first, self.last, self.clear_end) = (founder, founder, founder);
        self.sleepers = 0;
    }

    /// Does the same if the queue is one of the `unused` ones in the table. Returns true then.
    #[inline]
    fn found_if_unused(&mut self, founder: Index, unused: &mut usize) -> bool {
        let founded = !self.is_used();
        if founded {
            self.found(founder);
            *unused -= 1;
        }
        founded
    }

    /// Drops the count of the limits. Apart, so that queues without one do not pay for it.
    #[cold]
    #[inline(never)]
    fn drop_tally(&mut self) {
        self.tally = None;
    }

    #[inline]
    fn is_used(&self) -> bool {
        self.first != NIL
    }
}

/// The queues of all names in use, and a few that became unused last. Names tend to be used again,
/// and finding a queue costs less than making one.
///
/// <https://w3c.github.io/web-locks/#lock-manager-lock-request-queue-map>
#[derive(Debug)]
pub(crate) struct Queues {
    table: HashTable<Index>,
    /// An unused queue has no first seat, whether kept or free.
    queues: Slots<Queue>,
    /// The queues that became empty last, in use again or not. A queue that drops out of here
    /// unused is forgotten.
    left: [Index; KEPT],
    next_left: usize,
    /// How many queues in the table are unused.
    unused: usize,
    /// The queue used last, while it is in the table: the next request for it needs no hash.
    recent: Index,
    seed: Seed,
}

/// How many unused names are kept.
const KEPT: usize = 8;

impl Queues {
    pub(crate) fn new(key: HashKey) -> Self {
        Self::with(Seed::new(key))
    }

    fn with(seed: Seed) -> Self {
        Self {
            table: HashTable::new(),
            queues: Slots::new(),
            left: [NIL; KEPT],
            next_left: 0,
            unused: 0,
            recent: NIL,
            seed,
        }
    }

    /// Returns queues under the same hash key, without any queue.
    pub(crate) fn empty(&self) -> Self {
        Self::with(self.seed)
    }

    /// Returns how many queues are in use.
    pub(crate) fn len(&self) -> usize {
        self.table.len() - self.unused
    }

    /// Returns how many positions there are, used and unused.
    pub(crate) fn slot_count(&self) -> usize {
        self.queues.positions()
    }

    #[inline]
    fn hash(&self, name: &Name) -> u64 {
        self.seed.hash(name.as_wtf8())
    }

    #[inline]
    pub(crate) fn find(&self, name: &Name) -> Option<Index> {
        let equal = |&index: &Index| self[index].name == *name;
        let found = self.table.find(self.hash(name), equal).copied();
        found.filter(|&index| self[index].is_used())
    }

    /// Returns the queue at this position, if it is in use.
    #[inline]
    pub(crate) fn get(&self, index: Index) -> Option<&Queue> {
        self.queues.get(index as usize).filter(|queue| queue.is_used())
    }

    /// Returns the queue of `name`. If there is none, makes one in which `founder` has the only
    /// seat, which is clear, and returns true with it.
    ///
    /// <https://w3c.github.io/web-locks/#get-the-lock-request-queue>
    #[inline]
    pub(crate) fn get_the_lock_request_queue(
        &mut self,
        name: &Name,
        founder: Index,
    ) -> (Index, bool) {
        let Self { queues, unused, recent, .. } = self;
        if let Some(queue) = queues.get_mut(*recent)
            && queue.name == *name
        {
            // Step 2. Return queueMap[name].
            return (*recent, queue.found_if_unused(founder, unused));
        }
        self.look_up_the_lock_request_queue(name, founder)
    }

    /// Does the same for any name.
    ///
    /// <https://w3c.github.io/web-locks/#get-the-lock-request-queue>
    #[inline(never)]
    fn look_up_the_lock_request_queue(&mut self, name: &Name, founder: Index) -> (Index, bool) {
        let hash = self.hash(name);
        let Self { table, queues, unused, recent, .. } = self;
        let equal = |&index: &Index| queues[index].name == *name;
        let rehash = |&index: &Index| queues[index].hash;
        match table.entry(hash, equal, rehash) {
            // Step 2. Return queueMap[name].
            TableEntry::Occupied(found) => {
                *recent = *found.get();
                (*recent, queues[*recent].found_if_unused(founder, unused))
            }
            // Step 1. If queueMap[name] does not exist, set it to a new lock request queue.
            TableEntry::Vacant(vacant) => {
                let index = match queues.reuse() {
                    Some((index, queue)) => {
                        queue.name.clone_from(name);
                        queue.hash = hash;
                        queue.found(founder);
                        index
                    }
                    None => queues.insert(Queue {
                        name: name.clone(),
                        hash,
                        first: founder,
                        last: founder,
                        clear_end: founder,
                        sleepers: 0,
                        tally: None,
                    }),
                };
                vacant.insert(index);
                *recent = index;
                (index, true)
            }
        }
    }

    /// Marks a queue that lost its last seat as unused. A long name is forgotten at once, to free
    /// its text.
    #[inline]
    pub(crate) fn leave(&mut self, index: Index) {
        let queue = &mut self.queues[index];
        queue.first = NIL;
        if queue.tally.is_some() {
            queue.drop_tally();
        }
        self.unused += 1;
        if queue.name.is_shared() {
            self.forget(index);
        } else if !self.left.contains(&index) {
            self.keep(index);
        }
    }

    /// Keeps an unused queue, in place of the one that was kept longest.
    #[inline]
    fn keep(&mut self, index: Index) {
        let longest = core::mem::replace(&mut self.left[self.next_left], index);
        self.next_left = (self.next_left + 1) % KEPT;
        if longest != NIL && !self.queues[longest].is_used() {
            self.forget(longest);
        }
    }

    fn forget(&mut self, index: Index) {
        self.unused -= 1;
        if self.recent == index {
            self.recent = NIL;
        }
        let queue = &mut self.queues[index];
        queue.name.forget_text();
        let same = |&other: &Index| other == index;
        if let Ok(found) = self.table.find_entry(queue.hash, same) {
            found.remove();
        }
        self.queues.remove(index);
    }

    /// Checks that every queue in use is found by its name, and that kept ones are short and
    /// counted.
    pub(crate) fn check(&self) {
        for (index, queue) in self.iter() {
            assert_eq!(self.find(&queue.name), Some(index), "{} cannot be found", queue.name);
        }
        assert_eq!(self.iter().count(), self.len(), "a queue is not in the table");
        let kept = self.left.iter().filter(|&&left| left != NIL).map(|&left| &self.queues[left]);
        assert!(kept.clone().all(|queue| !queue.name.is_shared()), "a long name is kept");
        let unused = kept.filter(|queue| !queue.is_used()).count();
        assert_eq!(unused, self.unused, "an unused queue is not among the kept ones");
        if let Some(recent) = self.queues.get(self.recent as usize) {
            let same = |&other: &Index| other == self.recent;
            let found = self.table.find(recent.hash, same);
            assert!(found.is_some(), "the recent queue was forgotten");
        }
    }

    /// Returns how many bytes the queues take, long names aside.
    pub(crate) fn memory(&self) -> usize {
        self.queues.capacity() * size_of::<Queue>() + self.table.allocation_size()
    }

    /// Returns the queues in use, in no particular order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Index, &Queue)> {
        self.queues.iter().filter(|(_, queue)| queue.is_used())
    }
}

impl IndexTrait<Index> for Queues {
    type Output = Queue;

    #[inline]
    fn index(&self, index: Index) -> &Queue {
        &self.queues[index]
    }
}

impl IndexMut<Index> for Queues {
    #[inline]
    fn index_mut(&mut self, index: Index) -> &mut Queue {
        &mut self.queues[index]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Opens the queue of a name. Returns true if the name had none in use.
    fn open(queues: &mut Queues, name: &str) -> (Index, bool) {
        let name = Name::from(name);
        let opened = queues.get_the_lock_request_queue(&name, 0);
        assert_eq!(queues.find(&name), Some(opened.0));
        queues.check();
        opened
    }

    #[test]
    fn recent_long_name_when_left_matches_no_other_name() {
        let long = "a name of more bytes than fit inside";
        let mut queues = Queues::new(HashKey::from_bytes([7; 16]));
        let (index, _) = open(&mut queues, long);
        queues.leave(index);
        assert!(open(&mut queues, "").1);
        assert!(open(&mut queues, long).1);
        assert!(!open(&mut queues, long).1);
        assert_eq!(queues.len(), 2);
    }

    #[test]
    fn recent_name_when_forgotten_gets_a_new_queue() {
        let names: [&str; KEPT + 1] = core::array::from_fn(|at| &"abcdefghi"[at..=at]);
        let mut queues = Queues::new(HashKey::from_bytes([7; 16]));
        let indices = names.map(|name| open(&mut queues, name).0);
        // The last one becomes unused first, and so is forgotten first.
        for index in indices.into_iter().rev() {
            queues.leave(index);
        }
        assert!(open(&mut queues, names[KEPT]).1);
        assert_eq!(queues.len(), 1);
    }
}
