//! Answers about the requests of a partition.

use std::collections::BTreeMap;
use std::time::Instant;

use navlocks_core::kit::About;
use navlocks_core::{
    BlockedBy, ClientId, Deadlock, ExplainBounds, Explained, Explanation, RequestId, RequestInfo,
    Snapshot, State,
};
use navlocks_wire::{self as wire, Cycle, RequestKey, WaitsOf};

use super::Partition;
use super::address::{address, cycle, process_of, request_key, told};
use crate::hub::room::Room;
use crate::hub::sessions::Sessions;

/// Bytes of the shortest description of a request, its names aside.
const INFO_BYTES_MIN: usize =
    r#"{"about":{"request":"1.1","client":"1.0","names":[""]},"ms":0}"#.len();

/// How many holders an answer about one request describes.
const HOLDERS_MAX: usize = 16;

/// How many processes an answer looks at, to find the stopped ones. A look takes microseconds.
const PROCESSES_MAX: usize = 100;

/// The processes that an answer has looked at, by their sessions.
#[derive(Debug, Default)]
pub(crate) struct Looks(BTreeMap<u32, bool>);

impl Looks {
    /// Notes in the descriptions which processes are stopped.
    fn note(&mut self, infos: &mut [wire::Info], sessions: &Sessions) {
        for info in infos {
            let session = info.about.client.session;
            info.stopped = match self.0.get(&session) {
                Some(stopped) => *stopped,
                None if self.0.len() < PROCESSES_MAX => {
                    let stopped = sessions.is_stopped(session);
                    self.0.insert(session, stopped);
                    stopped
                }
                None => false,
            };
        }
    }
}

/// More entries stand before a request than one question looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TooMany;

impl Partition {
    /// Returns the locks held, and the requests pending; none if writing them takes more bytes than
    /// this for sure.
    pub(crate) fn snapshot(
        &self,
        sessions: &Sessions,
        room: &Room,
        looks: &mut Looks,
        now: Instant,
        bytes_max: usize,
    ) -> Option<(Vec<wire::Info>, Vec<wire::Info>)> {
        if self.is_longer_than(bytes_max) {
            return None;
        }
        let snapshot = self.manager().snapshot();
        Some(self.describe(snapshot, self.guests(sessions, room, now), sessions, looks, now))
    }

    /// Returns true if writing all requests takes more bytes than this for sure.
    pub(crate) fn is_longer_than(&self, bytes_max: usize) -> bool {
        self.requests() * INFO_BYTES_MIN + self.bytes() > bytes_max
    }

    /// Returns the requests, waits and cycles of this moment. Returns none if the search for
    /// deadlocks would read more entries than this.
    pub(crate) fn waits(
        &self,
        of: WaitsOf,
        sessions: &Sessions,
        room: &Room,
        entries_max: usize,
        now: Instant,
    ) -> Option<wire::Waits> {
        let (explained, guests) = match of {
            WaitsOf::Partition => (Explained::All, self.guests(sessions, room, now)),
            WaitsOf::Deadlocks => (Explained::Deadlocked, Vec::new()),
        };
        let bounds =
            ExplainBounds { entries_max, holders_max: HOLDERS_MAX, ..ExplainBounds::default() };
        let Explanation { requests, waits, deadlocks, more, .. } =
            self.manager().explain(explained, bounds)?;
        let key = |id: RequestId| request_key(self.space.notes(), id);
        let looks = &mut Looks::default();
        let (held, pending) = self.describe(requests, guests, sessions, looks, now);
        let wait = |wait: BlockedBy| wire::BlockedBy {
            request: key(wait.request),
            hard: wait.hard.into_iter().map(key).collect(),
            soft: wait.soft.map(key),
            holders: wait.holders as u64,
            before: wait.before as u64,
        };
        Some(wire::Waits {
            held,
            pending,
            waits: waits.into_iter().map(wait).collect(),
            cycles: deadlocks.iter().map(|deadlock| self.cycle(deadlock)).collect(),
            more: more as u64,
        })
    }

    fn describe(
        &self,
        requests: Snapshot,
        guests: Vec<wire::Info>,
        sessions: &Sessions,
        looks: &mut Looks,
        now: Instant,
    ) -> (Vec<wire::Info>, Vec<wire::Info>) {
        let info = |info: RequestInfo| self.info(info, now);
        let mut held: Vec<_> = requests.held.into_iter().map(info).collect();
        let mut pending: Vec<_> = requests.pending.into_iter().map(info).chain(guests).collect();
        looks.note(&mut held, sessions);
        looks.note(&mut pending, sessions);
        (held, pending)
    }

    /// Returns the requests that are on their way here, in the room.
    fn guests(&self, sessions: &Sessions, room: &Room, now: Instant) -> Vec<wire::Info> {
        let guests = room.guests(self.index).into_iter().map(|new_request| wire::Info {
            token: None,
            ms: age(new_request.since, now),
            left_ms: None,
            within: new_request.within,
            stopped: false,
            about: wire::About {
                request: new_request.key(),
                client: new_request.client,
                names: wire::Names(new_request.request.scope.clone()),
                mode: new_request.request.mode,
                tag: new_request.tag.clone(),
                traceparent: new_request.traceparent.clone(),
                pid: sessions.pid(new_request.client.session),
                process: process_of(new_request.owner, &self.clients),
            },
        });
        guests.collect()
    }

    pub(crate) fn info(&self, info: RequestInfo, now: Instant) -> wire::Info {
        let id = info.request;
        let address = address(self.space.notes(), id);
        let RequestInfo { client, scope, mode, token, .. } = info;
        let about = About { client, scope, mode, tag: self.space.tag(id).cloned() };
        let ms = age(self.space.notes().since(id), now);
        let is_limited = token.is_some() && address.max_hold_ms != 0;
        wire::Info {
            token: token.map(|token| token.get()),
            ms,
            left_ms: is_limited.then(|| address.max_hold_ms.saturating_sub(ms)),
            within: self.manager().outer_of(id).map(|outer| request_key(self.space.notes(), outer)),
            stopped: false,
            about: told(&about, address, &self.clients),
        }
    }

    /// Returns where the first pending request of a client stands, if one is pending.
    pub(crate) fn place(
        &self,
        client: ClientId,
        sessions: &Sessions,
        now: Instant,
        entries_max: usize,
    ) -> Result<Option<wire::Place>, TooMany> {
        let manager = self.manager();
        let pending = |id: &RequestId| manager.state(*id) == Some(State::Pending);
        let Some(request) = manager.requests_of(client).find(pending) else {
            return Ok(None);
        };
        self.place_of(request, sessions, now, entries_max).map(Some)
    }

    /// Returns where a pending request stands.
    pub(crate) fn place_of(
        &self,
        request: RequestId,
        sessions: &Sessions,
        now: Instant,
        entries_max: usize,
    ) -> Result<wire::Place, TooMany> {
        let manager = self.manager();
        let blockers = manager.blockers_within(request, entries_max).ok_or(TooMany)?;
        let held = blockers.hard.iter().take(HOLDERS_MAX).filter_map(|&id| manager.info(id));
        let mut held: Vec<_> = held.map(|info| self.info(info, now)).collect();
        Looks::default().note(&mut held, sessions);
        let (before, holders) = (blockers.soft.len() as u64, blockers.hard.len() as u64);
        Ok(wire::Place { before, holders, held })
    }

    /// Returns the names of requests for clients of other sessions.
    pub(crate) fn request_keys(&self, ids: &[RequestId]) -> Vec<RequestKey> {
        ids.iter().map(|&id| request_key(self.space.notes(), id)).collect()
    }

    pub(crate) fn cycle(&self, deadlock: &Deadlock) -> Cycle {
        cycle(deadlock, &self.clients, self.space.notes())
    }
}

fn age(since: Instant, now: Instant) -> u64 {
    now.saturating_duration_since(since).as_millis() as u64
}
