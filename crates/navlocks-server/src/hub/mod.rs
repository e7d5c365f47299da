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
//! [`end_unclaimed`](Hub::end_unclaimed) for local clients that are gone. A driver of locks with a
//! maximum hold calls [`check_holds`](Hub::check_holds) when it says so.

mod backlog;
mod claim;
mod clients;
mod common;
pub(crate) mod found;
mod frame;
mod grace;
mod guests;
mod holds;
mod invariants;
mod lease;
mod lifecycle;
mod messages;
pub(crate) mod metrics;
mod outbox;
pub(crate) mod partitions;
mod questions;
mod quotas;
mod recorder;
mod room;
pub(crate) mod sessions;
pub(crate) mod shares;
mod slots;
mod tokens;
mod turns;
mod verdict;

use std::collections::VecDeque;
use std::io;
use std::path::Path;
use std::rc::Rc;
use std::time::Instant;

use navlocks_core::DeadlockPolicy;
use navlocks_wire::{Ask, Fault};

use crate::cluster::{Gate, Inherited, Registry as SlotRegistry};
use crate::config::Limits;
use crate::store::{Exhausted, Found, Registry, RequestState, StateFile, Store};
use backlog::Unfinished;
use found::Recovery;
use holds::Holds;
use metrics::Reason;
pub use partitions::PartitionKey;
use partitions::{HubContext, Partition, Partitions};
use room::Room;
use sessions::Sessions;
use tokens::Tokens;

pub(crate) use common::{AskedAcross, Common};
pub use frame::Frame;
pub(crate) use frame::Next;
pub use invariants::Contents;
pub(crate) use lifecycle::slow_reader;
pub(crate) use metrics::Metrics;
pub(crate) use outbox::Full;
pub use outbox::Outbox;
pub(crate) use questions::query_all;
pub(crate) use recorder::Recording;
pub use recorder::{Noted, Recorder, Recorders};
pub use sessions::Peer;
pub(crate) use shares::{Share, USER};
pub(crate) use slots::{SharedHub, Slots};

/// The state of a service.
#[derive(Debug)]
pub struct Hub {
    pub(crate) sessions: Sessions,
    pub(crate) partitions: Partitions,
    pub(crate) common: Common,
    pub(crate) metrics: Rc<Metrics>,
    /// In a cluster: the slot that this hub serves.
    pub(crate) slot: Option<Slot>,
    pub(crate) tokens: Tokens,
    pub(crate) limits: Limits,
    deadlocks: DeadlockPolicy,
    pub(crate) store: Store,
    pub(crate) registry: Registry,
    pub(crate) found: Recovery,
    room: Room,
    holds: Holds,
    sequence: Sequence,
    /// Scratch list of hashes, empty between inputs.
    hashes: Vec<u64>,
    /// The work that inputs left, in turn.
    unfinished: VecDeque<Unfinished>,
    /// Counts the requests that went on from the room to their partitions.
    admitted: usize,
    /// Questions that wait for the end of grace.
    questions: Vec<(u32, Ask)>,
    /// Whether new sessions are taken.
    open: bool,
    next_connection: u64,
}

impl Hub {
    /// Makes a hub that stores nothing: fencing tokens begin at the clock's microseconds.
    ///
    /// # Errors
    ///
    /// The system's clock is wrong by centuries.
    pub fn without_store(limits: Limits, deadlocks: DeadlockPolicy) -> io::Result<Self> {
        let stored = Store::new(None, &limits, true)?;
        Ok(Self::new(limits, deadlocks, stored, Common::default(), Instant::now()))
    }

    /// Makes a hub whose sessions outlive it, with its state in this folder: the next hub there
    /// waits for their claims. A hub in an empty folder is the first one.
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
        let stored = Store::new(Some(StateFile::open(folder)?), &limits, true)?;
        Ok(Self::new(limits, deadlocks, stored, Common::default(), now))
    }

    /// Makes a hub for a slot of a cluster, whose sessions the registry knows. It grants nothing
    /// until they have claimed or ended.
    ///
    /// # Errors
    ///
    /// No fencing tokens are left.
    pub fn with_slot(
        slots: u32,
        registry: &Rc<dyn SlotRegistry>,
        inherited: Inherited,
        limits: Limits,
        deadlocks: DeadlockPolicy,
    ) -> io::Result<Self> {
        Self::of_slot(slots, registry, inherited, (limits, deadlocks), Common::default())
    }

    /// Makes a hub for a slot beside those of the other slots of a node.
    pub(crate) fn of_slot(
        slots: u32,
        registry: &Rc<dyn SlotRegistry>,
        inherited: Inherited,
        (limits, deadlocks): (Limits, DeadlockPolicy),
        common: Common,
    ) -> io::Result<Self> {
        let (won_at, number) = (inherited.won_at, registry.slot());
        let stored = Store::of_slot(registry, inherited, &limits)?;
        let mut hub = Self::new(limits, deadlocks, stored, common, won_at);
        hub.slot = Some(Slot { number, slots });
        let largest = hub.sessions.numbers().into_iter().max().unwrap_or_default();
        hub.sessions.number_by(number, slots, largest);
        hub.sequence = Sequence::of_slot();
        hub.check_grace(won_at);
        Ok(hub)
    }

    /// Makes a hub without connections. It holds back what sessions of an earlier service may have.
    pub(crate) fn new(
        limits: Limits,
        deadlocks: DeadlockPolicy,
        (mut store, mut registry): (Store, Registry),
        common: Common,
        now: Instant,
    ) -> Self {
        let found = store.take_found();
        let sequence = Sequence::after(&found);
        let (found, sessions) = Recovery::new(found, &mut registry, now);
        let room = Room::new(sessions.absent_requests());
        let begins = common.hold_begins.clone();
        let holds = Holds::of_absent(sessions.absent_requests(), begins, now);
        Self {
            sessions,
            partitions: Partitions::default(),
            tokens: Tokens::above(store.tokens_before()),
            metrics: common.metrics.clone(),
            common,
            slot: None,
            limits,
            deadlocks,
            found,
            room,
            holds,
            store,
            registry,
            sequence,
            hashes: Vec::new(),
            unfinished: VecDeque::new(),
            admitted: 0,
            questions: Vec::new(),
            open: true,
            next_connection: 1,
        }
    }

    /// Ends the wait for clients of an earlier service of which nothing is known: from now on
    /// everything is granted in its turn.
    pub(crate) fn let_go(&mut self, now: Instant) {
        self.registry.end_unknown();
        if let Some(log) = self.registry.log_mut() {
            log.end_grace();
        }
        self.found.blind = false;
        self.admit(now);
        self.settle(now);
    }

    /// Notes the tokens that were given, and ends the sessions that do not read their messages.
    /// Called after every step; the effects of such an end can make further sessions slow.
    #[inline]
    pub(crate) fn settle(&mut self, now: Instant) {
        if let Err(Exhausted) = self.store.given(self.tokens.largest()) {
            self.common.exhausted.notify_one();
        }
        if !self.unfinished.is_empty() {
            self.common.left_over.notify_one();
        }
        while let Some(number) = self.sessions.take_slow() {
            let fault = slow_reader(&self.metrics, &self.limits);
            self.end_without_slow(number, Some(fault), now);
        }
    }

    /// The partitions, and beside them what a step in one needs.
    #[inline]
    pub(crate) fn context(&mut self, now: Instant) -> (&mut Partitions, HubContext<'_>) {
        let Self { sessions, partitions, tokens, metrics, registry, unfinished, common, .. } = self;
        let epoch = registry.log().map(|log| log.epoch());
        let (audit, holds) = (&*common.audit, &mut self.holds);
        let context = HubContext {
            sessions,
            tokens,
            metrics,
            audit,
            registry,
            holds,
            unfinished,
            epoch,
            reason: Reason::Aborted,
            now,
        };
        (partitions, context)
    }

    /// Adds what is counted on demand.
    pub(crate) fn measure(&mut self, now: Instant) {
        let oldest = self.partitions.iter_mut().filter_map(Partition::oldest_wait).min();
        let age = oldest.map_or(0.0, |since| now.saturating_duration_since(since).as_secs_f64());
        self.metrics.oldest_waiter.set(self.metrics.oldest_waiter.get().max(age));
        let held: usize =
            self.partitions.iter().map(|partition| partition.manager().held_count()).sum();
        let all: usize = self.partitions.iter().map(Partition::requests).sum();
        self.metrics.held.inc_by(held as i64);
        self.metrics.pending.inc_by((all - held) as i64);
        self.metrics.partitions.inc_by(self.partitions.len() as i64);
        let connected = self.sessions.connected();
        self.metrics.sessions.connected.inc_by(connected as i64);
        self.metrics.sessions.detached.inc_by(self.sessions.detached() as i64);
        self.metrics.sessions.unclaimed.inc_by(self.found.unclaimed() as i64);
        if self.slot.is_some() {
            self.metrics.slots.inc();
            self.metrics.slots_recovering.inc_by(i64::from(self.found.hides_holders()));
        }
    }

    /// Returns why no lock can be granted here now, if none can.
    pub(crate) fn unready(&self) -> Option<String> {
        if self.found.blind {
            return Some(self.withheld().message);
        }
        if self.found.hides_holders() {
            let unclaimed = self.found.unclaimed();
            return Some(format!(
                "no lock is granted until clients of the earlier owner have come back or their leases have passed: {unclaimed} of them are missing"
            ));
        }
        let cannot = self.gate().is_some_and(|gate| !gate.may_send());
        cannot.then(|| {
            "no lock is granted: the node cannot reach a quorum of etcd, and may have lost its slots".to_owned()
        })
    }

    /// Returns the gate of its slot, in a cluster.
    pub(crate) fn gate(&self) -> Option<Rc<Gate>> {
        self.registry.log().map(|log| log.gate.clone())
    }

    /// Lets connections look again whose frames wait for a change: one was confirmed, or the slot
    /// has another owner.
    pub fn open_gate(&self) {
        if let Some(gate) = self.gate() {
            gate.open();
        }
    }

    /// Stops to serve: sends all connections this fault and nothing more. Sessions are left as they
    /// are, and go on elsewhere.
    pub fn retire(&mut self, fault: &Fault, now: Instant) {
        self.open = false;
        self.end_recorders(now);
        self.disconnect(fault);
    }

    /// Ends the recorders of a slot that this node serves no more. Its locks live on elsewhere, so
    /// their end here is no event.
    fn end_recorders(&mut self, now: Instant) {
        for partition in self.partitions.iter_mut() {
            if let Some(recorder) = partition.recorder.take() {
                recorder.end(true, now);
            }
        }
    }

    /// Ends all connections with this fault. Their sessions go on.
    pub fn disconnect(&mut self, fault: &Fault) {
        for number in self.sessions.numbers() {
            let outbox = self.sessions.get(number).and_then(|session| session.outbox.as_ref());
            outbox.inspect(|outbox| outbox.end(fault.clone()));
        }
    }

    /// Returns true if it serves no more.
    pub(crate) fn is_retired(&self) -> bool {
        !self.open && self.slot.is_some()
    }

    /// Frees the memory of a few sessions after [`retire`](Self::retire). Returns false when all is
    /// free.
    pub(crate) fn dissolve(&mut self, now: Instant) -> bool {
        const SESSIONS_AT_A_TIME: usize = 16;
        // Tenants wait until the effects of their inputs are sent, if only to closed connections.
        if self.go_on(now) {
            return true;
        }
        for number in self.sessions.numbers().into_iter().take(SESSIONS_AT_A_TIME) {
            self.end_without_slow(number, None, now);
        }
        self.sessions.len() > 0 || !self.unfinished.is_empty()
    }
}

/// A slot of a cluster, and how many there are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slot {
    number: u32,
    slots: u32,
}

impl Slot {
    /// Returns true if a partition belongs to it.
    pub(crate) fn has(&self, key: &PartitionKey) -> bool {
        key.slot(self.slots) == self.number
    }
}

/// Sequence of requests: a smaller one is granted first where two conflict.
#[derive(Debug)]
struct Sequence {
    first: u64,
    next: u64,
}

impl Sequence {
    /// Far above all fencing tokens, with as many below as above.
    const MIDDLE: u64 = 1 << 62;

    /// The same below the numbers that JavaScript knows exactly: clients repeat these sequence.
    const MIDDLE_TOLD: u64 = 1 << 52;

    /// Sequence that clients are told.
    fn of_slot() -> Self {
        Self { first: Self::MIDDLE_TOLD, next: Self::MIDDLE_TOLD }
    }

    /// Makes room for requests before all others, and below this place if there is one. Returns the
    /// first place.
    fn make_room(&mut self, count: u64, below: Option<u64>) -> u64 {
        self.first = self.first.min(below.unwrap_or(self.first)).saturating_sub(count);
        self.first
    }

    /// Continues after the sequence that an earlier service gave.
    fn after(found: &Found) -> Self {
        let (mut first, mut next) = (Self::MIDDLE, Self::MIDDLE);
        for request in &found.requests {
            if let RequestState::Pending(place) = request.state {
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
