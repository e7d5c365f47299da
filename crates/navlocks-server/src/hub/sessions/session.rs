//! A session: the clients behind one connection, and what is known of each of their requests.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::rc::Rc;
use std::time::{Duration, Instant};

use navlocks_core::{ClientId, RequestId};
use navlocks_wire::{Fault, FaultCode, LossCause};

use super::{Claim, Owner, Peer, Requests};
use crate::cluster::ChangeNumber;
use crate::config::Limits;
use crate::hub::Outbox;
use crate::hub::clients::too_many_clients;
use crate::hub::partitions::PartitionIndex;
use crate::hub::shares::Share;
use crate::store::{RequestRecord, Slot};

/// Bytes of memory that a session counts without its requests, and each of its clients.
const SESSION_BYTES: usize = 2 << 10;
pub(crate) const CLIENT_BYTES: usize = 512;

/// Bytes that a client or a request counts which a resumed session has not named yet.
const UNNAMED_BYTES: usize = 32;

/// The longest description of a process.
const PROCESS_BYTES_MAX: usize = 256;

/// A session, with or without a connection.
#[derive(Debug)]
pub(crate) struct Session {
    /// Its client, as far as the service knows it.
    pub(crate) peer: Rc<Peer>,
    /// Its process as it described it, where the kernel does not tell.
    pub(crate) process: Option<Rc<str>>,
    /// The share of its tenant.
    pub(crate) share: Rc<Share>,
    pub(crate) owner: Owner,
    /// For how long it lives on in silence; none when the end of its connection is its own.
    pub(crate) lease: Option<Duration>,
    /// When something was last heard of it, or may have been.
    pub(crate) heard: Instant,
    /// Where its connection takes what is said to it; none while it has no connection.
    pub(crate) outbox: Option<Outbox>,
    /// The number of its connection, so that an older one is told from the present one.
    pub(crate) connection: u64,
    pub(crate) clients: BTreeMap<u64, Client>,
    /// Numbers of new clients begin here.
    next_client: u64,
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
    /// The requests that it had at an earlier service, until its client has claimed them.
    pub(crate) absent: Option<Absent>,
    /// The requests that its client claims from an earlier service, until the claim is judged.
    pub(crate) claim: Option<Claim>,
    /// The parts that its client has not named since its last connection; none when it has ended
    /// its claim.
    unnamed: Option<Unnamed>,
    /// Bytes that it counts in its tenant's share, its requests aside.
    bytes: usize,
}

/// The requests that a session had at an earlier service.
#[derive(Debug, Default)]
pub(crate) struct Absent {
    pub(crate) requests: HashMap<u64, RequestRecord>,
    /// The thieves of those that were stolen meanwhile, in words.
    pub(crate) thieves: HashMap<u64, Rc<str>>,
}

/// The clients and requests of a living session that its client has not named since a resume.
#[derive(Debug)]
struct Unnamed {
    clients: HashSet<u64>,
    requests: HashSet<u64>,
    next_client: u64,
    last_request: u64,
}

/// A client of a session.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) partition: PartitionIndex,
    pub(crate) id: ClientId,
    /// Its requests that are lost and not noted yet by their owner, each with its thief in words.
    pub(crate) lost: HashMap<u64, Option<Rc<str>>>,
}

/// The state of a request, as far as its session knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Known {
    /// The engine has it.
    Live { partition: PartitionIndex, id: RequestId },
    /// It waits in the room, on its way to this partition.
    Guest { partition: PartitionIndex },
    /// It was taken away and its owner has not taken note. The registry has that in this slot.
    Lost { client: u64, cause: LossCause, slot: Slot },
}

impl Session {
    pub(crate) fn new(
        peer: Rc<Peer>,
        share: Rc<Share>,
        owner: Owner,
        lease: Option<Duration>,
        now: Instant,
    ) -> Self {
        share.sessions.add(1);
        share.bytes.add(SESSION_BYTES);
        Self {
            peer,
            process: None,
            requests: Requests::new(share.clone()),
            share,
            owner,
            lease,
            heard: now,
            outbox: None,
            connection: 0,
            clients: BTreeMap::new(),
            next_client: 0,
            unopened: BTreeMap::new(),
            last_request: 0,
            slot: 0,
            present: false,
            begun: ChangeNumber::default(),
            took_leave: false,
            absent: None,
            claim: None,
            unnamed: None,
            bytes: SESSION_BYTES,
        }
    }

    /// Notes the process that its client says to be. It is shown to people, and never trusted.
    pub(crate) fn note_process(&mut self, said: Option<&str>) {
        let is_fit =
            |text: &&str| text.len() <= PROCESS_BYTES_MAX && !text.contains(char::is_control);
        let is_known = self.peer.pid().is_some();
        self.process = said.filter(|_| !is_known).filter(is_fit).map(Into::into);
    }

    /// Begins the claim of a session of an earlier service, whose client has proven that it is its
    /// own. From now on it counts in the share of its tenant.
    pub(crate) fn begin_claim(&mut self, peer: &Rc<Peer>, share: Rc<Share>, now: Instant) {
        share.sessions.add(1);
        share.bytes.add(self.bytes);
        self.share.sessions.sub(1);
        self.share.bytes.sub(self.bytes);
        self.requests = Requests::new(share.clone());
        self.claim = Some(Claim::new(share.clone(), now));
        (self.peer, self.share) = (peer.clone(), share);
    }

    /// Drops a claim that is not whole. Returns its clients, which are to be ended.
    pub(crate) fn abandon_claim(&mut self) -> Vec<Client> {
        (self.claim, self.outbox) = (None, None);
        (self.next_client, self.last_request) = (0, 0);
        self.unopened.clear();
        let clients = std::mem::take(&mut self.clients).into_values().collect();
        self.recount();
        clients
    }

    /// Returns true if it waits for its client, which an earlier service knew.
    pub(crate) fn is_unclaimed(&self) -> bool {
        self.absent.is_some() && self.claim.is_none()
    }

    /// Returns how much is left of its lease, if it has one.
    pub(crate) fn lease_left(&self, now: Instant) -> Option<Duration> {
        Some((self.heard + self.lease?).saturating_duration_since(now))
    }

    /// Returns true while its requests are part of a claim.
    #[inline]
    pub(crate) fn is_claiming(&self) -> bool {
        self.claim.as_ref().is_some_and(|claim| !claim.is_whole)
    }

    /// Takes the number of a client that is opened, or named after a resume. Returns false if the
    /// session has that client.
    pub(crate) fn take_client_number(&mut self, number: u64) -> Result<bool, Fault> {
        let unnamed = self.unnamed.as_mut();
        let next = unnamed.map_or(&mut self.next_client, |it| &mut it.next_client);
        if number < *next {
            let text = format!("client {number} was opened before: numbers of clients grow");
            return Err(Fault::new(FaultCode::BadState, text));
        }
        *next = number + 1;
        self.next_client = self.next_client.max(number + 1);
        let is_known = self.unnamed.as_mut().is_some_and(|it| it.clients.remove(&number));
        Ok(!is_known)
    }

    /// The client of the session has a new connection, and names all that it still has.
    pub(crate) fn begin_naming(&mut self) {
        let clients = self.clients.keys().copied().collect();
        let requests = self.requests.iter().map(|(number, _)| number).collect();
        self.unnamed = Some(Unnamed { clients, requests, next_client: 0, last_request: 0 });
        // Its client tries to open these again.
        self.unopened.clear();
        self.recount();
    }

    /// Ends the naming. Returns the clients and the requests that were not named, in order.
    pub(crate) fn take_unnamed(&mut self) -> Option<(Vec<u64>, Vec<u64>)> {
        let Unnamed { clients, requests, .. } = self.unnamed.take()?;
        self.recount();
        let sorted = |numbers: HashSet<u64>| {
            let mut numbers: Vec<u64> = numbers.into_iter().collect();
            numbers.sort_unstable();
            numbers
        };
        Some((sorted(clients), sorted(requests)))
    }

    /// Counts the bytes of its clients, and of what was not named when its last connection began.
    pub(crate) fn recount(&mut self) {
        let clients = (self.clients.len() + self.unopened.len()) * CLIENT_BYTES;
        let unnamed =
            self.unnamed.as_ref().map_or(0, |it| it.clients.capacity() + it.requests.capacity());
        let bytes = SESSION_BYTES + clients + unnamed * UNNAMED_BYTES;
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

    /// Returns true if it can have no further client.
    pub(crate) fn has_no_room(&self, limits: &Limits) -> bool {
        self.clients.len() + self.unopened.len() >= limits.clients_per_session_max
    }

    /// Returns why a client takes nothing.
    pub(crate) fn closed(&self, client: u64, limits: &Limits) -> Fault {
        match self.unopened.get(&client) {
            Some(fault) => fault.clone(),
            None if self.has_no_room(limits) => too_many_clients(limits),
            None => Fault::new(FaultCode::BadState, format!("client {client} is closed")),
        }
    }

    /// The client with this number; none when it was closed.
    pub(crate) fn client(&self, number: u64) -> Result<Option<&Client>, Fault> {
        match self.clients.get(&number) {
            None if number >= self.next_client => {
                let text = format!("client {number} was never opened");
                Err(Fault::new(FaultCode::BadState, text))
            }
            client => Ok(client),
        }
    }

    /// Takes the number of a request that is made, or named after a resume. Returns false if the
    /// session had that request when its client resumed it.
    #[inline]
    pub(crate) fn take_request_number(&mut self, number: u64) -> Result<bool, Fault> {
        let unnamed = self.unnamed.as_mut();
        let last = unnamed.map_or(&mut self.last_request, |it| &mut it.last_request);
        if number <= *last {
            let text = format!("request {number} was made before: numbers of requests grow");
            return Err(Fault::new(FaultCode::BadState, text));
        }
        *last = number;
        self.last_request = self.last_request.max(number);
        let is_known = self.unnamed.as_mut().is_some_and(|it| it.requests.remove(&number));
        Ok(!is_known)
    }

    /// A request is lost, and that is remembered until its owner takes note.
    ///
    /// Returns false if the owner is gone, and nothing is remembered.
    pub(crate) fn lose(
        &mut self,
        number: u64,
        client: u64,
        cause: LossCause,
        thief: Option<Rc<str>>,
        slot: Slot,
    ) -> bool {
        if let Some(owner) = self.clients.get_mut(&client) {
            owner.lost.insert(number, thief);
            self.requests.set(number, Known::Lost { client, cause, slot });
            true
        } else {
            self.requests.remove(number);
            false
        }
    }

    /// Returns the thief of a lost request in words, where the session has them.
    pub(crate) fn thief_of(&self, number: u64) -> Option<Rc<str>> {
        let Known::Lost { client, .. } = self.requests.get(number)? else { return None };
        self.clients.get(&client)?.lost.get(&number)?.clone()
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
