//! Answers about the requests of a partition.

use std::collections::BTreeMap;
use std::time::Instant;

use navlocks_core::kit::About;
use navlocks_core::{ClientId, Deadlock, RequestId, RequestInfo, State};
use navlocks_wire::{self as wire, Cycle, RequestKey};

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
        if self.requests() * INFO_BYTES_MIN + self.bytes() > bytes_max {
            return None;
        }
        let snapshot = self.manager().snapshot();
        let describe = |info: RequestInfo| self.info(info, now);
        let guests = room.guests(self.index).into_iter().map(|new_request| wire::Info {
            token: None,
            ms: age(new_request.since, now),
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
        let mut held: Vec<_> = snapshot.held.into_iter().map(describe).collect();
        let mut pending: Vec<_> =
            snapshot.pending.into_iter().map(describe).chain(guests).collect();
        looks.note(&mut held, sessions);
        looks.note(&mut pending, sessions);
        Some((held, pending))
    }

    pub(crate) fn info(&self, info: RequestInfo, now: Instant) -> wire::Info {
        let id = info.request;
        let address = address(self.space.notes(), id);
        let RequestInfo { client, scope, mode, token, .. } = info;
        let about = About { client, scope, mode, tag: self.space.tag(id).cloned() };
        wire::Info {
            token: token.map(|token| token.get()),
            ms: age(self.space.notes().since(id), now),
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
