//! The bare floor: the cost of named locks without any features.
//!
//! A standard `HashMap` from name to queue, and per name one intrusive doubly linked queue through
//! a slab of 16-byte entries. Shared and exclusive, first come first served, release and abort in
//! constant time, names dropped with their queue. Nothing else: no clients, scopes, events, tokens
//! or checks of ids.
//!
//! It is as fast as this shape can be, because everything else is compared with it: a name is
//! allocated once per call and shared by map and queue, `request` hashes once, and `release` hashes
//! only when the name is dropped.

use std::collections::HashMap;
use std::collections::hash_map::{Entry as Slot, RandomState};
use std::hash::BuildHasher;
use std::rc::Rc;

use navlocks_core::Mode;

/// Stands for "no entry" in the links.
const NIL: u32 = u32::MAX;

/// The index of an entry in the slab. Reused after its entry is gone; the caller must not use it
/// then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Id(u32);

struct Entry {
    prev: u32,
    /// The next entry of the queue, or of the free list.
    next: u32,
    queue: u32,
    mode: Mode,
}

/// The entries of one name: held ones first, then pending ones.
struct Queue {
    /// The name; none in a free slot.
    name: Option<Rc<str>>,
    head: u32,
    tail: u32,
    /// The first waiter.
    pending: u32,
}

/// The floor over a hasher: `RandomState` is SipHash as in std, keyed against flooding.
pub(crate) struct Floor<H = RandomState> {
    names: HashMap<Rc<str>, u32, H>,
    queues: Vec<Queue>,
    queues_free: Vec<u32>,
    entries: Vec<Entry>,
    entries_free: u32,
}

impl<H: BuildHasher + Default> Floor<H> {
    pub(crate) fn new() -> Self {
        Self {
            names: HashMap::default(),
            queues: Vec::new(),
            queues_free: Vec::new(),
            entries: Vec::new(),
            entries_free: NIL,
        }
    }

    /// Requests a lock. The flag is true if it is held at once; otherwise it is pending.
    #[inline]
    pub(crate) fn request(&mut self, name: &str, mode: Mode) -> (Id, bool) {
        match self.names.entry(Rc::from(name)) {
            Slot::Occupied(slot) => {
                let queue = *slot.get();
                self.append(queue, mode)
            }
            Slot::Vacant(slot) => {
                let id = insert(&mut self.entries, &mut self.entries_free);
                let new =
                    Queue { name: Some(Rc::clone(slot.key())), head: id, tail: id, pending: NIL };
                let queue = if let Some(free) = self.queues_free.pop() {
                    self.queues[free as usize] = new;
                    free
                } else {
                    self.queues.push(new);
                    index(self.queues.len() - 1)
                };
                slot.insert(queue);
                self.entries[id as usize] = Entry { prev: NIL, next: NIL, queue, mode };
                (Id(id), true)
            }
        }
    }

    #[inline]
    fn append(&mut self, queue: u32, mode: Mode) -> (Id, bool) {
        let id = insert(&mut self.entries, &mut self.entries_free);
        let line = &mut self.queues[queue as usize];
        let held = line.pending == NIL
            && mode == Mode::Shared
            && self.entries[line.head as usize].mode == Mode::Shared;
        if !held && line.pending == NIL {
            line.pending = id;
        }
        self.entries[line.tail as usize].next = id;
        self.entries[id as usize] = Entry { prev: line.tail, next: NIL, queue, mode };
        line.tail = id;
        (Id(id), held)
    }

    /// Releases a held lock. Passes the requests that it grants to `granted`, in queue order.
    #[inline]
    pub(crate) fn release(&mut self, id: Id, granted: impl FnMut(Id)) {
        let queue = self.unlink(id.0);
        if self.queues[queue as usize].head == NIL {
            self.forget(queue);
        } else {
            self.grant(queue, granted);
        }
    }

    /// Aborts a pending request. Passes the requests that this grants to `granted`.
    #[inline]
    pub(crate) fn abort(&mut self, id: Id, granted: impl FnMut(Id)) {
        let next = self.entries[id.0 as usize].next;
        let queue = self.unlink(id.0);
        let line = &mut self.queues[queue as usize];
        // Only the first waiter blocks others from joining the holders. A waiter is never alone.
        if line.pending == id.0 {
            line.pending = next;
            self.grant(queue, granted);
        }
    }

    /// Removes the entry from its queue and adds it to the free list.
    #[inline]
    fn unlink(&mut self, id: u32) -> u32 {
        let Entry { prev, next, queue, .. } = self.entries[id as usize];
        let line = &mut self.queues[queue as usize];
        match prev {
            NIL => line.head = next,
            _ => self.entries[prev as usize].next = next,
        }
        match next {
            NIL => line.tail = prev,
            _ => self.entries[next as usize].prev = prev,
        }
        self.entries[id as usize].next = self.entries_free;
        self.entries_free = id;
        queue
    }

    /// Moves the border between held and pending as far as the modes allow.
    #[inline]
    fn grant(&mut self, queue: u32, mut granted: impl FnMut(Id)) {
        let line = &mut self.queues[queue as usize];
        while line.pending != NIL {
            let id = line.pending;
            let entry = &self.entries[id as usize];
            let shares =
                entry.mode == Mode::Shared && self.entries[line.head as usize].mode == Mode::Shared;
            if id != line.head && !shares {
                return;
            }
            line.pending = entry.next;
            granted(Id(id));
        }
    }

    #[inline]
    fn forget(&mut self, queue: u32) {
        if let Some(name) = self.queues[queue as usize].name.take() {
            self.names.remove(&name);
            self.queues_free.push(queue);
        }
    }
}

/// Returns a slot for one more entry.
#[inline]
fn insert(entries: &mut Vec<Entry>, free: &mut u32) -> u32 {
    if *free == NIL {
        entries.push(Entry { prev: NIL, next: NIL, queue: NIL, mode: Mode::Exclusive });
        index(entries.len() - 1)
    } else {
        let id = *free;
        *free = entries[id as usize].next;
        id
    }
}

#[inline]
fn index(position: usize) -> u32 {
    debug_assert!(position < NIL as usize, "the floor counts in 32 bits");
    position as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use Mode::{Exclusive, Shared};

    const NAME: &str = "a";

    fn release(floor: &mut Floor, id: Id) -> Vec<Id> {
        let mut granted = Vec::new();
        floor.release(id, |id| granted.push(id));
        granted
    }

    fn abort(floor: &mut Floor, id: Id) -> Vec<Id> {
        let mut granted = Vec::new();
        floor.abort(id, |id| granted.push(id));
        granted
    }

    #[test]
    fn exclusive_requests_are_granted_in_order() {
        let mut floor = Floor::new();
        let (first, held) = floor.request(NAME, Exclusive);
        assert!(held);
        let (second, held) = floor.request(NAME, Exclusive);
        assert!(!held);
        let (third, held) = floor.request(NAME, Exclusive);
        assert!(!held);
        assert_eq!(release(&mut floor, first), [second]);
        assert_eq!(release(&mut floor, second), [third]);
        assert_eq!(release(&mut floor, third), []);
    }

    #[test]
    fn names_are_independent() {
        let mut floor = Floor::new();
        let (a, _) = floor.request("a", Exclusive);
        let (b, held) = floor.request("b", Exclusive);
        assert!(held);
        assert_eq!(release(&mut floor, a), []);
        assert_eq!(release(&mut floor, b), []);
    }

    #[test]
    fn shared_requests_are_granted_together_and_none_overtakes() {
        let mut floor = Floor::new();
        let (writer, _) = floor.request(NAME, Exclusive);
        let run: Vec<Id> = (0..3).map(|_| floor.request(NAME, Shared).0).collect();
        let (next, _) = floor.request(NAME, Exclusive);
        let (late, _) = floor.request(NAME, Shared);
        assert_eq!(release(&mut floor, writer), run);
        // A shared request behind a pending exclusive one waits, whatever the holder.
        let (later, held) = floor.request(NAME, Shared);
        assert!(!held);
        assert_eq!(release(&mut floor, run[1]), []);
        assert_eq!(release(&mut floor, run[0]), []);
        assert_eq!(release(&mut floor, run[2]), [next]);
        assert_eq!(release(&mut floor, next), [late, later]);
        let (with_them, held) = floor.request(NAME, Shared);
        assert!(held);
        assert_eq!(release(&mut floor, with_them), []);
    }

    #[test]
    fn abort_of_first_waiter_grants_shared_ones() {
        let mut floor = Floor::new();
        let (reader, _) = floor.request(NAME, Shared);
        let (writer, _) = floor.request(NAME, Exclusive);
        let (second, _) = floor.request(NAME, Shared);
        let (last, _) = floor.request(NAME, Exclusive);
        assert_eq!(abort(&mut floor, writer), [second]);
        assert_eq!(release(&mut floor, reader), []);
        assert_eq!(release(&mut floor, second), [last]);
    }

    #[test]
    fn aborts_keep_the_order_of_the_rest() {
        let mut floor = Floor::new();
        let (holder, _) = floor.request(NAME, Exclusive);
        let waiting: Vec<Id> = (0..5).map(|_| floor.request(NAME, Exclusive).0).collect();
        for gone in [0, 2, 4] {
            assert_eq!(abort(&mut floor, waiting[gone]), []);
        }
        let (tail, _) = floor.request(NAME, Exclusive);
        assert_eq!(release(&mut floor, holder), [waiting[1]]);
        assert_eq!(release(&mut floor, waiting[1]), [waiting[3]]);
        assert_eq!(release(&mut floor, waiting[3]), [tail]);
    }

    #[test]
    fn unused_name_leaves_nothing() {
        let mut floor: Floor = Floor::new();
        for round in 0..100 {
            let (first, _) = floor.request(&format!("name {round}"), Exclusive);
            let (second, _) = floor.request(&format!("name {round}"), Shared);
            floor.abort(second, |_| {});
            floor.release(first, |_| {});
        }
        assert!(floor.names.is_empty());
        assert_eq!((floor.queues.len(), floor.entries.len()), (1, 2));
    }
}
