//! Partitions and sessions as a dashboard sees them at one moment.

use std::time::{Duration, Instant};

use navlocks_core::{ClientId, LockManager, Name, RequestId};
use navlocks_wire::{self as wire, ClientKey, RequestKey};

use crate::hub::partitions::Partition;
use crate::hub::sessions::Session;
use crate::hub::{Hub, Noted, PartitionKey};

/// A partition at one moment.
#[derive(Clone, Copy, Debug)]
pub struct PartitionView<'a> {
    pub(super) hub: &'a Hub,
    pub(super) it: &'a Partition,
}

impl<'a> PartitionView<'a> {
    /// Returns its tenant, origin and name.
    pub fn key(&self) -> &'a PartitionKey {
        &self.it.key
    }

    /// Returns the engine, for questions.
    pub fn manager(&self) -> &'a LockManager {
        self.it.manager()
    }

    /// Returns how many requests there are, held and pending.
    pub fn requests(&self) -> usize {
        self.it.requests()
    }

    /// Returns since when a live request is held or pending.
    pub fn since(&self, id: RequestId) -> Instant {
        self.it.since(id)
    }

    /// Returns the tag of a live request.
    pub fn tag(&self, id: RequestId) -> Option<&'a Name> {
        self.it.tag(id)
    }

    /// Returns the client of a live request, and its process where that is known.
    pub fn owner_of(&self, id: RequestId) -> (ClientKey, Option<u32>) {
        self.it.owner_of(id)
    }

    /// Returns the key of a client.
    pub fn client_key(&self, client: ClientId) -> ClientKey {
        self.it.client_key(client)
    }

    /// Returns the facts about a live request.
    pub fn noted(&self, id: RequestId) -> Option<Noted> {
        self.it.noted(id)
    }

    /// Describes a live request.
    pub fn info(&self, id: RequestId, now: Instant) -> Option<wire::Info> {
        Some(self.it.info(self.manager().info(id)?, now))
    }

    /// Returns the live request with this key, if it is one of this partition.
    pub fn find(&self, key: RequestKey) -> Option<RequestId> {
        self.hub.find(self.it.index(), key)
    }

    /// Returns true if the process of a session is known to be stopped.
    pub fn is_stopped(&self, session: u32) -> bool {
        self.hub.sessions.is_stopped(session)
    }
}

/// A session at one moment.
#[derive(Clone, Copy, Debug)]
pub struct SessionView<'a> {
    pub(super) hub: &'a Hub,
    pub(super) number: u32,
    pub(super) it: &'a Session,
}

impl<'a> SessionView<'a> {
    /// Returns its number.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// Returns its tenant and its web origin; both may be empty.
    pub fn party(&self) -> (&'a str, &'a str) {
        (&self.it.peer.tenant, &self.it.peer.origin)
    }

    /// Returns true if it came over the Unix socket.
    pub fn is_local(&self) -> bool {
        self.it.peer.local
    }

    /// Returns its process, where the kernel tells.
    pub fn pid(&self) -> Option<u32> {
        self.it.peer.pid()
    }

    /// Returns true if its process is known to be stopped.
    pub fn is_stopped(&self) -> bool {
        self.hub.sessions.is_stopped(self.number)
    }

    /// Returns true if it has a connection.
    pub fn is_connected(&self) -> bool {
        self.it.outbox.is_some()
    }

    /// Returns when its last message came.
    pub fn heard(&self) -> Instant {
        self.it.heard
    }

    /// Returns the length of its lease, if it has one.
    pub fn lease(&self) -> Option<Duration> {
        self.it.lease
    }

    /// Returns the numbers of its clients.
    pub fn clients(&self) -> impl ExactSizeIterator<Item = u64> {
        self.it.clients.keys().copied()
    }

    /// Returns how many requests it has, lost ones included.
    pub fn request_count(&self) -> usize {
        self.it.requests.len()
    }

    /// Returns its live requests, each with its partition.
    pub fn requests(&self) -> impl Iterator<Item = (PartitionView<'a>, RequestId)> {
        let hub = self.hub;
        self.it.clients.values().flat_map(move |client| {
            let view = PartitionView { hub, it: &hub.partitions[client.partition] };
            view.manager().requests_of(client.id).map(move |id| (view, id))
        })
    }
}
