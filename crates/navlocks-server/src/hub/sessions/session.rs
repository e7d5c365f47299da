//! A session: the clients behind one connection, and what is known of each of their requests.

use std::collections::{BTreeMap, HashSet};
use std::rc::Rc;
use std::time::{Duration, Instant};

use navlocks_core::{ClientId, RequestId};
use navlocks_wire::{Cause, ClientKey, Fault, FaultCode};

use super::{Claim, Peer, Requests, Secret};
use crate::cluster::ChangeNumber;
use crate::config::Limits;
use crate::hub::Outbox;
use crate::hub::partitions::PartitionIndex;
use crate::hub::shares::Share;
use crate::store::Slot;

/// Bytes of memory that a session counts without its requests, and each of its clients.
const SESSION_BYTES: usize = 2 << 10;
pub(crate) const CLIENT_BYTES: usize = 512;

/// Bytes that a number counts which may come again after a resume.
const RESENT_BYTES: usize = 32;

/// A session, with or without a connection.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) peer: Rc<Peer>,
    /// The share of its tenant.
    pub(crate) share: Rc<Share>,
    pub(crate) secret: Secret,
    /// For how long it lives on in silence; none when the end of its connection is its own.
    pub(crate) lease: Option<Duration>,
    /// When something was last heard of it.
    pub(crate) heard: Instant,
    /// Where its connection takes what is said to it; none while it has no connection.
    pub(crate) outbox: Option<Outbox>,
    /// The number of its connection, so that an older one is told from the present one.
    pub(crate) connection: u64,
    pub(crate) clients: BTreeMap<u64, Client>,
    last_client: u64,
    /// Clients that could not be opened, and why.
    pub(crate) unopened: BTreeMap<u64, Fault>,
    pub(crate) requests: Requests,
    last_request: u64,
    /// Its slot in the registry.
    pub(crate) slot: Slot,
    /// Its client listens at its path of presence: it may live although its connection is gone.
    pub(crate) present: bool,
    /// The change of the registry that all its frames depend on, in a cluster.
    pub(crate) begun: ChangeNumber,
    /// Its client has taken leave, and believes in nothing any more.
    pub(crate) took_leave: bool,
    /// The requests that its client claims from an earlier service, until the claim is judged.
    pub(crate) claim: Option<Claim>,
    /// The claim is whole, and waits for those of other sessions.
    pub(crate) claim_is_whole: bool,
    /// The client under whose locks its program runs.
    pub(crate) parent: Option<ClientKey>,
    /// Older numbers that may be used again, because their first use got lost with a connection.
    resent: HashSet<u64>,
    /// Bytes that it counts in its tenant's share, its requests aside.
    bytes: usize,
}

/// A client of a session.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) partition: PartitionIndex,
    pub(crate) id: ClientId,
    /// Its requests that are lost and not noted yet by their owner.
    pub(crate) lost: HashSet<u64>,
}

/// The state of a request, as far as its session knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Known {
    /// The engine has it.
    Live { partition: PartitionIndex, id: RequestId },
    /// It is held back after a start, at this place.
    Early { partition: PartitionIndex, place: u64 },
    /// It was taken away and its owner has not taken note. The registry has that in this slot.
    Lost { client: u64, cause: Cause, slot: Slot },
}

impl Session {
    pub(crate) fn new(
        peer: Rc<Peer>,
        share: Rc<Share>,
        secret: Secret,
        lease: Option<Duration>,
        now: Instant,
    ) -> Self {
        share.sessions.add(1);
        share.bytes.add(SESSION_BYTES);
        Self {
            peer,
            requests: Requests::new(share.clone()),
            share,
            secret,
            lease,
            heard: now,
            outbox: None,
            connection: 0,
            clients: BTreeMap::new(),
            last_client: 0,
            unopened: BTreeMap::new(),
            last_request: 0,
            slot: 0,
            present: false,
            begun: ChangeNumber::default(),
            took_leave: false,
            claim: None,
            claim_is_whole: false,
            parent: None,
            resent: HashSet::new(),
            bytes: SESSION_BYTES,
        }
    }

    /// Returns true while its requests are part of a claim.
    #[inline]
    pub(crate) fn is_claiming(&self) -> bool {
        self.claim.is_some() && !self.claim_is_whole
    }

    /// Takes the number of a new client.
    pub(crate) fn take_client_number(&mut self, number: u64) -> Result<(), Fault> {
        if number <= self.last_client {
            let text = format!("client {number} was opened before: numbers of clients grow");
            return Err(Fault::new(FaultCode::BadState, text));
        }
        self.last_client = number;
        Ok(())
    }

    /// Counts the bytes of its clients and of numbers that may come again.
    pub(crate) fn recount(&mut self) {
        let clients = (self.clients.len() + self.unopened.len()) * CLIENT_BYTES;
        let bytes = SESSION_BYTES + clients + self.resent.len() * RESENT_BYTES;
        self.share.bytes.add(bytes);
        self.share.bytes.sub(self.bytes);
        self.bytes = bytes;
    }

    /// Returns the bytes that it counts in its tenant's share.
    #[inline]
    pub(crate) fn bytes(&self) -> usize {
        self.bytes + self.requests.bytes()
    }

    /// Returns which limit so many bytes more would exceed, if they would exceed one.
    #[inline]
    pub(crate) fn over_bytes(&self, limits: &Limits, more: usize) -> Option<String> {
        let (whose, max) = if self.bytes() + more > limits.bytes_per_session_max {
            ("session", limits.bytes_per_session_max)
        } else if self.share.bytes.get() + more > limits.bytes_per_tenant_max {
            ("tenant", limits.bytes_per_tenant_max)
        } else {
            return None;
        };
        Some(format!("the requests and clients of the {whose} take {max} bytes, and no more"))
    }

    /// Returns why a client takes nothing.
    pub(crate) fn closed(&self, client: u64) -> Fault {
        let closed = || Fault::new(FaultCode::BadState, format!("client {client} is closed"));
        self.unopened.get(&client).cloned().unwrap_or_else(closed)
    }

    /// The client with this number; none when it was closed.
    pub(crate) fn client(&self, number: u64) -> Result<Option<&Client>, Fault> {
        match self.clients.get(&number) {
            None if number > self.last_client => {
                let text = format!("client {number} was never opened");
                Err(Fault::new(FaultCode::BadState, text))
            }
            client => Ok(client),
        }
    }

    /// Takes the number of a new request.
    #[inline]
    pub(crate) fn take_request_number(&mut self, number: u64) -> Result<(), Fault> {
        if number > self.last_request {
            self.last_request = number;
            return Ok(());
        }
        if self.resent.remove(&number) {
            return Ok(());
        }
        let text = format!("request {number} was made before: numbers of requests grow");
        Err(Fault::new(FaultCode::BadState, text))
    }

    /// After a resume: these may come again although their numbers are old.
    pub(crate) fn expect_again(&mut self, alive: &[u64]) {
        let (requests, last) = (&self.requests, self.last_request);
        self.resent = alive
            .iter()
            .copied()
            .filter(|number| *number <= last && !requests.contains(*number))
            .collect();
        self.recount();
    }

    /// A request is lost, and that is remembered until its owner takes note.
    ///
    /// Returns false if the owner is gone, and nothing is remembered.
    pub(crate) fn lose(&mut self, number: u64, client: u64, cause: Cause, slot: Slot) -> bool {
        if let Some(owner) = self.clients.get_mut(&client) {
            owner.lost.insert(number);
            self.requests.set(number, Known::Lost { client, cause, slot });
            true
        } else {
            self.requests.remove(number);
            false
        }
    }

    /// The owner of a request does not want to hear of it again. Returns what was known of it.
    #[inline]
    pub(crate) fn forget(&mut self, number: u64) -> Option<Known> {
        let known = self.requests.remove(number);
        if let Some(Known::Lost { client, .. }) = known
            && let Some(owner) = self.clients.get_mut(&client)
        {
            owner.lost.remove(&number);
        }
        known
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.share.sessions.sub(1);
        self.share.bytes.sub(self.bytes);
    }
}
