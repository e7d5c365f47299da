//! The sessions as a dashboard shows them.

use std::cmp::Reverse;
use std::time::Instant;

use navlocks_core::{RequestId, State};
use navlocks_wire::{self as wire, ClientKey, Way};

use super::brief::age;
use super::survey::{ROWS_MAX, Wanted};
use crate::hub::sessions::Session;
use crate::hub::slots::Sight;
use crate::hub::{Hub, Peer};

/// How many requests of one session are looked at, and how many of them are shown.
const LOOKS_MAX: usize = 10_000;
const ENTRIES_MAX: usize = 8;

impl Sight<'_> {
    /// Returns a page of the sessions that a dashboard may see.
    pub(super) fn clients(&self, peer: &Peer, filter: wire::Filter, now: Instant) -> wire::Clients {
        let skip = filter.skip as usize;
        let wanted = Wanted::new(filter);
        let mut answer = wire::Clients::default();
        let mut rows: Vec<(bool, usize, u32, &Hub)> = Vec::new();
        for hub in self.hubs() {
            for number in hub.sessions.numbers() {
                let Some(session) = hub.sessions.get(number) else { continue };
                if !peer.sees_tenant(&session.peer.tenant) {
                    continue;
                }
                answer.count += 1;
                let is_wanted = |client: &u64| {
                    wanted.wants_client(ClientKey::new(number, *client), session.peer.pid())
                };
                if session.clients.keys().any(is_wanted) {
                    rows.push((session.outbox.is_some(), session.requests.len(), number, hub));
                }
            }
        }
        if peer.viewing.as_ref().is_some_and(|viewing| viewing.all) {
            let unclaimed = self.hubs().flat_map(|hub| hub.found.describe(|_| true, now));
            answer.unclaimed = unclaimed.collect();
            answer.unclaimed.sort_unstable_by_key(|it| it.session);
            answer.unclaimed.truncate(ROWS_MAX);
        }
        answer.matching = rows.len() as u64;
        rows.sort_unstable_by_key(|&(connected, requests, number, _)| {
            (connected, Reverse(requests), number)
        });
        let page = rows.into_iter().skip(skip).take(ROWS_MAX);
        let row = |(_, _, number, hub): (bool, usize, u32, &Hub)| {
            hub.sessions.get(number).map(|session| hub.view_session(number, session, now))
        };
        answer.rows = page.filter_map(row).collect();
        answer
    }
}

impl Hub {
    fn view_session(&self, number: u32, session: &Session, now: Instant) -> wire::SessionInfo {
        let (mut held, mut pending) = (0, 0);
        let mut entries: [Vec<wire::Entry>; 2] = Default::default();
        let mut looks = LOOKS_MAX;
        for client in session.clients.values() {
            let partition = &self.partitions[client.partition];
            let manager = partition.manager();
            let requests: Vec<RequestId> = manager.requests_of(client.id).take(looks).collect();
            looks -= requests.len();
            for id in requests {
                let holds = matches!(manager.state(id), Some(State::Held(_)));
                *(if holds { &mut held } else { &mut pending }) += 1;
                let list = &mut entries[usize::from(!holds)];
                if list.len() < ENTRIES_MAX {
                    list.extend(partition.entry(id, now));
                }
            }
        }
        let [mut first, later] = entries;
        first.extend(later);
        first.truncate(ENTRIES_MAX);
        let Peer { tenant, origin, local, viewing, .. } = &*session.peer;
        let way = match (viewing, local) {
            (Some(_), _) => Way::Dashboard,
            (None, true) => Way::Unix,
            (None, false) => Way::Tcp,
        };
        let left = |lease: std::time::Duration| {
            lease.saturating_sub(now.saturating_duration_since(session.heard)).as_millis() as u64
        };
        wire::SessionInfo {
            session: number,
            tenant: tenant.to_string(),
            origin: origin.to_string(),
            pid: session.peer.pid(),
            stopped: self.sessions.is_stopped(number),
            way,
            connected: session.outbox.is_some(),
            heard_ms: age(session.heard, now),
            lease_ms: session.lease.map(|lease| lease.as_millis() as u64),
            left_ms: session.lease.map(left),
            clients: session.clients.len() as u64,
            held,
            pending,
            tag: first.iter().find_map(|entry| entry.tag.clone()),
            entries: first,
        }
    }
}
