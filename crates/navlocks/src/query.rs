//! Queries: holders, waiters, and the age of each.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use navlocks_core::{BlockedBy, ClientId, FencingToken, Mode, RequestId, Scope};

use crate::deadlock::Cycle;

/// All locks and requests of a lock space at one moment. A copy: later changes do not show in it.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Snapshot {
    /// The locks held, in the order in which they were granted.
    pub held: Vec<RequestInfo>,
    /// The requests pending, in the order in which they stand in the queue.
    pub pending: Vec<RequestInfo>,
}

/// The requests, waits and cycles of a lock space at one moment, from
/// [`Locks::waits`](crate::Locks::waits).
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Waits {
    /// The requests that are explained.
    pub requests: Snapshot,
    /// The waits of the first pending ones, in queue order: 500.
    pub waits: Vec<BlockedBy>,
    /// The cycles of requests that wait for each other, the certain ones first.
    pub cycles: Vec<Cycle>,
    /// How many further pending requests were not looked at.
    pub more: usize,
}

/// Where a pending request stands.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Place {
    /// How many earlier requests that conflict with it wait themselves.
    pub before: usize,
    /// How many held locks conflict with it.
    pub holders: usize,
    /// These locks, in the order in which they were granted; a service describes the first sixteen.
    pub held: Vec<RequestInfo>,
}

/// One request in a [`Snapshot`], held or pending.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RequestInfo {
    /// The request, and once granted the lock.
    pub request: RequestId,
    /// The client of the request.
    pub client: ClientId,
    /// The names of the request.
    pub scope: Scope,
    /// Shared or exclusive.
    pub mode: Mode,
    /// Its fencing token; none while it is pending.
    pub token: Option<FencingToken>,
    /// The text given with [`tag`](crate::Request::tag).
    pub tag: Option<Arc<str>>,
    /// The text given with [`traceparent`](crate::Request::traceparent) through a service.
    pub traceparent: Option<Arc<str>>,
    /// How long it has been held, or pending, exact to a few milliseconds.
    pub age: Duration,
    /// How long the lock may still be held, if its request has a
    /// [`max_hold`](crate::Request::max_hold).
    pub left: Option<Duration>,
    /// The process of the client, where a service knows it. In process there is only one.
    pub pid: Option<u32>,
    /// Otherwise the process as the client described it to the service: `4711@host`.
    pub process: Option<Arc<str>>,
    /// The held lock [within](crate::Request::within) which it was made.
    pub within: Option<RequestId>,
    /// True if a service knows that its process is stopped, as by Ctrl-Z.
    pub stopped: bool,
}

/// Writes the tag, or else the client; the process; and the age. Control characters of the tag are
/// escaped.
impl fmt::Display for RequestInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.tag.as_deref().filter(|tag| !tag.is_empty()) {
            Some(tag) => tag.chars().try_for_each(|char| match char.is_control() {
                true => write!(f, "{}", char.escape_default()),
                false => write!(f, "{char}"),
            })?,
            None => write!(f, "client {}", self.client)?,
        }
        if let Some(pid) = self.pid {
            let stopped = if self.stopped { ", stopped" } else { "" };
            write!(f, " (pid {pid}{stopped})")?;
        } else if let Some(process) = &self.process {
            write!(f, " ({process})")?;
        }
        // The clock is exact to milliseconds.
        let millis = u64::try_from(self.age.as_millis()).unwrap_or(u64::MAX);
        write!(f, " for {:?}", Duration::from_millis(millis))
    }
}

/// All locks and requests of one partition, from [`Locks::query_all`](crate::Locks::query_all).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct PartitionSnapshot {
    /// Its name; empty for the default one.
    pub partition: String,
    /// The tenant of a service that it belongs to; empty if none.
    pub tenant: String,
    /// The web origin that it belongs to; empty if none.
    pub origin: String,
    /// The locks and requests there.
    pub snapshot: Snapshot,
}

/// A session of an earlier service whose client has not come back yet, from
/// [`Locks::unclaimed_sessions`](crate::Locks::unclaimed_sessions). Its names are granted to no
/// other client meanwhile.
#[cfg(feature = "client")]
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct UnclaimedSession {
    /// Its number.
    pub session: u32,
    /// Its process, where the service knows it.
    pub pid: Option<u32>,
    /// For how long the service waits for it at most; none if until its process ends.
    pub left: Option<Duration>,
    /// How many locks it held.
    pub held: usize,
}

impl RequestInfo {
    /// Describes a lock of this process by what the engine knows and `more`.
    pub(crate) fn new(
        info: navlocks_core::RequestInfo,
        more: impl FnOnce(RequestId) -> (Option<Arc<str>>, Duration, Option<Duration>),
    ) -> Self {
        let navlocks_core::RequestInfo { request, client, scope, mode, token, within, .. } = info;
        let (tag, age, max) = more(request);
        Self {
            request,
            client,
            scope,
            mode,
            token,
            tag,
            traceparent: None,
            age,
            left: max.filter(|_| token.is_some()).map(|max| max.saturating_sub(age)),
            pid: None,
            process: None,
            within,
            stopped: false,
        }
    }
}

impl Snapshot {
    pub(crate) fn new(
        snapshot: navlocks_core::Snapshot,
        more: impl Fn(RequestId) -> (Option<Arc<str>>, Duration, Option<Duration>),
    ) -> Self {
        let describe = |info| RequestInfo::new(info, &more);
        Self {
            held: snapshot.held.into_iter().map(describe).collect(),
            pending: snapshot.pending.into_iter().map(describe).collect(),
        }
    }
}
