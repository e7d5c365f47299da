//! Clients: who asks, all that each has, and whether it sleeps.

use alloc::boxed::Box;
use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use core::ops::{Index as IndexTrait, IndexMut};

use crate::id::{Index, NIL};
use crate::slots::Slots;
use crate::{ClientId, Event, SuspendPolicy};

/// One client and the list of its entries, in order of arrival.
#[derive(Debug)]
pub(crate) struct Client {
    /// 0 in a free slot.
    serial: u64,
    pub(crate) first: Index,
    pub(crate) last: Index,
    /// Present while the client is suspended; boxed because few are.
    pub(crate) suspension: Option<Box<Suspension>>,
}

/// What is known of a client while it sleeps.
#[derive(Debug)]
pub(crate) struct Suspension {
    pub(crate) policy: SuspendPolicy,
    /// What it will be told when it wakes.
    pub(crate) deferred: Vec<Event>,
}

impl Client {
    /// Whether it is suspended under this policy.
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
    /// Those suspended until contention, in order of their serials.
    pub(crate) sleeping: BTreeSet<ClientId>,
}

impl Clients {
    pub(crate) fn new() -> Self {
        Self { clients: Slots::new(), next_serial: 1, sleeping: BTreeSet::new() }
    }

    /// The same clients under the same ids, awake, and with nothing.
    pub(crate) fn without_entries(&self) -> Self {
        let awake = |client: &Client| Client {
            serial: client.serial,
            first: NIL,
            last: NIL,
            suspension: None,
        };
        let clients = self.clients.map(awake);
        Self { clients, next_serial: self.next_serial, sleeping: BTreeSet::new() }
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

    /// Forgets a client that has no entries.
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
