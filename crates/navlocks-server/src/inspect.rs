//! What a dashboard gets of a service: read access to all locks, recorders of what happens, and the
//! actions of operators. The service knows a dashboard as its [`Observer`] alone.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::pin::Pin;
use std::rc::Rc;
use std::time::{Duration, Instant};

use navlocks_core::{ClientId, LockManager, Mode, Name, Request, RequestId, Scope, Wait};
use navlocks_wire::{self as wire, ClientKey, Fault, FaultCode, RequestKey, UnclaimedSession};
use tokio::io::{AsyncRead, AsyncWrite};

use crate::config::{Access, Limits, TokenId};
use crate::hub::partitions::{Asking, Partition, PartitionIndex};
use crate::hub::sessions::{Known, Session};
use crate::hub::{Hub, Peer, SharedHub};
use crate::hubs::Hubs;

pub use crate::hub::{Noted, PartitionKey, Recorder, Recorders};

/// The tag of a steal by an operator.
const TAG: &str = "dashboard";

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

/// An action of an operator. Requests are named by their ids: a name may have another holder by
/// now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Takes away this lock alone: its holder receives the loss as a forced release.
    Release(RequestKey),
    /// Steals the names of this lock from all their holders, and releases them.
    Steal(RequestKey),
    /// Ends a session and all its requests.
    EndSession(u32),
}

impl Action {
    /// Returns the number of the session that it is about.
    fn session(self) -> u32 {
        match self {
            Self::Release(key) | Self::Steal(key) => key.session,
            Self::EndSession(number) => number,
        }
    }
}

/// The requests that an action takes away, each with its partition.
pub type Victims<'a> = Vec<(PartitionView<'a>, RequestId)>;

/// The way from a dashboard to the locks of its service.
#[derive(Clone, Debug)]
pub struct Inspector {
    hubs: Hubs,
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

    /// Does what an operator asks for.
    ///
    /// # Errors
    ///
    /// The operator may not, or the lock or the session is gone.
    pub fn act(&self, viewer: &Viewer, action: Action, now: Instant) -> Result<(), Fault> {
        let losses = self.look(|inspect| inspect.victims(viewer, action).map(|it| it.len()))?;
        let hub = self.hub_of(action).ok_or_else(|| gone(action))?;
        let mut hub = hub.borrow_mut();
        let (author, from) = (&*viewer.author, viewer.address());
        match action {
            Action::Release(key) | Action::Steal(key) => {
                let steal = matches!(action, Action::Steal(_));
                let what = if steal { "operator stole" } else { "operator released" };
                let audit = if steal { "steal" } else { "force-release" };
                tracing::warn!(audit, author, from, request = %key, losses, "{what}");
                hub.take_away(key, steal, now);
            }
            Action::EndSession(number) => {
                tracing::warn!(
                    audit = "force-release",
                    author,
                    from,
                    session = number,
                    losses,
                    "operator ended a session"
                );
                let text = format!("an operator ended the session: ask {author}");
                hub.end(number, Some(Fault::new(FaultCode::LeaseLapsed, text)), now);
            }
        }
        Ok(())
    }

    fn hub_of(&self, action: Action) -> Option<SharedHub> {
        match self.hubs.slots() {
            Some(slots) => slots.get(action.session() % slots.count()),
            None => self.hubs.single().cloned(),
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
            hub.sessions.numbers().into_iter().filter_map(move |number| {
                Some(SessionView { hub, number, it: hub.sessions.get(number)? })
            })
        };
        let all = self.hubs.values().flat_map(move |hub| of_hub(hub));
        all.filter(|session| viewer.sees(&session.it.peer.tenant))
    }

    /// Returns the sessions of an earlier service that have not come back yet, in order.
    pub fn unclaimed(&self, now: Instant) -> Vec<UnclaimedSession> {
        let described = self.hubs.values().flat_map(|hub| hub.found.describe(|_| true, now));
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

    /// Returns the requests that an action would take away.
    ///
    /// # Errors
    ///
    /// The viewer may not act, or the lock or the session is gone.
    pub fn victims(&self, viewer: &Viewer, action: Action) -> Result<Victims<'a>, Fault> {
        if !viewer.acts {
            let text = "this dashboard may look and not act: serve with --dashboard-actions, and show an operator token";
            return Err(Fault::new(FaultCode::Unauthorized, text));
        }
        let hub = *self.hubs.get(&(action.session() % self.count)).ok_or_else(|| gone(action))?;
        let session = hub.sessions.get(action.session()).ok_or_else(|| gone(action))?;
        let steal = match action {
            Action::Release(_) => false,
            Action::Steal(_) => true,
            Action::EndSession(number) => {
                if !viewer.sees(&session.peer.tenant) {
                    return Err(gone(action));
                }
                let view = SessionView { hub, number, it: session };
                return Ok(view.requests().collect());
            }
        };
        let (Action::Release(key) | Action::Steal(key)) = action else { return Err(gone(action)) };
        let Some(Known::Live { partition, id }) = session.requests.get(key.request) else {
            return Err(gone(action));
        };
        let view = PartitionView { hub, it: &hub.partitions[partition] };
        let info = view.manager().info(id).filter(|info| info.token.is_some());
        let info = info.filter(|_| viewer.sees(view.key().tenant())).ok_or_else(|| gone(action))?;
        let victims = if steal { holders(view.manager(), &info.scope) } else { vec![id] };
        Ok(victims.into_iter().map(|id| (view, id)).collect())
    }
}

/// A partition at one moment.
#[derive(Clone, Copy, Debug)]
pub struct PartitionView<'a> {
    hub: &'a Hub,
    it: &'a Partition,
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
    hub: &'a Hub,
    number: u32,
    it: &'a Session,
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

impl Hub {
    /// Takes a lock away for an operator: this one alone, or all that have a name of it.
    fn take_away(&mut self, key: RequestKey, steal: bool, now: Instant) {
        let found = self.sessions.get(key.session).and_then(|it| it.requests.get(key.request));
        let Some(Known::Live { partition: index, id }) = found else { return };
        if steal {
            let scope = self.partitions[index].manager().info(id).map(|info| info.scope);
            scope.into_iter().for_each(|scope| self.steal_for_a_moment(index, scope, now));
        } else {
            let (partitions, mut around) = self.around(now);
            partitions[index].force_release_one(id, &mut around);
        }
        self.settle(now);
    }

    /// Steals a scope with a client of its own, which ends at once: the next waiters are granted.
    fn steal_for_a_moment(&mut self, index: PartitionIndex, scope: Scope, now: Instant) {
        let operator = ClientKey::new(0, 0);
        let owner = self.partitions[index].add_client(operator, None);
        let request = Request { scope, mode: Mode::Exclusive, wait: Wait::Steal };
        let asking = Asking {
            owner,
            client: operator,
            number: 0,
            request,
            tag: Some(TAG.into()),
            since: now,
            place: 0,
            is_placed: false,
            slot: 0,
            max_hold_ms: 0,
        };
        let (partitions, mut around) = self.around(now);
        partitions[index].request(asking, &mut around);
        partitions[index].end_client(owner, &mut around);
    }
}

/// Returns all locks that have a name of the scope.
fn holders(manager: &LockManager, scope: &Scope) -> Vec<RequestId> {
    let queues = scope.names().iter().filter_map(|name| manager.queue_of(name));
    let held = queues.flat_map(|queue| queue.requests().take_while(|queued| queued.held));
    let mut held: Vec<RequestId> = held.map(|queued| queued.request).collect();
    held.sort_unstable();
    held.dedup();
    held
}

fn gone(action: Action) -> Fault {
    let text = match action {
        Action::Release(key) | Action::Steal(key) => {
            format!("request {key} holds no lock any more: look again")
        }
        Action::EndSession(number) => format!("session {number} is over"),
    };
    Fault::new(FaultCode::BadState, text)
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
