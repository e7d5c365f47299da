//! The service without sockets and without a clock: sessions, partitions, tokens. Messages go in,
//! and their consequences lie in the outboxes of the sessions that they concern.
//!
//! [`Service`](crate::Service) drives a hub by sockets and the system's clock. A program with
//! another transport, or with a clock of its own, drives a [`Hub`] itself: [`hello`](Hub::hello)
//! for the first message of a connection, [`message`](Hub::message) for the others,
//! [`leave`](Hub::leave) or [`detach`](Hub::detach) at its end, and
//! [`check_leases`](Hub::check_leases) from time to time.

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
mod resuming;
mod sessions;
pub(crate) mod shares;
mod tokens;
mod turns;

use std::io;
use std::rc::Rc;
use std::time::Instant;

use navlocks_core::DeadlockPolicy;
use tokio::sync::Notify;

use crate::config::Limits;
use crate::store::{Exhausted, Store};
use partitions::{Around, Partition, Partitions};
use sessions::Sessions;
use shares::Shares;
use tokens::Tokens;

pub use frame::Frame;
pub(crate) use frame::Next;
pub(crate) use metrics::Metrics;
pub(crate) use outbox::Full;
pub use outbox::Outbox;
pub use sessions::Peer;
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
