//! The address of a request: how its session and its client call it.

use std::num::NonZero;
use std::rc::Rc;
use std::time::Instant;

use navlocks_core::kit::{About, Embedder, Notes};
use navlocks_core::{ClientId, Deadlock, Name, RequestId};
use navlocks_wire::{
    self as wire, ClientKey, Cycle, LossCause, QueuePlace, RequestKey, TraceParent,
};

use crate::hub::Noted;
use crate::store::Slot;

/// The types that the service attaches to a request.
pub(super) struct Served;

impl Embedder for Served {
    type Note = Address;
    type Time = Instant;
    type Tag = Label;
}

/// The texts of a request, which few requests have.
#[derive(Clone, Debug)]
pub(crate) struct Label {
    pub(crate) tag: Option<Name>,
    pub(crate) traceparent: Option<TraceParent>,
}

/// The names that a session gave its client and its request, its process, the bytes that the
/// request counts, and its slot in the registry.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Address {
    pub(super) session: u32,
    pub(super) bytes: u32,
    pub(super) slot: Slot,
    /// Noted here because a session ends before its requests do.
    pub(super) pid: Option<NonZero<u32>>,
    pub(super) client: u64,
    pub(super) number: u64,
    /// The longest time for which it may hold its lock, in milliseconds; zero if there is none.
    pub(super) max_hold_ms: u64,
    /// In a cluster: the place in the queue that its client is to know.
    pub(super) place: QueuePlace,
}

/// The owner of the requests of a client.
#[derive(Clone, Debug)]
pub(super) struct Owner {
    pub(super) key: ClientKey,
    /// Its process as it described it, where the kernel does not tell.
    pub(super) process: Option<Rc<str>>,
}

#[inline]
pub(super) fn address(notes: &Notes<Served>, id: RequestId) -> Address {
    notes.get(id).copied().unwrap_or_default()
}

pub(super) fn request_key(notes: &Notes<Served>, id: RequestId) -> RequestKey {
    let Address { session, number, .. } = address(notes, id);
    RequestKey::new(session, number)
}

pub(super) fn cycle(deadlock: &Deadlock, clients: &[Owner], notes: &Notes<Served>) -> Cycle {
    Cycle {
        clients: deadlock.clients.iter().map(|client| clients[client.slot()].key).collect(),
        requests: deadlock.requests.iter().map(|&id| request_key(notes, id)).collect(),
        outer: deadlock.outer.map(|id| request_key(notes, id)),
        possible: !deadlock.certain,
    }
}

pub(super) fn told_cause(cause: navlocks_core::LossCause, notes: &Notes<Served>) -> LossCause {
    match cause {
        navlocks_core::LossCause::Stolen { by } => LossCause::Stolen(request_key(notes, by)),
        navlocks_core::LossCause::ForceReleased => LossCause::ForceReleased,
        navlocks_core::LossCause::HeldTooLong => LossCause::HeldTooLong,
        navlocks_core::LossCause::Evicted => LossCause::Evicted,
        navlocks_core::LossCause::Suspended => LossCause::Suspended,
    }
}

/// The last thief of a partition, in words for its victims.
#[derive(Debug)]
pub(super) struct Thief {
    pub(super) key: RequestKey,
    pub(super) words: Rc<str>,
}

impl Thief {
    /// Describes a request that steals: its tag or program, and its process.
    pub(super) fn new(address: Address, tag: Option<&Name>, process: Option<Box<str>>) -> Self {
        const TAG_CHARS_MAX: usize = 100;
        let key = RequestKey::new(address.session, address.number);
        let program = || crate::store::program(address.pid?.get());
        let mut words =
            match tag.map(ToString::to_string).filter(|tag| !tag.is_empty()).or_else(program) {
                Some(name) => escaped(&name, TAG_CHARS_MAX),
                None => format!("client {}", ClientKey::new(address.session, address.client)),
            };
        match (address.pid, process) {
            (Some(pid), _) => words.push_str(&format!(" (pid {pid})")),
            (None, Some(process)) => words.push_str(&format!(" ({process})")),
            (None, None) => {}
        }
        Self { key, words: words.into() }
    }
}

/// Returns the start of a text, without control characters.
fn escaped(text: &str, chars_max: usize) -> String {
    let mut shown = String::new();
    for (index, char) in text.chars().enumerate() {
        match char {
            _ if index == chars_max => {
                shown.push('…');
                break;
            }
            char if char.is_control() => shown.extend(char.escape_default()),
            char => shown.push(char),
        }
    }
    shown
}

/// Returns the facts about a request for a recorder.
pub(super) fn noted(about: About<Label>, address: Address) -> Noted {
    let Address { session, client, number, pid, .. } = address;
    let (request, client) = (RequestKey::new(session, number), ClientKey::new(session, client));
    let About { scope, mode, tag, .. } = about;
    let tag = tag.and_then(|label| label.tag);
    Noted { request, client, scope, mode, tag, pid: pid.map(NonZero::get) }
}

/// Returns a description of a request for clients of other sessions.
pub(super) fn told(about: &About<Label>, address: Address, owners: &[Owner]) -> wire::About {
    let Address { session, client, number, pid, .. } = address;
    wire::About {
        request: RequestKey::new(session, number),
        client: ClientKey::new(session, client),
        names: wire::Names(about.scope.clone()),
        mode: about.mode,
        tag: about.tag.as_ref().and_then(|label| label.tag.clone()),
        traceparent: about.tag.as_ref().and_then(|label| label.traceparent.clone()),
        pid: pid.map(NonZero::get),
        process: process_of(about.client, owners),
    }
}

/// Returns the process of a client as it described it.
pub(super) fn process_of(client: ClientId, owners: &[Owner]) -> Option<Box<str>> {
    owners.get(client.slot())?.process.as_deref().map(Into::into)
}
