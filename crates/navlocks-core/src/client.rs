//! Clients: the owners of requests, the list of each one's entries, and which are suspended.

use alloc::boxed::Box;
use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use core::ops::{Index as IndexTrait, IndexMut};

use crate::entry::Member;
use crate::id::{Index, NIL};
use crate::nests::Nests;
use crate::seating::Seating;
use crate::slots::Slots;
use crate::{ClientId, Event};

/// The fate of the locks of a client that is suspended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum SuspendPolicy {
    /// The client keeps its locks until another client needs one: a suspended client never blocks
    /// others. As soon as the request of another client would wait behind one of its entries, held
    /// or pending, or another client [queries](crate::LockManager::query), it is
    /// [evicted](Event::Evicted) and loses them all. The default.
    #[default]
    EvictOnContention,
    /// The client loses its locks at once. Its requests keep their places in the queue; one whose
    /// turn comes while the client is suspended is skipped.
    ReleaseAtOnce,
}

/// One client and the list of its entries, in order of arrival.
#[derive(Debug)]
pub(crate) struct Client {
    /// 0 in a free slot.
    serial: u64,
    first: Index,
    last: Index,
    /// Present while the client is suspended; boxed because few are.
    pub(crate) suspension: Option<Box<Suspension>>,
}

/// The state of a client while it is suspended.
#[derive(Debug)]
pub(crate) struct Suspension {
    pub(crate) policy: SuspendPolicy,
    /// Events that the client receives when it is resumed.
    pub(crate) deferred: Vec<Event>,
}

impl Client {
    /// Returns true while the client is suspended under this policy.
    #[inline]
    pub(crate) fn sleeps_under(&self, policy: SuspendPolicy) -> bool {
        self.suspension.as_ref().is_some_and(|suspension| suspension.policy == policy)
    }
}

/// All clients of a manager.
#[derive(Debug)]
pub(crate) struct Clients {
    clients: Slots<Client>,
    next_serial: u64,
    /// Clients suspended until contention, in order of their serials.
    sleeping: BTreeSet<ClientId>,
    /// Which entries were made within which.
    pub(crate) nests: Nests,
}

impl Clients {
    pub(crate) fn new() -> Self {
        Self {
            clients: Slots::new(),
            next_serial: 1,
            sleeping: BTreeSet::new(),
            nests: Nests::default(),
        }
    }

    /// Returns the same clients under the same ids, resumed and without entries.
    pub(crate) fn without_entries(&self) -> Self {
        let awake = |client: &Client| Client {
            serial: client.serial,
            first: NIL,
            last: NIL,
            suspension: None,
        };
        let clients = self.clients.map(awake);
        let (next_serial, sleeping) = (self.next_serial, BTreeSet::new());
        Self { clients, next_serial, sleeping, nests: Nests::default() }
    }

    pub(crate) fn len(&self) -> usize {
        self.clients.len()
    }

    pub(crate) fn insert(&mut self) -> ClientId {
        let serial = self.next_serial;
        self.next_serial += 1;
        let index = self.clients.insert(Client { serial, first: NIL, last: NIL, suspension: None });
        ClientId::new(index, serial)
    }

    /// Removes a client that has no entries.
    pub(crate) fn remove(&mut self, index: Index) {
        let id = self.id(index);
        let client = &mut self.clients[index];
        client.serial = 0;
        if client.suspension.take().is_some() {
            self.sleeping.remove(&id);
        }
        self.clients.remove(index);
    }

    #[inline]
    pub(crate) fn find(&self, id: ClientId) -> Option<Index> {
        let client = self.clients.get(id.slot())?;
        // Serials begin at 1, so no id fits a free slot.
        (client.serial == id.serial()).then_some(id.slot() as Index)
    }

    #[inline]
    pub(crate) fn id(&self, index: Index) -> ClientId {
        ClientId::new(index, self[index].serial)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (Index, &Client)> {
        self.clients.iter().filter(|(_, client)| client.serial != 0)
    }

    /// Returns the clients suspended until contention, in order of their serials.
    #[inline]
    pub(crate) fn sleeping(&self) -> &BTreeSet<ClientId> {
        &self.sleeping
    }

    /// Suspends a client that is not suspended.
    pub(crate) fn suspend(&mut self, index: Index, suspension: Suspension) {
        if suspension.policy == SuspendPolicy::EvictOnContention {
            self.sleeping.insert(self.id(index));
        }
        self.clients[index].suspension = Some(Box::new(suspension));
    }

    /// Resumes a client. Returns its suspension, if it was suspended.
    pub(crate) fn resume(&mut self, index: Index) -> Option<Suspension> {
        let suspension = self.clients[index].suspension.take()?;
        self.sleeping.remove(&self.id(index));
        Some(*suspension)
    }

    /// Appends a new entry to the list of its client.
    #[inline]
    pub(crate) fn enlist(&mut self, entry: Index, seating: &mut Seating) {
        let client = &mut self.clients[seating.life(entry).member.client];
        let last = core::mem::replace(&mut client.last, entry);
        if last == NIL {
            client.first = entry;
        } else {
            seating.member(last).next = entry;
            seating.member(entry).prev = last;
        }
    }

    /// Takes an entry that ends out of the list of its client.
    #[inline]
    pub(crate) fn delist(&mut self, entry: Index, seating: &mut Seating) {
        if !self.nests.is_empty() {
            self.nests.remove(seating.id(entry));
        }
        let &Member { client, prev, next } = &seating.life(entry).member;
        let client = &mut self.clients[client];
        if prev == NIL {
            client.first = next;
        } else {
            seating.member(prev).next = next;
        }
        if next == NIL {
            client.last = prev;
        } else {
            seating.member(next).prev = prev;
        }
    }

    /// Returns the last entry of a client, if it has any.
    pub(crate) fn last_entry(&self, client: Index) -> Option<Index> {
        some(self[client].last)
    }

    /// Returns the entries of a client, in order of arrival.
    pub(crate) fn entries<'a>(
        &self,
        client: Index,
        seating: &'a Seating,
    ) -> impl Iterator<Item = Index> + use<'a> {
        core::iter::successors(some(self[client].first), move |&entry| {
            some(seating.life(entry).member.next)
        })
    }

    /// Returns the entries of all clients, in no particular order.
    pub(crate) fn all_entries<'a>(
        &'a self,
        seating: &'a Seating,
    ) -> impl Iterator<Item = Index> + 'a {
        self.iter().flat_map(|(client, _)| self.entries(client, seating))
    }

    /// Checks that each client's list holds its entries in order of arrival, and that nested ones
    /// are live. Returns all entries.
    pub(crate) fn check(&self, seating: &Seating) -> Vec<Index> {
        self.nests.check(|inner| seating.find(inner).is_some());
        let mut all = Vec::new();
        for (index, client) in self.iter() {
            let mut prev = NIL;
            for entry in self.entries(index, seating) {
                let life = seating.life(entry);
                let member = &life.member;
                assert_eq!(
                    (member.client, member.prev),
                    (index, prev),
                    "a client's list is broken"
                );
                assert!(
                    prev == NIL || seating.life(prev).serial < life.serial,
                    "a client's entries are out of order"
                );
                prev = entry;
                all.push(entry);
            }
            assert_eq!(client.last, prev, "a client's list has another end");
            let sleeps = client.sleeps_under(SuspendPolicy::EvictOnContention);
            assert_eq!(sleeps, self.sleeping.contains(&self.id(index)), "a sleeper is not listed");
        }
        all
    }
}

#[inline]
fn some(entry: Index) -> Option<Index> {
    (entry != NIL).then_some(entry)
}

impl IndexTrait<Index> for Clients {
    type Output = Client;

    #[inline]
    fn index(&self, index: Index) -> &Client {
        &self.clients[index]
    }
}

impl IndexMut<Index> for Clients {
    #[inline]
    fn index_mut(&mut self, index: Index) -> &mut Client {
        &mut self.clients[index]
    }
}
