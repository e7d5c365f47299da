//! A lock space in parts: managers that have different names, so that each can be behind a mutex of its own.
//!
//! Every name belongs to one part. As long as each request has a single name, each lives in one part and nothing in another
//! concerns it. What concerns several parts, all of a client or a scope of several names, needs all of them at one moment.

use alloc::vec::Vec;

use crate::client::Clients;
use crate::entry::{Entries, Order};
use crate::id::{Index, Part};
use crate::manager::LockManager;
use crate::numbers::Numbers;
use crate::queue::{HashKey, Queues};
use crate::seating::Place;
use crate::{Name, RequestId, Scope, Snapshot};

impl LockManager {
    /// A lock space in `COUNT` parts, a power of two, for names divided by [`part_of`](Self::part_of). The embedder sees to it that
    ///
    /// - a request has a single name, and goes to the part of that name; what names a request goes to the part that
    ///   [its slot](RequestId::slot) says: the remainder by the number of parts;
    /// - [`add_client`](Self::add_client) and [`terminate`](Self::terminate) are made on all parts at one moment, so that all know
    ///   the same clients under the same ids, and a client that ends has requests in one part at most: grants of one step
    ///   are in queue order, whatever their names;
    /// - no client is suspended, for that concerns all it has.
    ///
    /// For everything else there is [`whole`](Self::whole). Request ids and fencing tokens are of the whole space: no two parts
    /// give the same, and later ones are larger.
    pub fn parts<const COUNT: usize>(key: HashKey) -> [Self; COUNT] {
        let numbers = Numbers::shared();
        core::array::from_fn(|number| {
            let part = Part { number: number as Index, bits: const { bits(COUNT) } };
            let queues = Queues::new(key);
            Self::with(queues, Entries::new(part), Clients::new(), numbers.of_another_part())
        })
    }

    /// Which of `COUNT` parts a name belongs to. No secret is in it: names that fall together share a mutex, and nothing
    /// else comes of it.
    #[inline]
    pub fn part_of<const COUNT: usize>(name: &Name) -> usize {
        (name.spread() >> (64 - const { bits(COUNT) })) as usize
    }

    /// A slot of this part for a request of this part: dense, where [`RequestId::slot`] is dense over all parts.
    #[inline]
    pub fn slot_in_part(&self, request: RequestId) -> usize {
        self.entries.part().own(request.slot())
    }

    /// One manager with all that these parts have, under the same ids. It gives numbers from where they do.
    pub fn whole(parts: &[&Self]) -> Self {
        let Some(&first) = parts.first() else { return Self::new(HashKey::from_bytes([0; 16])) };
        let mut whole = Self::with(
            first.queues.empty(),
            Entries::new(Part::WHOLE),
            first.clients.without_entries(),
            first.numbers.of_another_part(),
        );
        let mut entries = in_order(parts);
        let slots = entries.iter().map(|&(part, entry)| part.entries.id(entry).slot());
        whole.entries.make_room(slots);
        // In canonical order, so that each is as clear as it was.
        for &(part, entry) in &entries {
            whole.seat_again(part, entry);
        }
        entries.sort_unstable_by_key(|&(part, entry)| part.entries.id(entry));
        for (part, entry) in entries {
            let own = part.entries.id(entry).slot() as Index;
            whole.join_client(part.entries[entry].life.client, own);
        }
        whole.settle();
        whole
    }

    /// Seats an entry of a part here, in the slot that its id says.
    fn seat_again(&mut self, part: &Self, entry: Index) {
        let slot = &part.entries[entry];
        let own = part.entries.id(entry).slot() as Index;
        let scope: Scope = part.scope_of(entry);
        self.entries.put(own, slot);
        let clear = self.take_seats(own, &scope, Place::Last);
        debug_assert_eq!(clear, slot.life.is_held());
        self.held += usize::from(clear);
    }

    /// Forgets all requests, and nothing of the clients: they live on in the [`whole`](Self::whole).
    pub fn forget_requests(&mut self) {
        self.entries.clear();
        self.queues.clear();
        self.clients = self.clients.without_entries();
        (self.live, self.held) = (0, 0);
    }

    /// As [`snapshot`](Self::snapshot), of several parts.
    pub fn snapshot_of(parts: &[&Self]) -> Snapshot {
        let (mut held, mut pending) = (Vec::new(), Vec::new());
        for (part, entry) in in_order(parts) {
            let infos = if part.entries[entry].life.is_held() { &mut held } else { &mut pending };
            infos.push(part.lock_info(entry));
        }
        Snapshot { held, pending }
    }
}

const fn bits(count: usize) -> u32 {
    assert!(count.is_power_of_two() && count > 1, "a space has 2, 4, 8 … parts");
    count.trailing_zeros()
}

/// All entries of all parts, in canonical order: held ones in grant order, then pending ones in queue order.
fn in_order<'a>(parts: &[&'a LockManager]) -> Vec<(&'a LockManager, Index)> {
    let mut entries: Vec<(Order, &LockManager, Index)> = Vec::new();
    for &part in parts {
        let clients = part.clients.iter().map(|(client, _)| client);
        let own = clients.flat_map(|client| part.entries_of(client));
        entries.extend(own.map(|entry| (part.entries[entry].order(), part, entry)));
    }
    entries.sort_unstable_by_key(|&(order, ..)| order);
    entries.into_iter().map(|(_, part, entry)| (part, entry)).collect()
}
