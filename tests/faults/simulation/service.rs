//! The service: the engine, with the numbers that clients give to their requests, and at most one
//! bug.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use navlocks_core::{
    Answer, ClientId, Event, FencingToken, HashKey, LockManager, Name, Request, RequestId, Scope,
};
use navlocks_tests::record::{Mode, Moment, RequestNo, Wait};

use crate::simulation::bug::Bug;
use crate::simulation::message::{Ask, ClientNo, Down, Up};

/// The longest delay of a message.
pub(super) const LATENCY: u64 = 120;

/// A request, by the numbers of its client and of itself.
pub(super) type Key = (ClientNo, RequestNo);

pub(super) struct Service {
    manager: LockManager,
    /// The session and the engine's id of each connected client.
    sessions: HashMap<ClientNo, (u32, ClientId)>,
    live: HashMap<RequestId, Entry>,
    ids: HashMap<Key, RequestId>,
    /// The last token of the engine; clients see ten times that.
    last_token: u64,
    /// The latest time at which a client received it.
    last_told: Moment,
    made: u64,
    pub(super) epoch: u32,
    pub(super) up: bool,
    bug: Option<Bug>,
    /// The request that the bug has struck.
    pub(super) struck: Option<Key>,
    /// Requests granted by a bug while the engine keeps them pending.
    early: HashSet<RequestId>,
}

#[derive(Clone)]
struct Entry {
    key: Key,
    ask: Ask,
    id: Arc<str>,
    /// When its client will know that it is pending.
    seen: Option<Moment>,
    /// When its client will have received the grant.
    told: Option<Moment>,
}

impl Service {
    pub(super) fn new(bug: Option<Bug>) -> Self {
        Self {
            manager: manager(1),
            sessions: HashMap::new(),
            live: HashMap::new(),
            ids: HashMap::new(),
            last_token: 0,
            last_told: Moment::START,
            made: 0,
            epoch: 0,
            up: true,
            bug,
            struck: None,
            early: HashSet::new(),
        }
    }

    pub(super) fn kill(&mut self) {
        self.up = false;
        self.sessions.clear();
        self.live.clear();
        self.ids.clear();
        self.early.clear();
    }

    pub(super) fn restart(&mut self) {
        self.up = true;
        self.epoch += 1;
        self.manager = manager(self.last_token + 1);
    }

    pub(super) fn session(&self, client: ClientNo) -> Option<u32> {
        self.sessions.get(&client).map(|(session, _)| *session)
    }

    /// Ends a client that is gone, or whose lease is over.
    pub(super) fn end(&mut self, client: ClientNo, now: Moment) -> Vec<(ClientNo, Down)> {
        if let Some((_, id)) = self.sessions.remove(&client) {
            self.manager.terminate(id);
            let over: Vec<RequestId> = self.ids_of(client);
            over.into_iter().for_each(|request| self.forget(request));
        }
        self.tell(None, now)
    }

    fn ids_of(&self, client: ClientNo) -> Vec<RequestId> {
        self.ids.iter().filter(|(key, _)| key.0 == client).map(|(_, id)| *id).collect()
    }

    /// Takes a message of a client. Returns the messages that follow.
    pub(super) fn hear(
        &mut self,
        client: ClientNo,
        session: u32,
        message: Up,
        now: Moment,
    ) -> Vec<(ClientNo, Down)> {
        if !self.up {
            return Vec::new();
        }
        if matches!(message, Up::Hello) {
            let told = self.end(client, now);
            self.sessions.insert(client, (session, self.manager.add_client()));
            return told;
        }
        let Some(&(known, id)) = self.sessions.get(&client) else { return Vec::new() };
        if known != session {
            return Vec::new();
        }
        let mut answer = None;
        let mut own = None;
        match message {
            Up::Hello => {}
            Up::Ask(ask) => own = Some(self.ask(client, id, ask)),
            Up::Release(number) | Up::Abandon(number) => {
                if let Some(&request) = self.ids.get(&(client, number)) {
                    let _over = self.manager.release(request) || self.manager.abort(request);
                    self.forget(request);
                }
            }
            Up::Force(number, name) => {
                self.manager.force_release(&Name::from(&*name));
                answer = Some((client, Down::Forced(number)));
            }
            Up::Query(number, since) => answer = self.look((client, number), since, now),
        }
        let mut told = self.tell(own, now);
        told.extend(answer);
        told.extend(self.go_wrong(now));
        told
    }

    fn ask(&mut self, client: ClientNo, id: ClientId, ask: Ask) -> (RequestId, Answer) {
        let (request, answer) =
            self.manager.request(id, in_engine_words(&ask)).expect("a known client");
        self.made += 1;
        let key = (client, ask.number);
        let (id, seen, told) = (format!("r{}", self.made).into(), None, None);
        self.live.insert(request, Entry { key, ask, id, seen, told });
        self.ids.insert(key, request);
        (request, answer)
    }

    fn look(&mut self, key: Key, since: Moment, now: Moment) -> Option<(ClientNo, Down)> {
        let request = self.ids.get(&key)?;
        let entry = self.live.get_mut(request)?;
        if entry.told.is_some() {
            return None;
        }
        entry.seen = entry.seen.or(Some(Moment(now.0 + LATENCY)));
        Some((key.0, Down::Pending { number: key.1, since, id: entry.id.clone() }))
    }

    fn forget(&mut self, request: RequestId) {
        if let Some(entry) = self.live.remove(&request) {
            self.ids.remove(&entry.key);
        }
        self.early.remove(&request);
    }

    /// Returns the messages that follow from an input. The outcome of a request stands after the
    /// losses that it caused and before later grants.
    fn tell(&mut self, mut own: Option<(RequestId, Answer)>, now: Moment) -> Vec<(ClientNo, Down)> {
        let mut told = Vec::new();
        while let Some(event) = self.manager.poll_event() {
            if let Event::Granted { .. } = event {
                told.extend(own.take().and_then(|own| self.outcome(own, now)));
            }
            match event {
                Event::Granted { request, token, .. } => {
                    if !self.early.remove(&request) {
                        told.extend(self.grant(request, token.get(), now));
                    }
                }
                Event::Lost { request, .. } | Event::Aborted { request, .. } => {
                    told.extend(
                        self.live.get(&request).map(|entry| (entry.key.0, Down::Lost(entry.key.1))),
                    );
                    self.forget(request);
                }
                Event::Evicted { .. } => {}
            }
        }
        told.extend(own.and_then(|own| self.outcome(own, now)));
        told
    }

    fn outcome(
        &mut self,
        (request, answer): (RequestId, Answer),
        now: Moment,
    ) -> Option<(ClientNo, Down)> {
        match answer {
            Answer::Granted(token) => self.grant(request, token.get(), now),
            Answer::Unavailable => {
                let (client, number) = self.live.get(&request)?.key;
                self.forget(request);
                Some((client, Down::Unavailable(number)))
            }
            Answer::Pending => None,
        }
    }

    fn grant(&mut self, request: RequestId, token: u64, now: Moment) -> Option<(ClientNo, Down)> {
        let (last, last_told) = (self.last_token, self.last_told);
        self.last_token = token;
        self.last_told = Moment(now.0 + LATENCY);
        let entry = self.live.get_mut(&request)?;
        entry.told = Some(self.last_told);
        let patient = matches!(entry.ask.wait, Wait::Queue);
        let after_last = last > 0 && last_told < entry.ask.at;
        // The token of a thief shows the theft to its victim; without it, the lock would seem to
        // have two holders.
        let honest = entry.ask.wait != Wait::Steal;
        let (key, id) = (entry.key, entry.id.clone());
        let mut shown = token * 10;
        match self.bug.filter(|_| self.struck.is_none()) {
            Some(Bug::DropGrant) if patient && self.made > 5 => {
                self.struck = Some(key);
                return None;
            }
            Some(Bug::RepeatToken) if last > 3 && honest => {
                self.struck = Some(key);
                shown = last * 10;
            }
            Some(Bug::ShrinkToken) if last > 3 && after_last && honest => {
                self.struck = Some(key);
                shown = last * 10 - 5;
            }
            _ => {}
        }
        Some((key.0, Down::Granted { number: key.1, token: shown, id }))
    }

    /// Applies the bugs that are not about messages.
    fn go_wrong(&mut self, now: Moment) -> Vec<(ClientNo, Down)> {
        match self.bug.filter(|_| self.struck.is_none()) {
            Some(Bug::GrantTwo) => self.grant_two(now).into_iter().collect(),
            Some(Bug::LoseSeat) => self.lose_seat(now),
            _ => Vec::new(),
        }
    }

    fn grant_two(&mut self, now: Moment) -> Option<(ClientNo, Down)> {
        let snapshot = self.manager.snapshot();
        let first = snapshot.pending.first()?.request;
        let entry = self.live.get(&first)?.clone();
        let rivals = snapshot.held.iter().filter_map(|held| self.live.get(&held.request));
        let mut rivals = rivals.filter(|rival| conflict(&rival.ask, &entry.ask));
        // The holders have received their grants, so that the two cannot seem to be in the wrong
        // order.
        if !rivals.all(|rival| rival.told.is_some_and(|told| told < now)) {
            return None;
        }
        self.struck = Some(entry.key);
        let token = self.last_token + 1;
        self.manager.advance_token(FencingToken::new(token + 1)).expect("a small token");
        let granted = self.grant(first, token, now);
        self.early.insert(first);
        granted
    }

    fn lose_seat(&mut self, now: Moment) -> Vec<(ClientNo, Down)> {
        let pending = self.manager.snapshot().pending;
        let entries: Vec<(RequestId, &Entry)> = pending
            .iter()
            .filter_map(|info| Some((info.request, self.live.get(&info.request)?)))
            .collect();
        let victim = entries.iter().enumerate().find_map(|(place, (request, entry))| {
            let seen = entry.seen?;
            let later = entries[place + 1..].iter().any(|(_, other)| {
                seen < other.ask.at
                    && other.ask.wait == Wait::Queue
                    && conflict(&other.ask, &entry.ask)
            });
            let patient = entry.ask.wait == Wait::Queue;
            (later && patient).then(|| (*request, (*entry).clone()))
        });
        let Some((request, entry)) = victim else { return Vec::new() };
        let Some((_, client)) = self.sessions.get(&entry.key.0).copied() else { return Vec::new() };
        self.struck = Some(entry.key);
        self.manager.abort(request);
        self.forget(request);
        let own = self.manager.request(client, in_engine_words(&entry.ask)).expect("it is known");
        self.ids.insert(entry.key, own.0);
        self.live.insert(own.0, entry);
        self.tell(Some(own), now)
    }
}

fn manager(first_token: u64) -> LockManager {
    let mut manager = LockManager::new(HashKey::from_bytes(*b"navlocks service"));
    manager.advance_token(FencingToken::new(first_token)).expect("a small token");
    manager
}

fn conflict(one: &Ask, other: &Ask) -> bool {
    one.names.iter().any(|name| other.names.contains(name))
        && (one.mode == Mode::Exclusive || other.mode == Mode::Exclusive)
}

fn in_engine_words(ask: &Ask) -> Request {
    let scope = Scope::new(ask.names.iter().map(|name| &**name)).expect("clients ask for a name");
    let wait = match ask.wait {
        Wait::Queue | Wait::AtMost(_) => navlocks_core::Wait::Queue,
        Wait::IfAvailable => navlocks_core::Wait::IfAvailable,
        Wait::Overtake => navlocks_core::Wait::Overtake,
        Wait::Steal => navlocks_core::Wait::Steal,
        Wait::Force => panic!("this is no request for a lock"),
    };
    Request { scope, mode: ask.mode.into(), wait }
}
