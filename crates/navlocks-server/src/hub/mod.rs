//! The service without sockets and without a clock: sessions, partitions, tokens. Messages go in,
//! and their consequences lie in the outboxes of the sessions that they concern.
//!
//! [`Service`](crate::Service) drives a hub by sockets and the system's clock. A program with
//! another transport, or with a clock of its own, drives a [`Hub`] itself: [`hello`](Hub::hello)
//! for the first message of a connection, [`message`](Hub::message) for the others,
//! [`leave`](Hub::leave) or [`detach`](Hub::detach) at its end, and
//! [`check_leases`](Hub::check_leases) from time to time. After a large input [`go_on`](Hub::go_on)
//! does the rest of its work. After a start with the state of an earlier hub it also calls
//! [`check_unclaimed`](Hub::check_unclaimed) from time to time, and
//! [`end_unclaimed`](Hub::end_unclaimed) for local clients that are gone.

mod backlog;
mod claims;
mod clients;
mod frame;
mod invariants;
mod lease;
mod lifecycle;
mod messages;
mod metrics;
mod outbox;
mod partitions;
mod questions;
mod quotas;
pub(crate) mod recovery;
mod resuming;
mod sessions;
pub(crate) mod shares;
mod tokens;
mod turns;
mod views;

use std::collections::VecDeque;
use std::io;
use std::path::Path;
use std::rc::Rc;
use std::time::Instant;

use navlocks_core::DeadlockPolicy;
use tokio::sync::Notify;

use crate::config::Limits;
use crate::store::{Exhausted, Found, Registry, Standing, StateFile, Store};
use backlog::Unfinished;
use partitions::{Around, Partition, Partitions};
use recovery::Recovery;
use sessions::Sessions;
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
    pub(crate) registry: Registry,
    pub(crate) recovery: Recovery,
    places: Places,
    /// Scratch list of hashes, empty between inputs.
    hashes: Vec<u64>,
    /// The work that inputs left, in turn.
    unfinished: VecDeque<Unfinished>,
    /// Notified when there is such work.
    pub(crate) left_over: Rc<Notify>,
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
        let (store, registry) = Store::new(None, &limits)?;
        Ok(Self::new(limits, deadlocks, (store, registry), Instant::now()))
    }

    /// Makes a hub whose sessions outlive it, with its state in this folder: the next hub there
    /// waits for their claims.
    ///
    /// # Errors
    ///
    /// The folder cannot be used, or another service has it.
    pub fn with_state_folder(
        folder: &Path,
        limits: Limits,
        deadlocks: DeadlockPolicy,
        now: Instant,
    ) -> io::Result<Self> {
        let stored = Store::new(Some(StateFile::open(folder)?), &limits)?;
        Ok(Self::new(limits, deadlocks, stored, now))
    }

    /// Makes a hub without connections. It holds back what sessions of an earlier service may have.
    pub(crate) fn new(
        limits: Limits,
        deadlocks: DeadlockPolicy,
        (mut store, registry): (Store, Registry),
        now: Instant,
    ) -> Self {
        let found = store.take_found();
        let places = Places::after(&found);
        let sessions = found.sessions.iter().map(|it| it.number);
        Self {
            sessions: Sessions::new(sessions.collect()),
            partitions: Partitions::default(),
            shares: Shares::default(),
            tokens: Tokens::above(store.tokens_before()),
            metrics: Metrics::new(),
            limits,
            deadlocks,
            recovery: Recovery::new(found, now),
            store,
            registry,
            places,
            hashes: Vec::new(),
            unfinished: VecDeque::new(),
            left_over: Rc::default(),
            open: true,
            exhausted: Rc::default(),
            next_connection: 1,
            views: Views::default(),
        }
    }

    /// Ends the wait for clients of an earlier service of which nothing is known: from now on
    /// everything is granted in its turn.
    pub(crate) fn let_go(&mut self, now: Instant) {
        self.registry.end_blindness();
        self.recovery.blind = false;
        for partition in self.partitions.indices() {
            let places = self.partitions[partition].early.all_places();
            self.admit_places(partition, places, now);
        }
        self.settle(now);
    }

    /// After every step: takes note of the tokens given, and ends the sessions that do not read
    /// what they are told. What follows from that can make further ones slow.
    #[inline]
    fn settle(&mut self, now: Instant) {
        if let Err(Exhausted) = self.store.given(self.tokens.largest()) {
            self.exhausted.notify_one();
        }
        if !self.unfinished.is_empty() {
            self.left_over.notify_one();
        }
        while let Some(number) = self.sessions.take_slow() {
            let fault = self.slow_reader();
            self.end_without_slow(number, Some(fault), now);
        }
    }

    /// The partitions, and beside them what a step in one needs.
    #[inline]
    pub(crate) fn around(&mut self, now: Instant) -> (&mut Partitions, Around<'_>) {
        let Self { sessions, partitions, tokens, metrics, registry, unfinished, .. } = self;
        (partitions, Around { sessions, tokens, metrics, registry, unfinished, now })
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

/// Places of requests: a smaller one is granted first where two conflict.
#[derive(Debug)]
struct Places {
    first: u64,
    next: u64,
}

impl Places {
    /// Far above all fencing tokens, with as many below as above.
    const MIDDLE: u64 = 1 << 62;

    /// Continues after the places that an earlier service gave.
    fn after(found: &Found) -> Self {
        let (mut first, mut next) = (Self::MIDDLE, Self::MIDDLE);
        for request in &found.requests {
            if let Standing::Pending(place) = request.standing {
                first = first.min(place);
                next = next.max(place + 1);
            }
        }
        Self { first, next }
    }

    /// Takes the place after all others, or before all others for a request that overtakes.
    #[inline]
    fn take(&mut self, overtakes: bool) -> u64 {
        if overtakes {
            self.first -= 1;
            return self.first;
        }
        self.next += 1;
        self.next - 1
    }
}
