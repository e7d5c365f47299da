//! The view of a service for a dashboard: read access to all locks, recorders of what happens, and
//! the actions of operators. The service knows a dashboard as its [`Observer`] alone.

mod acting;
mod views;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::pin::Pin;
use std::rc::Rc;
use std::time::Instant;

use navlocks_wire::UnclaimedSession;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::config::{Access, Limits, TokenId};
use crate::hub::{Hub, Peer};
use crate::hubs::Hubs;

pub use crate::hub::{Noted, PartitionKey, Recorder, Recorders};
pub use acting::{Action, Victims};
pub use views::{PartitionView, SessionView};

/// The WebSocket subprotocol of viewers.
pub const SUBPROTOCOL: &str = "navlocks.dashboard.1";

/// A dashboard, as far as the service knows it: it has a page, answers viewers, and records.
pub trait Observer: Recorders {
    /// Returns the file of its page at a path.
    fn page(&self, path: &str) -> Option<Page>;

    /// Serves the WebSocket of a viewer until its end.
    fn serve(&self, socket: Socket, viewer: Viewer, service: Inspector) -> Task;

    /// Works for the viewers as long as the service runs.
    fn run(&self, service: Inspector) -> Task;
}

/// A task on the thread of the service.
pub type Task = Pin<Box<dyn Future<Output = ()>>>;

/// A file of a page, with the headers under which a browser gets it.
#[derive(Clone, Copy, Debug)]
pub struct Page {
    /// The headers.
    pub headers: &'static [(&'static str, &'static str)],
    /// The text.
    pub text: &'static str,
}

/// A connection behind a WebSocket handshake.
#[allow(missing_debug_implementations, reason = "a stream says nothing of use")]
pub struct Socket {
    /// The connection.
    pub stream: Box<dyn Stream>,
    /// The bytes that were read already.
    pub early: Vec<u8>,
}

/// A connection.
pub trait Stream: AsyncRead + AsyncWrite + Unpin {}

impl<S: AsyncRead + AsyncWrite + Unpin> Stream for S {}

/// The rights of a viewer.
#[derive(Clone, Debug)]
pub struct Viewer {
    /// The tenant whose partitions it sees; none if it sees those of all.
    pub tenant: Option<Rc<str>>,
    /// It may take locks and sessions away.
    pub acts: bool,
    /// The name under which its actions are noted.
    pub author: Rc<str>,
    pub(crate) token: Option<TokenId>,
    pub(crate) address: Option<IpAddr>,
}

impl Viewer {
    /// Returns true if it may see the partitions and sessions of a tenant.
    pub fn sees(&self, tenant: &str) -> bool {
        self.tenant.as_ref().is_none_or(|own| **own == *tenant)
    }

    /// Returns its address for people.
    fn address(&self) -> String {
        self.address.map_or_else(|| "unix".to_owned(), |address| address.to_string())
    }
}

/// The way from a dashboard to the locks of its service.
#[derive(Clone, Debug)]
pub struct Inspector {
    pub(super) hubs: Hubs,
    limits: Rc<Limits>,
    access: Rc<RefCell<Access>>,
    public: bool,
}

impl Inspector {
    pub(crate) fn new(
        hubs: Hubs,
        limits: Rc<Limits>,
        access: Rc<RefCell<Access>>,
        public: bool,
    ) -> Self {
        Self { hubs, limits, access, public }
    }

    /// Returns true if the service shows the page at its TCP addresses.
    pub fn is_public(&self) -> bool {
        self.public
    }

    /// Returns the limits of the service.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Returns false if the token of a viewer was removed.
    pub fn knows(&self, viewer: &Viewer) -> bool {
        self.access.borrow().knows(viewer.token)
    }

    /// Looks at the locks of the service at one moment.
    pub fn look<T>(&self, look: impl FnOnce(&Inspect<'_>) -> T) -> T {
        let hubs = self.hubs.by_slot();
        let borrowed: Vec<_> = hubs.iter().map(|(slot, hub)| (*slot, hub.borrow())).collect();
        let hubs = borrowed.iter().map(|(slot, hub)| (*slot, &**hub)).collect();
        look(&Inspect { count: self.hubs.slots().map_or(1, |slots| slots.count()), hubs })
    }

    /// Returns the address of the node, in a cluster.
    pub fn node(&self) -> Option<String> {
        Some(self.hubs.slots()?.membership.borrow().address().to_owned())
    }

    /// Records what happens in all partitions from now on.
    pub fn begin_recording(&self, now: Instant) {
        let recording = &self.hubs.common.recording;
        for (_, hub) in self.hubs.by_slot() {
            let partitions = &mut hub.borrow_mut().partitions;
            for index in partitions.indices() {
                let partition = &mut partitions[index];
                if let Some(recorder) = recording.recorder(&partition.key, now) {
                    partition.begin_recording(recorder, now);
                }
            }
        }
    }

    /// Records nothing any more.
    pub fn end_recording(&self) {
        for (_, hub) in self.hubs.by_slot() {
            let partitions = &mut hub.borrow_mut().partitions;
            for index in partitions.indices() {
                partitions[index].end_recording();
            }
        }
    }
}

/// The locks of a service at one moment.
#[derive(Debug)]
pub struct Inspect<'a> {
    /// How many slots there are; one without a cluster.
    count: u32,
    /// The hubs by slot: one, or those of a node of a cluster.
    hubs: BTreeMap<u32, &'a Hub>,
}

impl<'a> Inspect<'a> {
    /// Returns all partitions.
    pub fn partitions(&self) -> impl Iterator<Item = PartitionView<'a>> {
        let of_hub =
            |hub: &'a Hub| hub.partitions.living().map(move |it| PartitionView { hub, it });
        self.hubs.values().flat_map(move |hub| of_hub(hub))
    }

    /// Returns the partition with this key.
    pub fn find(&self, key: &PartitionKey) -> Option<PartitionView<'a>> {
        let slot = if self.count == 1 { 0 } else { key.slot(self.count) };
        let hub = *self.hubs.get(&slot)?;
        let it = &hub.partitions[hub.partitions.find(key)?];
        Some(PartitionView { hub, it })
    }

    /// Returns the keys of the partitions that a viewer may see, in order.
    pub fn keys_visible_to(&self, viewer: &Viewer) -> Vec<PartitionKey> {
        let keys = self.partitions().map(|partition| partition.key());
        let mut keys: Vec<PartitionKey> =
            keys.filter(|key| viewer.sees(key.tenant())).cloned().collect();
        keys.sort();
        keys
    }

    /// Returns the sessions that a viewer may see.
    pub fn sessions(&self, viewer: &Viewer) -> impl Iterator<Item = SessionView<'a>> {
        let of_hub = |hub: &'a Hub| {
            hub.sessions.present().map(move |(number, it)| SessionView { hub, number, it })
        };
        let all = self.hubs.values().flat_map(move |hub| of_hub(hub));
        all.filter(|session| viewer.sees(&session.it.peer.tenant))
    }

    /// Returns the sessions of an earlier service that have not come back yet, in order.
    pub fn unclaimed(&self, now: Instant) -> Vec<UnclaimedSession> {
        let described = self.hubs.values().flat_map(|hub| hub.describe_unclaimed(|_| true, now));
        let mut described: Vec<UnclaimedSession> = described.collect();
        described.sort_unstable_by_key(|it| it.session);
        described
    }

    /// Returns how many slots there are, how many of them the service has, and which of those grant
    /// nothing until their sessions have claimed or ended.
    pub fn slots(&self) -> (u32, u32, Vec<u32>) {
        let recovers = |(_, hub): &(&u32, &&Hub)| hub.found.hides_holders();
        let recovering = self.hubs.iter().filter(recovers).map(|(&slot, _)| slot).collect();
        (self.count, self.hubs.len() as u32, recovering)
    }
}

/// Returns a viewer over the Unix socket, or with the token of an operator.
pub(crate) fn operator(author: &str, acts: bool, peer: &Peer) -> Viewer {
    let (token, address) = (peer.token, peer.address);
    Viewer { tenant: None, acts, author: author.into(), token, address }
}

/// Returns a viewer with the token of a tenant.
pub(crate) fn tenant(peer: &Peer) -> Viewer {
    let (token, address) = (peer.token, peer.address);
    let (tenant, author) = (Some(peer.tenant.clone()), peer.tenant.clone());
    Viewer { tenant, acts: false, author, token, address }
}
