//! Shards: one lock space as several managers, so that each can be behind a mutex of its own.
//!
//! Every name belongs to one shard. While each request has a single name, it lives in one shard,
//! and no other shard affects it. All shards at once are needed for a scope of several names and
//! for the end of a client.

use alloc::vec::Vec;

use super::LockManager;
use crate::client::Clients;
use crate::entry::Order;
use crate::hash::HashKey;
use crate::id::{Index, Shard};
use crate::numbers::Numbers;
use crate::queue::Queues;
use crate::seating::Seating;
use crate::{Name, RequestId, Snapshot};

impl LockManager {
    /// Makes a lock space of `COUNT` shards, a power of two, for names divided by
    /// [`shard_of`](Self::shard_of). The embedder sees to it that
    ///
    /// - a request has a single name and goes to the shard of that name; an input that names a
    ///   request goes to the shard that [its slot](RequestId::slot) names: the remainder by the
    ///   number of shards;
    /// - [`add_client`](Self::add_client) and [`terminate`](Self::terminate) are called on all
    ///   shards at one moment, so that all know the same clients under the same ids, and a client
    ///   that ends has requests in one shard at most: grants of one step are in queue order,
    ///   whatever their names;
    /// - no client is suspended, because that affects all its entries.
    ///
    /// For everything else there is [`whole`](Self::whole). Request ids and fencing tokens are of
    /// the whole space: no two shards give the same, and later ones are larger.
    pub fn shards<const COUNT: usize>(key: HashKey) -> [Self; COUNT] {
        let numbers = Numbers::shared();
        core::array::from_fn(|number| {
            let shard = Shard { number: number as Index, bits: const { bits(COUNT) } };
            let seating = Seating::new(Queues::new(key), shard);
            Self::with(seating, Clients::new(), numbers.of_another_shard())
        })
    }

    /// Returns the shard of `COUNT` that a name belongs to. It needs no key: names that collide
    /// share a mutex, and nothing else follows.
    #[inline]
    pub fn shard_of<const COUNT: usize>(name: &Name) -> usize {
        (name.spread() >> (64 - const { bits(COUNT) })) as usize
    }

    /// Returns the slot of a request of this shard: dense, where [`RequestId::slot`] is dense over
    /// all shards.
    #[inline]
    pub fn slot_in_shard(&self, request: RequestId) -> usize {
        self.seating.shard().own(request.slot())
    }

    /// Makes one manager with all entries of these shards, under the same ids. Its numbers continue
    /// theirs.
    pub fn whole(shards: &[&Self]) -> Self {
        let Some(&first) = shards.first() else { return Self::new(HashKey::from_bytes([0; 16])) };
        let mut whole = Self::with(
            first.seating.empty(Shard::WHOLE),
            first.clients.without_entries(),
            first.numbers.of_another_shard(),
        );
        let mut entries = in_order(shards);
        let slots = entries.iter().map(|&(shard, entry)| shard.seating.id(entry).slot());
        whole.seating.make_room(slots);
        // In canonical order, so that each is as clear as it was.
        for &(shard, entry) in &entries {
            whole.seating.adopt(&shard.seating, entry);
        }
        entries.sort_unstable_by_key(|&(shard, entry)| shard.seating.id(entry));
        for (shard, entry) in entries {
            let own = shard.seating.id(entry).slot() as Index;
            whole.clients.enlist(own, &mut whole.seating);
        }
        shards.iter().for_each(|shard| whole.clients.nests.extend(&shard.clients.nests));
        whole.settle();
        whole
    }

    /// Drops all requests and keeps the clients: the requests are in the [`whole`](Self::whole).
    pub fn forget_requests(&mut self) {
        self.seating.clear();
        self.clients = self.clients.without_entries();
    }

    /// Returns the [`snapshot`](Self::snapshot) of several shards.
    pub fn snapshot_of(shards: &[&Self]) -> Snapshot {
        let (mut held, mut pending) = (Vec::new(), Vec::new());
        for (shard, entry) in in_order(shards) {
            let infos = if shard.seating.is_held(entry) { &mut held } else { &mut pending };
            infos.push(shard.lock_info(entry));
        }
        Snapshot { held, pending }
    }
}

const fn bits(count: usize) -> u32 {
    assert!(count.is_power_of_two() && count > 1, "a space has 2, 4, 8 … shards");
    count.trailing_zeros()
}

/// Returns all entries of all shards in canonical order: held ones in grant order, then pending
/// ones in queue order.
fn in_order<'a>(shards: &[&'a LockManager]) -> Vec<(&'a LockManager, Index)> {
    let mut entries: Vec<(Order, &LockManager, Index)> = Vec::new();
    for &shard in shards {
        let own = shard.clients.all_entries(&shard.seating);
        entries.extend(own.map(|entry| (shard.seating.order(entry), shard, entry)));
    }
    entries.sort_unstable_by_key(|&(order, ..)| order);
    entries.into_iter().map(|(_, shard, entry)| (shard, entry)).collect()
}
