//! The lock request queue map: for each name in use, the entries that want it, in order.

use core::hash::Hasher;
use core::ops::{Index as IndexTrait, IndexMut};

use hashbrown::HashTable;
use hashbrown::hash_table::Entry as TableEntry;
use siphasher::sip::SipHasher13;

use crate::Name;
use crate::id::{Index, NIL};
use crate::slots::Slots;

/// The key under which a manager hashes names. Names come from strangers: with a key they cannot guess, nobody can
/// choose names that all fall together. Nothing a caller can observe depends on it.
#[derive(Clone, Copy)]
pub struct HashKey([u8; 16]);

impl HashKey {
    /// A key of these bytes. Take them from a random source wherever names may come from outside.
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }
}

/// Says nothing of the key, which is a secret.
impl core::fmt::Debug for HashKey {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("HashKey(..)")
    }
}

/// All seats for one name, held and pending, as a list in order. Its *clear* prefix is either one
/// exclusive seat or a run of shared ones: those that no earlier seat of the list conflicts with.
///
/// The standard keeps held locks and waiting requests apart; here the held ones are part of that prefix.
///
/// <https://w3c.github.io/web-locks/#lock-request-queue>
#[derive(Debug)]
pub(crate) struct Queue {
    pub(crate) name: Name,
    hash: u64,
    pub(crate) first: Index,
    pub(crate) last: Index,
    /// The last seat of the clear prefix; none only for a moment, between a departure and processing.
    pub(crate) clear_end: Index,
    /// How many seats belong to clients that are suspended until contention.
    pub(crate) sleepers: u32,
}

/// The queues of all names in use, and of no other.
///
/// <https://w3c.github.io/web-locks/#lock-manager-lock-request-queue-map>
#[derive(Debug)]
pub(crate) struct Queues {
    table: HashTable<Index>,
    /// A free one has no first seat.
    queues: Slots<Queue>,
    hasher: SipHasher13,
}

impl Queues {
    pub(crate) fn new(key: HashKey) -> Self {
        Self {
            table: HashTable::new(),
            queues: Slots::new(),
            hasher: SipHasher13::new_with_key(&key.0),
        }
    }

    /// Gives all memory back; no queue may be left.
    pub(crate) fn clear(&mut self) {
        self.table = HashTable::new();
        self.queues = Slots::new();
    }

    pub(crate) fn len(&self) -> usize {
        self.table.len()
    }

    #[inline]
    fn hash(&self, name: &Name) -> u64 {
        let mut hasher = self.hasher;
        hasher.write(name.as_wtf8());
        hasher.finish()
    }

    #[inline]
    pub(crate) fn find(&self, name: &Name) -> Option<Index> {
        let equal = |&index: &Index| self[index].name == *name;
        self.table.find(self.hash(name), equal).copied()
    }

    /// The queue at this position, unless it is free.
    #[inline]
    pub(crate) fn get(&self, index: Index) -> Option<&Queue> {
        self.queues.get(index as usize).filter(|queue| queue.first != NIL)
    }

    /// The queue of `name`. If there is none, a new one in which `founder` has the only seat, which is clear: true.
    ///
    /// <https://w3c.github.io/web-locks/#get-the-lock-request-queue>
    #[inline]
    pub(crate) fn get_the_lock_request_queue(
        &mut self,
        name: &Name,
        founder: Index,
    ) -> (Index, bool) {
        let hash = self.hash(name);
        let Self { table, queues, .. } = self;
        let equal = |&index: &Index| queues[index].name == *name;
        let rehash = |&index: &Index| queues[index].hash;
        match table.entry(hash, equal, rehash) {
            // Step 2. Return queueMap[name].
            TableEntry::Occupied(found) => (*found.get(), false),
            // Step 1. If queueMap[name] does not exist, set it to a new lock request queue.
            TableEntry::Vacant(vacant) => {
                let index = match queues.reuse() {
                    Some((index, queue)) => {
                        queue.name.clone_from(name);
                        queue.hash = hash;
                        (queue.first, queue.last, queue.clear_end) = (founder, founder, founder);
                        queue.sleepers = 0;
                        index
                    }
                    None => queues.insert(Queue {
                        name: name.clone(),
                        hash,
                        first: founder,
                        last: founder,
                        clear_end: founder,
                        sleepers: 0,
                    }),
                };
                vacant.insert(index);
                (index, true)
            }
        }
    }

    /// Forgets a queue whose last seat was left, so that only names in use cost anything.
    #[inline]
    pub(crate) fn remove(&mut self, index: Index) {
        let queue = &mut self.queues[index];
        queue.first = NIL;
        queue.name.forget_text();
        let same = |&other: &Index| other == index;
        if let Ok(found) = self.table.find_entry(queue.hash, same) {
            found.remove();
        }
        self.queues.remove(index);
    }

    /// The queues in use, in an order that means nothing.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Index, &Queue)> {
        self.queues.iter().filter(|(_, queue)| queue.first != NIL)
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
