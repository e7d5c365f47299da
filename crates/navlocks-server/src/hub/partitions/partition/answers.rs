//! Answers about the requests of a partition.

use std::time::Instant;

use navlocks_core::kit::About;
use navlocks_core::{ClientId, Deadlock, LockInfo, RequestId, State};
use navlocks_wire::{self as wire, Cycle, RequestKey};

use super::Partition;
use super::address::{address, cycle, request_key, told};
use crate::hub::sessions::Sessions;

/// Bytes of the shortest description of a request, its names aside.
const INFO_BYTES_MIN: usize =
    r#"{"about":{"request":"1.1","client":"1.0","names":[""]},"ms":0}"#.len();

/// How many holders an answer about one request describes.
const HOLDERS_MAX: usize = 16;

/// More entries stand before a request than one question looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TooMany;

impl Partition {
    /// Returns the locks held, and the requests pending; none if writing them takes more bytes than
    /// this for sure.
    pub(crate) fn snapshot(
        &self,
        sessions: &Sessions,
        now: Instant,
        bytes_max: usize,
    ) -> Option<(Vec<wire::Info>, Vec<wire::Info>)> {
        if self.requests() * INFO_BYTES_MIN + self.bytes() > bytes_max {
            return None;
        }
        let snapshot = self.manager().snapshot();
        let describe = |info: LockInfo| self.info(info, now);
        let early = self.early.iter().map(|asking| wire::Info {
            token: None,
            ms: age(asking.since, now),
            about: wire::About {
                request: RequestKey::new(asking.client.session, asking.number),
                client: asking.client,
                names: wire::Names(asking.request.scope.clone()),
                mode: asking.request.mode,
                tag: asking.tag.clone(),
                pid: sessions.pid(asking.client.session),
            },
        });
        let held = snapshot.held.into_iter().map(describe).collect();
        let pending = snapshot.pending.into_iter().map(describe).chain(early).collect();
        Some((held, pending))
    }

    pub(crate) fn info(&self, info: LockInfo, now: Instant) -> wire::Info {
        let id = info.request;
        let address = address(self.space.notes(), id);
        let LockInfo { client, scope, mode, token, .. } = info;
        let about = About { client, scope, mode, tag: self.space.tag(id).cloned() };
        wire::Info {
            token: token.map(|token| token.get()),
            ms: age(self.space.notes().since(id), now),
            about: told(&about, address),
        }
    }

    /// Returns where the first pending request of a client stands, if one is pending.
    pub(crate) fn place(
        &self,
        client: ClientId,
        now: Instant,
        entries_max: usize,
    ) -> Result<Option<wire::Place>, TooMany> {
        let manager = self.manager();
        let pending = |id: &RequestId| manager.state(*id) == Some(State::Pending);
        let Some(request) = manager.requests_of(client).find(pending) else {
            let early = !self.early.places_of(client).is_empty();
            return Ok(early.then(|| wire::Place { before: 0, holders: 0, held: Vec::new() }));
        };
        self.place_of(request, now, entries_max).map(Some)
    }

    /// Returns where a pending request stands.
    pub(crate) fn place_of(
        &self,
        request: RequestId,
        now: Instant,
        entries_max: usize,
    ) -> Result<wire::Place, TooMany> {
        let manager = self.manager();
        let blockers = manager.blockers_within(request, entries_max).ok_or(TooMany)?;
        let held = blockers.hard.iter().take(HOLDERS_MAX).filter_map(|&id| manager.info(id));
        Ok(wire::Place {
            before: blockers.soft.len() as u64,
            holders: blockers.hard.len() as u64,
            held: held.map(|info| self.info(info, now)).collect(),
        })
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
