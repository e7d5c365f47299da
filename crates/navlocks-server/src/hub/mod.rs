//! The service without sockets and without a clock: sessions, partitions, tokens. Messages go in,
//! and their consequences lie in the outboxes of the sessions that they concern.
//!
//! [`Service`](crate::Service) drives a hub by sockets and the system's clock. A program with
//! another transport, or with a clock of its own, drives a [`Hub`] itself: [`hello`](Hub::hello)
//! for the first message of a connection, [`message`](Hub::message) for the others,
//! [`leave`](Hub::leave) or [`detach`](Hub::detach) at its end, and
//! [`check_leases`](Hub::check_leases) from time to time.

mod frame;
mod invariants;
mod lease;
mod metrics;
mod outbox;
mod partitions;
mod questions;
mod quotas;
mod resuming;
mod sessions;
pub(crate) mod shares;
mod tokens;
mod turns;
mod views;

use std::collections::HashSet;
use std::io;
use std::rc::Rc;
use std::time::{Duration, Instant};

use navlocks_core::DeadlockPolicy;
use navlocks_core::{Request, Wait};
use navlocks_wire::{
    self as wire, ClientKey, Fault, FaultCode, Hello, Open, Refused, ToClient, ToService, Welcome,
};
use tokio::sync::Notify;

use crate::config::{Access, Limits};
use crate::store::{Exhausted, Store};
use partitions::{Around, Asking, Partition, PartitionKey, Partitions};
use resuming::unknown_session;
use sessions::{CLIENT_BYTES, Client, Known, Secret, Session, Sessions};
use shares::Shares;
use tokens::Tokens;
use views::Views;

pub use frame::Frame;
pub(crate) use frame::Next;
pub(crate) use metrics::Metrics;
pub(crate) use outbox::Full;
pub use outbox::Outbox;
pub use sessions::Peer;
pub(crate) use sessions::Viewing;
pub(crate) use shares::Share;

/// The state of a service.
#[derive(Debug)]
pub struct Hub {
    pub(crate) sessions: Sessions,
    pub(crate) partitions: Partitions,
    pub(crate) shares: Shares,
    pub(crate) tokens: Tokens,
    pub(crate) metrics: Metrics,
    pub(crate) limits: Limits,
    deadlocks: DeadlockPolicy,
    pub(crate) store: Store,
    /// Whether requests are granted; not yet after an unclean end.
    granting: bool,
    /// Whether new sessions are taken.
    open: bool,
    /// Told when the service must end because no more tokens can be reserved.
    pub(crate) exhausted: Rc<Notify>,
    next_connection: u64,
    pub(crate) views: Views,
}

impl Hub {
    /// Makes a hub that stores nothing: fencing tokens begin at the clock's microseconds.
    ///
    /// # Errors
    ///
    /// The system's clock is wrong by centuries.
    pub fn without_store(limits: Limits, deadlocks: DeadlockPolicy) -> io::Result<Self> {
        let store = Store::new(None, &limits)?;
        Ok(Self::new(limits, deadlocks, store))
    }

    /// A hub without sessions, which remembers here. It grants nothing until it is [let
    /// go](Self::let_go) if clients of an earlier service may still believe in their locks.
    pub(crate) fn new(limits: Limits, deadlocks: DeadlockPolicy, store: Store) -> Self {
        Self {
            sessions: Sessions::new(),
            partitions: Partitions::default(),
            shares: Shares::default(),
            tokens: Tokens::above(store.tokens_before()),
            metrics: Metrics::new(),
            limits,
            deadlocks,
            granting: store.earlier().is_zero(),
            store,
            open: true,
            exhausted: Rc::default(),
            next_connection: 1,
            views: Views::default(),
        }
    }

    /// From now on everything is granted in its turn, beginning with what came meanwhile.
    pub(crate) fn let_go(&mut self, now: Instant) {
        self.granting = true;
        for index in self.partitions.indices() {
            let (partitions, mut around) = self.around(now);
            partitions[index].admit_early(index, &mut around);
        }
        self.settle(now);
    }

    /// Begins a session, or goes on with one. Returns the numbers of the session and of the
    /// connection.
    pub fn hello(
        &mut self,
        peer: &Rc<Peer>,
        hello: &Hello,
        outbox: &Outbox,
        now: Instant,
    ) -> Result<(u32, u64), Fault> {
        if hello.version != wire::VERSION {
            let text = format!(
                "this service speaks version {} of the protocol, the client version {}: use programs of the same version",
                wire::VERSION,
                hello.version
            );
            return Err(Fault::new(FaultCode::Version, text));
        }
        if !self.open {
            return Err(shutting_down());
        }
        let connection = self.next_connection;
        self.next_connection += 1;
        let number = match &hello.resume {
            Some(resume) => self.find_resumed(peer, resume, now)?,
            None => self.begin(peer, hello, now)?,
        };
        let Some(session) = self.sessions.get_mut(number) else { return Err(unknown_session()) };
        if let Some(earlier) = session.outbox.replace(outbox.clone()) {
            let text = "the session goes on over another connection";
            earlier.end(Fault::new(FaultCode::Replaced, text));
        }
        session.connection = connection;
        session.heard = now;
        // It may have shown another token of its tenant.
        session.peer = peer.clone();
        let welcome = Welcome {
            version: wire::VERSION,
            service: concat!("navlocks ", env!("CARGO_PKG_VERSION")).into(),
            session: number,
            secret: session.secret.tell(),
            lease_ms: session.lease.map(|lease| lease.as_millis() as u64),
            resumed: hello.resume.is_some(),
            limits: self.limits.of_a_session(),
        };
        self.sessions.say(number, &ToClient::Welcome(welcome));
        if let Some(resume) = &hello.resume {
            if let Err(fault) = self.resume_clients(number, &resume.clients, now) {
                // Nothing of it may stay behind: no connection would ever end it.
                self.end(number, None, now);
                return Err(fault);
            }
            self.resume(number, &resume.alive, now);
        }
        self.settle(now);
        Ok((number, connection))
    }

    fn begin(&mut self, peer: &Rc<Peer>, hello: &Hello, now: Instant) -> Result<u32, Fault> {
        let share = self.room_for_session(peer)?;
        let Some(secret) = Secret::new() else {
            let text = "the service's system has no randomness to give: try again";
            return Err(Fault::new(FaultCode::Internal, text));
        };
        // A dashboard holds nothing that could outlive its connection.
        let lasts = !peer.local && peer.viewing.is_none();
        let lease = lasts.then(|| self.limits.lease(hello.lease_ms));
        if let Some(lease) = lease
            && let Err(error) = self.store.lease_given(lease, &self.limits)
        {
            tracing::error!(%error, "a session cannot be remembered");
            let text = "the service cannot write its state file, and takes no session that outlives its connection";
            return Err(Fault::new(FaultCode::Internal, text));
        }
        let number = self.sessions.insert(Session::new(peer.clone(), share, secret, lease, now));
        if let Err(NotOpened::Refused(fault) | NotOpened::Fatal(fault)) =
            self.open(number, 0, &hello.partition, now)
        {
            self.sessions.remove(number);
            return Err(fault);
        }
        if let Some(parent) = hello.parent {
            self.add_child(parent, number);
        }
        Ok(number)
    }

    /// Notes that a client waits until this session's program ends, if both are of one party and
    /// one partition.
    fn add_child(&mut self, parent: ClientKey, child: u32) {
        let Self { sessions, partitions, .. } = self;
        let (Some(elder), Some(own)) = (sessions.get(parent.session), sessions.get(child)) else {
            return;
        };
        let clients = (elder.clients.get(&parent.client), own.clients.get(&0));
        if let (Some(elder_client), Some(own_client)) = clients
            && elder.peer.is_same_party(&own.peer)
            && elder_client.partition == own_client.partition
        {
            partitions[own_client.partition].add_child(elder_client.id, own_client.id);
        }
    }

    /// Takes a message of a session. An error ends the session.
    pub fn message(&mut self, number: u32, message: ToService, now: Instant) -> Result<(), Fault> {
        let Some(session) = self.sessions.get_mut(number) else { return Ok(()) };
        session.heard = now;
        if session.peer.viewing.is_some() {
            views_alone(&message)?;
        }
        match message {
            ToService::Request(request) => self.request(number, request, now)?,
            ToService::Release(request) | ToService::Abort(request) => {
                self.give_up(number, request, now);
            }
            ToService::Ping(ping) => self.sessions.say(number, &ToClient::Pong(ping)),
            ToService::Hello(_) => {
                let text = "hello is the first message of a connection and comes once";
                return Err(Fault::new(FaultCode::BadState, text));
            }
            ToService::Open(Open { client, partition }) => {
                session.take_client_number(client)?;
                self.open_or_refuse(number, client, &partition, now)?;
            }
            ToService::Close(client) => self.close(number, client, now)?,
            ToService::Contention(request) => {
                if let Some(Known::Live { partition, id }) = session.requests.get(request) {
                    let (partitions, mut around) = self.around(now);
                    partitions[partition].watch_contention(id, &mut around);
                }
            }
            ToService::Listen(client) => {
                let partition = session.client(client)?.map(|client| client.partition);
                // Nothing happens in the partition of a client that could not be opened.
                let answered = partition.is_some() || session.unopened.contains_key(&client);
                if let Some(partition) = partition {
                    self.subscribe(partition, ClientKey::new(number, client))?;
                }
                if answered {
                    self.sessions.say(number, &ToClient::Listening(client));
                }
            }
            ToService::Unlisten(client) => {
                if let Some(&Client { partition, .. }) = session.client(client)? {
                    self.partitions[partition].unsubscribe(ClientKey::new(number, client));
                }
            }
            ToService::Ask(ask) => self.ask(number, ask, now)?,
            ToService::Bye => self.end(number, None, now),
        }
        self.settle(now);
        Ok(())
    }

    /// Opens a client in a bucket of its peer.
    fn open(
        &mut self,
        number: u32,
        client: u64,
        bucket: &str,
        now: Instant,
    ) -> Result<(), NotOpened> {
        let Self { limits, partitions, tokens, deadlocks, shares, views, .. } = self;
        let Some(session) = self.sessions.get_mut(number) else { return Ok(()) };
        let fault = |text: String| Fault::new(FaultCode::Limit, text);
        if session.clients.len() + session.unopened.len() >= limits.clients_per_session_max {
            let max = limits.clients_per_session_max;
            let text = format!("a session has at most {max} clients: close some first");
            return Err(NotOpened::Fatal(fault(text)));
        }
        if bucket.len() > limits.partition_name_bytes_max {
            let max = limits.partition_name_bytes_max;
            let text = format!("the name of a partition has at most {max} bytes");
            return Err(NotOpened::Fatal(fault(text)));
        }
        let refused = |text: String| Err(NotOpened::Refused(fault(text)));
        if let Some(text) = session.over_bytes(limits, CLIENT_BYTES) {
            return refused(text);
        }
        let key = PartitionKey::of(&session.peer, bucket);
        let partition = match partitions.find(&key) {
            Some(partition) => partition,
            None => {
                let Limits { partitions_max, partitions_per_tenant_max, .. } = *limits;
                if session.share.partitions.get() >= partitions_per_tenant_max {
                    return refused(format!(
                        "the tenant has {partitions_per_tenant_max} partitions, and takes no more: close clients in others"
                    ));
                }
                let partitions_open =
                    shares.together(&session.peer, |share| share.partitions.get());
                if partitions_open >= partitions_max {
                    return refused(format!(
                        "the service has {partitions_max} partitions, and takes no more"
                    ));
                }
                let history = views.begin_history(&key, now);
                let share = session.share.clone();
                let index = partitions.insert(key, tokens.next(), *deadlocks, share);
                if let Some(history) = history {
                    partitions[index].record(history, now);
                }
                index
            }
        };
        let id = partitions[partition].add_client(ClientKey::new(number, client));
        let lost = HashSet::new();
        session.clients.insert(client, Client { partition, id, lost });
        session.recount();
        Ok(())
    }

    /// Opens a client. One for which there is no room is refused alone: its requests and questions
    /// get the fault.
    pub(crate) fn open_or_refuse(
        &mut self,
        number: u32,
        client: u64,
        bucket: &str,
        now: Instant,
    ) -> Result<(), Fault> {
        match self.open(number, client, bucket, now) {
            Err(NotOpened::Fatal(fault)) => Err(fault),
            Err(NotOpened::Refused(fault)) => {
                if let Some(session) = self.sessions.get_mut(number) {
                    session.unopened.insert(client, fault);
                    session.recount();
                }
                Ok(())
            }
            Ok(()) => Ok(()),
        }
    }

    /// Ends a client of a session.
    pub(crate) fn close(&mut self, number: u32, client: u64, now: Instant) -> Result<(), Fault> {
        let Some(session) = self.sessions.get_mut(number) else { return Ok(()) };
        if session.client(client)?.is_none() {
            session.unopened.remove(&client);
            session.recount();
            return Ok(());
        }
        let Some(closed) = session.clients.remove(&client) else { return Ok(()) };
        for request in &closed.lost {
            session.requests.remove(*request);
        }
        session.recount();
        let ended = self.end_client(&closed, now);
        if let Some(session) = self.sessions.get_mut(number) {
            for request in ended {
                session.requests.remove(request);
            }
        }
        Ok(())
    }

    /// Ends a client in its partition. Returns the numbers of its requests.
    fn end_client(&mut self, client: &Client, now: Instant) -> Vec<u64> {
        let (partitions, mut around) = self.around(now);
        let partition = &mut partitions[client.partition];
        let ended = partition.end_client(client.id, &mut around);
        if partition.manager().client_count() == 0 {
            let (key, history) = (partition.key.clone(), partition.history.take());
            partitions.remove(client.partition);
            if let Some(history) = history {
                self.views.keep_history(key, history, now);
            }
        }
        ended
    }

    #[inline]
    fn request(&mut self, number: u32, asked: wire::Request, now: Instant) -> Result<(), Fault> {
        let wire::Request { id: request, client, names: wire::Names(scope), mode, wait, tag } =
            asked;
        let Some(session) = self.sessions.get_mut(number) else { return Ok(()) };
        if let Some(known) = session.requests.get(request) {
            self.answer_again(number, request, known);
            return Ok(());
        }
        session.take_request_number(request)?;
        let Some(&Client { partition, id: owner, .. }) = session.client(client)? else {
            let fault = session.closed(client);
            self.refuse(number, request, fault);
            return Ok(());
        };
        let request_of_engine = Request { scope, mode, wait };
        let client = ClientKey::new(number, client);
        let asking =
            Asking { owner, client, number: request, request: request_of_engine, tag, since: now };
        let memory = asking.memory();
        if let Err(text) = self.within_limits(number, partition, &asking, memory) {
            self.refuse(number, request, Fault::new(FaultCode::Limit, text));
            return Ok(());
        }
        let known = if self.granting {
            let (partitions, mut around) = self.around(now);
            let id = partitions[partition].request(asking, &mut around);
            id.map(|id| Known::Live { partition, id })
        } else if wait == Wait::IfAvailable {
            self.sessions.say(number, &ToClient::Unavailable(request));
            None
        } else {
            self.partitions[partition].changes += 1;
            let place = self.partitions[partition].early.push(asking);
            Some(Known::Early { partition, place })
        };
        if let (Some(known), Some(session)) = (known, self.sessions.get_mut(number)) {
            session.requests.insert(request, known, memory as u32);
        }
        Ok(())
    }

    fn refuse(&mut self, number: u32, request: u64, fault: Fault) {
        self.metrics.refused_requests.inc();
        let refused = Refused { id: request, fault, cycle: None };
        self.sessions.say(number, &ToClient::Refused(refused));
    }

    /// The owner of a request lets go of it, whatever became of it.
    #[inline]
    pub(crate) fn give_up(&mut self, number: u32, request: u64, now: Instant) {
        let Some(session) = self.sessions.get_mut(number) else { return };
        match session.forget(request) {
            Some(Known::Live { partition, id }) => {
                let (partitions, mut around) = self.around(now);
                partitions[partition].give_up(id, &mut around);
            }
            Some(Known::Early { partition, place }) => {
                self.partitions[partition].changes += 1;
                self.partitions[partition].early.remove(place);
            }
            Some(Known::Lost { .. }) | None => {}
        }
    }

    /// The connection of a session broke. Whether the session waits for another one.
    pub fn detach(&mut self, number: u32, connection: u64, now: Instant) -> bool {
        let Some(session) = self.sessions.get_mut(number) else { return false };
        if session.connection != connection {
            return false;
        }
        if session.lease.is_none() {
            self.end(number, None, now);
            return false;
        }
        session.outbox = None;
        true
    }

    /// The client of a session left over this connection.
    pub fn leave(&mut self, number: u32, connection: u64, now: Instant) {
        if self.sessions.get(number).is_some_and(|session| session.connection == connection) {
            self.end(number, None, now);
        }
    }

    /// Ends a session because nothing was heard of it for its lease.
    pub(crate) fn lapse(&mut self, number: u32, now: Instant) {
        self.metrics.lapsed_leases.inc();
        let text = "nothing was heard of the client for the length of its lease: all its locks are released";
        self.end(number, Some(Fault::new(FaultCode::LeaseLapsed, text)), now);
    }

    /// Ends a session: all it has is released, and its connection told why, if there is something
    /// to tell.
    pub(crate) fn end(&mut self, number: u32, fault: Option<Fault>, now: Instant) {
        self.end_without_slow(number, fault, now);
        self.settle(now);
    }

    fn end_without_slow(&mut self, number: u32, fault: Option<Fault>, now: Instant) {
        let Some(session) = self.sessions.remove(number) else { return };
        if let (Some(outbox), Some(fault)) = (&session.outbox, fault) {
            outbox.end(fault);
        }
        for client in session.clients.values() {
            let _ended = self.end_client(client, now);
        }
    }

    /// After every step: takes note of the tokens given, and ends the sessions that do not read
    /// what they are told. What follows from that can make further ones slow.
    #[inline]
    fn settle(&mut self, now: Instant) {
        if let Err(Exhausted) = self.store.given(self.tokens.largest()) {
            self.exhausted.notify_one();
        }
        while let Some(number) = self.sessions.take_slow() {
            let fault = self.slow_reader();
            self.end_without_slow(number, Some(fault), now);
        }
    }

    /// Ends the sessions of tokens that are gone. Returns how many there were.
    pub(crate) fn end_unknown(&mut self, access: &Access, now: Instant) -> usize {
        let mut numbers = self.sessions.numbers();
        let unknown = |session: &Session| !access.knows(session.peer.token);
        numbers.retain(|&number| self.sessions.get(number).is_some_and(unknown));
        for &number in &numbers {
            let text =
                "the access token was removed: ask the operator of the service for another one";
            self.end(number, Some(Fault::new(FaultCode::Unauthorized, text)), now);
        }
        numbers.len()
    }

    /// Counts a peer that does not read, and returns the fault that ends its connection.
    pub(crate) fn slow_reader(&self) -> Fault {
        self.metrics.slow_readers.inc();
        let max = self.limits.outbox_bytes_max;
        let text = format!("more than {max} bytes lie unread: read faster, or ask for less");
        Fault::new(FaultCode::SlowReader, text)
    }

    /// Ends all sessions. Their connections are told; the longest lease of those that have none is
    /// returned.
    pub(crate) fn shut_down(&mut self, now: Instant) -> Option<Duration> {
        self.open = false;
        let mut untold = None;
        let numbers = self.sessions.numbers();
        // First all are told, so that nobody is granted what another one loses by this.
        for session in numbers.iter().filter_map(|&number| self.sessions.get(number)) {
            match &session.outbox {
                Some(outbox) => outbox.end(shutting_down()),
                None => untold = untold.max(session.lease),
            }
        }
        for number in numbers {
            self.end(number, None, now);
        }
        untold
    }

    /// The partitions, and beside them what a step in one needs.
    #[inline]
    pub(crate) fn around(&mut self, now: Instant) -> (&mut Partitions, Around<'_>) {
        let Self { sessions, partitions, tokens, metrics, .. } = self;
        (partitions, Around { sessions, tokens, metrics, now })
    }

    /// Brings what is counted on demand up to date.
    pub(crate) fn measure(&self) -> &Metrics {
        let held: usize =
            self.partitions.iter().map(|partition| partition.manager().held_count()).sum();
        let all: usize = self.partitions.iter().map(Partition::requests).sum();
        self.metrics.held.set(held as i64);
        self.metrics.pending.set((all - held) as i64);
        self.metrics.partitions.set(self.partitions.len() as i64);
        self.metrics.sessions.set(self.sessions.len() as i64);
        &self.metrics
    }
}

/// Refuses what a dashboard must not do.
fn views_alone(message: &ToService) -> Result<(), Fault> {
    match message {
        ToService::Ask(wire::Ask { question: wire::Question::View(_), .. })
        | ToService::Ping(_)
        | ToService::Bye => Ok(()),
        _ => {
            let text = "a dashboard asks for views, and does nothing else: connect at / for locks";
            Err(Fault::new(FaultCode::BadState, text))
        }
    }
}

/// Why a client was not opened.
enum NotOpened {
    /// There is no room for it; the session goes on.
    Refused(Fault),
    /// The session is over.
    Fatal(Fault),
}

fn shutting_down() -> Fault {
    Fault::new(FaultCode::ShuttingDown, "the service is shutting down: all locks are released")
}
