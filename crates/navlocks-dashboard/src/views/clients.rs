//! The sessions as a dashboard shows them.

use std::cmp::Reverse;
use std::time::Instant;

use navlocks_core::State;
use navlocks_server::inspect::{Inspect, SessionView, Viewer};
use navlocks_wire::ClientKey;

use super::brief::{age, entry};
use super::survey::{ROWS_MAX, Wanted};
use crate::shown::{Clients, Entry, SessionInfo, Way};
use crate::view::Filter;

/// How many requests of one session are looked at, and how many of them are shown.
const LOOKS_MAX: usize = 10_000;
const ENTRIES_MAX: usize = 8;

/// Returns a page of the sessions that a viewer may see.
pub(super) fn page(
    inspect: &Inspect<'_>,
    viewer: &Viewer,
    filter: Filter,
    now: Instant,
) -> Clients {
    let skip = filter.skip as usize;
    let wanted = Wanted::new(filter);
    let mut answer = Clients::default();
    let mut rows: Vec<SessionView<'_>> = Vec::new();
    for session in inspect.sessions(viewer) {
        answer.count += 1;
        let is_wanted =
            |client| wanted.wants_client(ClientKey::new(session.number(), client), session.pid());
        if session.clients().any(is_wanted) {
            rows.push(session);
        }
    }
    if viewer.tenant.is_none() {
        answer.unclaimed = inspect.unclaimed(now);
        answer.unclaimed.truncate(ROWS_MAX);
    }
    answer.matching = rows.len() as u64;
    rows.sort_unstable_by_key(|session| {
        (session.is_connected(), Reverse(session.request_count()), session.number())
    });
    let page = rows.into_iter().skip(skip).take(ROWS_MAX);
    answer.rows = page.map(|session| row(session, now)).collect();
    answer
}

fn row(session: SessionView<'_>, now: Instant) -> SessionInfo {
    let (mut held, mut pending) = (0, 0);
    let mut entries: [Vec<Entry>; 2] = Default::default();
    for (partition, id) in session.requests().take(LOOKS_MAX) {
        let holds = matches!(partition.manager().state(id), Some(State::Held(_)));
        *(if holds { &mut held } else { &mut pending }) += 1;
        let list = &mut entries[usize::from(!holds)];
        if list.len() < ENTRIES_MAX {
            list.extend(entry(partition, id, now));
        }
    }
    let [mut first, later] = entries;
    first.extend(later);
    first.truncate(ENTRIES_MAX);
    let (tenant, origin) = session.party();
    let left = |lease: std::time::Duration| {
        lease.saturating_sub(now.saturating_duration_since(session.heard())).as_millis() as u64
    };
    SessionInfo {
        session: session.number(),
        tenant: tenant.to_owned(),
        origin: origin.to_owned(),
        pid: session.pid(),
        stopped: session.is_stopped(),
        way: if session.is_local() { Way::Unix } else { Way::Tcp },
        connected: session.is_connected(),
        heard_ms: age(session.heard(), now),
        lease_ms: session.lease().map(|lease| lease.as_millis() as u64),
        left_ms: session.lease().map(left),
        clients: session.clients().len() as u64,
        held,
        pending,
        tag: first.iter().find_map(|entry| entry.tag.clone()),
        entries: first,
    }
}
