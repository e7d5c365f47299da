//! A partition: one lock space, the engine for it, and whom its events concern.

use std::time::Instant;

use navlocks::DeadlockPolicy;
use navlocks::wire::{
    self, About, Cause, ClientKey, Cycle, Fault, FaultCode, Granted, Lost, Refused, RequestKey,
    ToClient, What,
};
use navlocks_core::{ClientId, Event, LockManager, Mode, Request, RequestId, State, Wait};

use super::contention::Contention;
use super::early::Early;
use super::lineage::Lineage;
use super::listeners::Listeners;
use super::metrics::Metrics;
use super::partitions::PartitionKey;
use super::session::Known;
use super::sessions::Sessions;
use super::tokens::Tokens;

/// One lock space.
#[derive(Debug)]
pub(crate) struct Partition {
    pub(crate) key: PartitionKey,
    pub(crate) manager: LockManager,
    /// What is known of each live request beyond the engine, by [`RequestId::slot`].
    asked: Vec<Asked>,
    /// Who each client is, by [`ClientId::slot`].
    clients: Vec<ClientKey>,
    contention: Contention,
    listeners: Listeners,
    /// What came before anything may be granted.
    pub(crate) early: Early,
    /// What names and tags of live requests take.
    bytes: usize,
}

#[derive(Clone, Debug)]
struct Asked {
    session: u32,
    bytes: u32,
    client: u64,
    number: u64,
    /// When it was requested, and once held when it was granted.
    since: Instant,
    tag: Option<Box<str>>,
}

/// A request on its way into the engine.
#[derive(Debug)]
pub(crate) struct Asking {
    pub(crate) owner: ClientId,
    pub(crate) client: ClientKey,
    pub(crate) number: u64,
    pub(crate) request: Request,
    pub(crate) tag: Option<Box<str>>,
    pub(crate) since: Instant,
}

/// What a step in a partition needs of everything else.
pub(crate) struct Around<'a> {
    pub(crate) sessions: &'a mut Sessions,
    pub(crate) tokens: &'a mut Tokens,
    pub(crate) metrics: &'a Metrics,
    pub(crate) deadlocks: DeadlockPolicy,
    pub(crate) now: Instant,
}

/// Above this many slots, an idle partition gives memory back.
const IDLE_CAPACITY: usize = 1024;

impl Asking {
    /// What its names and tag take.
    #[inline]
    pub(crate) fn bytes(&self) -> usize {
        let names = self.request.scope.names().iter().map(|name| name.len_bytes());
        names.sum::<usize>() + self.tag.as_ref().map_or(0, |tag| tag.len())
    }
}

impl Partition {
    pub(crate) fn new(key: PartitionKey, manager: LockManager) -> Self {
        Self {
            key,
            manager,
            asked: Vec::new(),
            clients: Vec::new(),
            contention: Contention::default(),
            listeners: Listeners::default(),
            early: Early::default(),
            bytes: 0,
        }
    }

    /// How many requests there are, held and pending.
    #[inline]
    pub(crate) fn requests(&self) -> usize {
        self.manager.held_count() + self.manager.pending_count() + self.early.len()
    }

    #[inline]
    pub(crate) fn bytes(&self) -> usize {
        self.bytes + self.early.bytes()
    }

    pub(crate) fn add_client(&mut self, key: ClientKey) -> ClientId {
        let id = self.manager.add_client();
        if id.slot() >= self.clients.len() {
            self.clients.resize(id.slot() + 1, key);
        }
        self.clients[id.slot()] = key;
        id
    }

    /// Requests a lock and tells its owner and everybody else what comes of it at once. Returns its id while it lives.
    pub(crate) fn request(&mut self, asking: Asking, around: &mut Around<'_>) -> Option<RequestId> {
        let bytes = asking.bytes();
        let Asking { owner, client, number, request, tag, since } = asking;
        let id = match self.manager.request(owner, &request) {
            Ok(id) => id,
            Err(error) => {
                let fault = Fault::new(FaultCode::ExclusiveOvertake, error.to_string());
                let refused = Refused { id: number, fault, cycle: None };
                around.sessions.say(client.session, &ToClient::Refused(refused));
                return None;
            }
        };
        if matches!(request.wait, Wait::Steal | Wait::StealAll) {
            around.metrics.steals.inc();
        }
        self.note(
            id,
            Asked {
                session: client.session,
                bytes: bytes as u32,
                client: client.client,
                number,
                since,
                tag,
            },
        );
        let Self { listeners, asked, .. } = self;
        listeners.requested(id, around.sessions, |sessions| {
            about(&asked[id.slot()], request.scope.clone(), request.mode, sessions)
        });
        let pending = self.manager.state(id) == Some(State::Pending);
        if pending && !self.begin_to_wait(id, &request, around) {
            return None;
        }
        self.pass_on(around);
        self.manager.state(id).map(|_| id)
    }

    #[inline]
    fn note(&mut self, id: RequestId, asked: Asked) {
        if id.slot() >= self.asked.len() {
            // A scope takes one slot a name, so some are skipped.
            let skipped = Asked { tag: None, bytes: 0, ..asked };
            self.asked.resize(id.slot() + 1, skipped);
        }
        self.bytes += asked.bytes as usize;
        self.asked[id.slot()] = asked;
    }

    /// Applies the deadlock policy to a request that has to wait, and tells holders who want to know. False when it is
    /// refused.
    fn begin_to_wait(&mut self, id: RequestId, request: &Request, around: &mut Around<'_>) -> bool {
        if around.deadlocks != DeadlockPolicy::Ignore
            && let Some(cycle) = self.cycle_through(id, around.sessions)
        {
            self.listeners.tell(id, around.sessions, || What::Deadlock(cycle.clone()));
            around.metrics.deadlocks.inc();
            if around.deadlocks == DeadlockPolicy::Refuse {
                let Asked { session, number, .. } = self.asked[id.slot()];
                self.abort(id, around);
                let text = "waiting for this would close a deadlock: release what you hold, then ask again";
                let fault = Fault::new(FaultCode::Deadlock, text);
                let refused = Refused { id: number, fault, cycle: Some(cycle) };
                around.sessions.say(session, &ToClient::Refused(refused));
                return false;
            }
        }
        for lock in self.contention.began_to_wait(&request.scope, &self.manager) {
            let Asked { session, number, .. } = self.asked[lock.slot()];
            around.sessions.say(session, &ToClient::Contended(number));
        }
        true
    }

    /// A cycle that a pending request closes, also by way of programs that wait for those they started.
    fn cycle_through(&self, id: RequestId, sessions: &Sessions) -> Option<Cycle> {
        match self.manager.deadlock_through(id) {
            Some(deadlock) => Some(self.cycle(&deadlock)),
            None => Lineage::new(self, sessions)?.cycle_through(self.owner(id)),
        }
    }

    /// All cycles of clients that wait for each other.
    pub(crate) fn cycles(&self, sessions: &Sessions) -> Vec<Cycle> {
        let deadlocks = self.manager.deadlocks();
        let mut cycles: Vec<Cycle> = deadlocks.iter().map(|one| self.cycle(one)).collect();
        let more = Lineage::new(self, sessions).map_or(Vec::new(), |lineage| lineage.cycles());
        for cycle in more {
            let is_in = |known: &Cycle| known.clients.iter().all(|one| cycle.clients.contains(one));
            if !cycles.iter().any(is_in) {
                cycles.push(cycle);
            }
        }
        cycles
    }

    /// The client whose request it is.
    pub(crate) fn owner(&self, id: RequestId) -> ClientKey {
        let asked = &self.asked[id.slot()];
        ClientKey::new(asked.session, asked.client)
    }

    /// Releases a lock, or takes a request out of the queue.
    #[inline]
    pub(crate) fn give_up(&mut self, id: RequestId, around: &mut Around<'_>) {
        if self.manager.release(id) {
            self.observe_hold(id, around);
            self.forget(id);
            self.listeners.end(id, around.sessions, || What::Released);
            self.pass_on(around);
        } else {
            self.abort(id, around);
        }
    }

    fn abort(&mut self, id: RequestId, around: &mut Around<'_>) {
        if self.manager.abort(id) {
            self.forget(id);
            self.listeners.end(id, around.sessions, || What::Withdrawn);
            self.pass_on(around);
        }
    }

    /// Takes all held locks away that have this name. Returns how many there were.
    pub(crate) fn force_release(
        &mut self,
        name: &navlocks_core::Name,
        around: &mut Around<'_>,
    ) -> usize {
        let count = self.manager.force_release(name);
        self.pass_on(around);
        count
    }

    /// Ends a client and all it has. Returns the numbers of the requests that it had.
    pub(crate) fn end_client(&mut self, client: ClientId, around: &mut Around<'_>) -> Vec<u64> {
        let Some(&key) = self.clients.get(client.slot()) else { return Vec::new() };
        self.listeners.remove(key);
        let requests: Vec<RequestId> = self.manager.requests_of(client).collect();
        let mut numbers = self.early.remove_client(client);
        for id in requests {
            numbers.push(self.asked[id.slot()].number);
            let pending = self.manager.state(id) == Some(State::Pending);
            let what = if pending { What::Aborted } else { What::Lost };
            if !pending {
                self.observe_hold(id, around);
            }
            self.listeners.end(id, around.sessions, || what(Cause::ClientEnded));
            self.forget(id);
        }
        self.manager.terminate(client);
        self.pass_on(around);
        numbers
    }

    /// The holder of a lock wants to hear when somebody waits for it.
    pub(crate) fn watch_contention(&mut self, id: RequestId, around: &mut Around<'_>) {
        if self.manager.is_contended(id) {
            let Asked { session, number, .. } = self.asked[id.slot()];
            around.sessions.say(session, &ToClient::Contended(number));
        } else if let Some(info) = self.manager.info(id) {
            self.contention.watch(id, info.scope);
        }
    }

    pub(crate) fn listen(&mut self, listener: ClientKey, sessions: &Sessions) {
        let Self { listeners, manager, asked, .. } = self;
        listeners.add(listener, || {
            let now = manager.snapshot();
            let living = now.held.into_iter().chain(now.pending);
            living
                .map(|info| {
                    let asked = &asked[info.request.slot()];
                    (info.request, about(asked, info.scope, info.mode, sessions))
                })
                .collect()
        });
    }

    pub(crate) fn unlisten(&mut self, listener: ClientKey) {
        self.listeners.remove(listener);
    }

    /// The locks held, and the requests pending.
    pub(crate) fn snapshot(
        &self,
        sessions: &Sessions,
        now: Instant,
    ) -> (Vec<wire::Info>, Vec<wire::Info>) {
        let snapshot = self.manager.snapshot();
        let describe = |info: navlocks_core::LockInfo| {
            let asked = &self.asked[info.request.slot()];
            wire::Info {
                token: info.token.map(|token| token.get()),
                ms: now.saturating_duration_since(asked.since).as_millis() as u64,
                about: about(asked, info.scope, info.mode, sessions),
            }
        };
        let early = self.early.iter().map(|asking| wire::Info {
            token: None,
            ms: now.saturating_duration_since(asking.since).as_millis() as u64,
            about: About {
                request: RequestKey::new(asking.client.session, asking.number),
                client: asking.client,
                names: wire::Names(asking.request.scope.clone()),
                mode: asking.request.mode,
                tag: asking.tag.clone(),
                pid: pid(asking.client.session, sessions),
            },
        });
        let held = snapshot.held.into_iter().map(describe).collect();
        let pending = snapshot.pending.into_iter().map(describe).chain(early).collect();
        (held, pending)
    }

    /// Names of requests, for people in other sessions.
    pub(crate) fn request_keys(&self, ids: &[RequestId]) -> Vec<RequestKey> {
        ids.iter().map(|&id| self.request_key(id)).collect()
    }

    fn request_key(&self, id: RequestId) -> RequestKey {
        let asked = &self.asked[id.slot()];
        RequestKey::new(asked.session, asked.number)
    }

    pub(crate) fn cycle(&self, deadlock: &navlocks_core::Deadlock) -> Cycle {
        Cycle {
            clients: deadlock.clients.iter().map(|client| self.clients[client.slot()]).collect(),
            requests: self.request_keys(&deadlock.requests),
        }
    }

    /// Passes on what the engine says after an input.
    #[inline]
    fn pass_on(&mut self, around: &mut Around<'_>) {
        while let Some(event) = self.manager.poll_event() {
            self.tell(event, around);
        }
        if self.asked.capacity() > IDLE_CAPACITY && self.manager.name_count() == 0 {
            self.asked = Vec::new();
        }
    }

    fn tell(&mut self, event: Event, around: &mut Around<'_>) {
        match event {
            Event::Granted { request: id, token, .. } => {
                let asked = &mut self.asked[id.slot()];
                let (session, number) = (asked.session, asked.number);
                let waited = around.now.saturating_duration_since(asked.since);
                asked.since = around.now;
                around.metrics.granted(waited);
                around.tokens.given(token);
                let granted = Granted { id: number, token: token.get() };
                around.sessions.say(session, &ToClient::Granted(granted));
                self.listeners.tell(id, around.sessions, || What::Granted(token.get()));
                if !self.contention.is_empty() && self.contention.granted(id, &self.manager) {
                    around.sessions.say(session, &ToClient::Contended(number));
                }
            }
            Event::Unavailable { request: id, .. } => {
                let Asked { session, number, .. } = self.asked[id.slot()];
                self.forget(id);
                around.sessions.say(session, &ToClient::Unavailable(number));
                self.listeners.end(id, around.sessions, || What::Unavailable);
            }
            Event::Lost { request, cause, .. } => {
                self.observe_hold(request, around);
                around.metrics.losses.inc();
                self.lose(request, cause, around, What::Lost);
            }
            Event::Aborted { request, cause, .. } => {
                self.lose(request, cause, around, What::Aborted);
            }
            // Told of clients that are suspended; a client of a service never is.
            Event::Evicted { .. } => {}
        }
    }

    /// A request came to its end by somebody else's doing.
    fn lose(
        &mut self,
        id: RequestId,
        cause: navlocks_core::Cause,
        around: &mut Around<'_>,
        what: fn(Cause) -> What,
    ) {
        let cause = match cause {
            navlocks_core::Cause::Stolen { by } => Cause::Stolen(self.request_key(by)),
            navlocks_core::Cause::ForceReleased => Cause::ForceReleased,
            navlocks_core::Cause::Evicted => Cause::Evicted,
            navlocks_core::Cause::Suspended => Cause::Suspended,
        };
        let Asked { session, client, number, .. } = self.asked[id.slot()];
        self.forget(id);
        if let Some(owner) = around.sessions.get_mut(session) {
            owner.lose(number, client, cause);
        }
        around.sessions.say(session, &ToClient::Lost(Lost { id: number, cause }));
        self.listeners.end(id, around.sessions, || what(cause));
    }

    /// Clears what was noted of a request that is over.
    #[inline]
    fn forget(&mut self, id: RequestId) {
        self.contention.forget(id);
        let asked = &mut self.asked[id.slot()];
        self.bytes -= std::mem::take(&mut asked.bytes) as usize;
        asked.tag = None;
    }

    #[inline]
    fn observe_hold(&self, id: RequestId, around: &Around<'_>) {
        let since = self.asked[id.slot()].since;
        around.metrics.hold.observe(around.now.saturating_duration_since(since).as_secs_f64());
    }

    /// Gives the engine what came too early, in order of arrival.
    pub(crate) fn admit_early(
        &mut self,
        index: super::partitions::PartitionIndex,
        around: &mut Around<'_>,
    ) {
        for asking in self.early.take() {
            let (session, number) = (asking.client.session, asking.number);
            let id = self.request(asking, around);
            let Some(owner) = around.sessions.get_mut(session) else { continue };
            match id {
                Some(id) => {
                    owner.requests.insert(number, Known::Live { partition: index, id });
                }
                // Lost already, or refused.
                None if matches!(owner.requests.get(&number), Some(Known::Early { .. })) => {
                    owner.requests.remove(&number);
                }
                None => {}
            }
        }
    }
}

/// What is told of a request.
fn about(asked: &Asked, scope: navlocks_core::Scope, mode: Mode, sessions: &Sessions) -> About {
    About {
        request: RequestKey::new(asked.session, asked.number),
        client: ClientKey::new(asked.session, asked.client),
        names: wire::Names(scope),
        mode,
        tag: asked.tag.clone(),
        pid: pid(asked.session, sessions),
    }
}

fn pid(session: u32, sessions: &Sessions) -> Option<u32> {
    sessions.get(session).and_then(|session| session.peer.pid)
}
