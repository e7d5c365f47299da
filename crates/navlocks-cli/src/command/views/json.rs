//! The output of `query --json` and `watch --json`, for programs.

use navlocks::EventKind;
use navlocks::{
    Event, LossCause, Mode, PartitionSnapshot, RequestInfo, Snapshot, UnclaimedSession,
};
use navlocks_wire::{self as wire, Names};
use serde::Serialize;

/// The fields of every request.
#[derive(Debug, Serialize)]
struct About<'a> {
    names: Names,
    #[serde(flatten)]
    sharing: Sharing,
    request: String,
    client: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pid: Option<u32>,
    /// Otherwise the process as its client described it.
    #[serde(skip_serializing_if = "Option::is_none")]
    process: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tag: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    traceparent: Option<&'a str>,
}

/// The mode in a word of the standard, and the limit of a request that has one.
#[derive(Debug, Serialize)]
struct Sharing {
    mode: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    limit: Option<u32>,
}

impl From<Mode> for Sharing {
    fn from(mode: Mode) -> Self {
        match mode {
            Mode::Exclusive => Self { mode: "exclusive", limit: None },
            Mode::Shared => Self { mode: "shared", limit: None },
            Mode::Limited(limit) => Self { mode: "shared", limit: Some(limit.get()) },
        }
    }
}

/// A held lock or a pending request.
#[derive(Debug, Serialize)]
struct Entry<'a> {
    #[serde(flatten)]
    about: About<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    token: Option<u64>,
    /// Milliseconds since the request is held, or pending.
    ms: u128,
    /// Milliseconds for which it may still be held.
    #[serde(skip_serializing_if = "Option::is_none")]
    left_ms: Option<u128>,
    /// The client under whose lock its program runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    within: Option<String>,
    /// Its process is stopped.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    stopped: bool,
}

impl<'a> From<&'a RequestInfo> for Entry<'a> {
    fn from(info: &'a RequestInfo) -> Self {
        Self {
            about: About {
                names: Names(info.scope.clone()),
                sharing: info.mode.into(),
                request: info.request.to_string(),
                client: info.client.to_string(),
                pid: info.pid,
                process: info.process.as_deref(),
                tag: info.tag.as_deref(),
                traceparent: info.traceparent.as_deref(),
            },
            token: info.token.map(navlocks::FencingToken::get),
            ms: info.age.as_millis(),
            left_ms: info.left.map(|left| left.as_millis()),
            within: info.within.map(|outer| outer.to_string()),
            stopped: info.stopped,
        }
    }
}

/// The held locks and pending requests of one moment.
#[derive(Debug, Serialize)]
struct State<'a> {
    held: Vec<Entry<'a>>,
    pending: Vec<Entry<'a>>,
    /// The reason why no request is granted although no lock is held.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
    /// The sessions of an earlier service whose claims the service waits for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    unclaimed: Vec<Session>,
}

/// A session of an earlier service.
#[derive(Debug, Serialize)]
struct Session {
    session: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pid: Option<u32>,
    /// Milliseconds for which the service waits for its claim at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    left_ms: Option<u128>,
    held: usize,
}

impl From<&UnclaimedSession> for Session {
    fn from(unclaimed: &UnclaimedSession) -> Self {
        let &UnclaimedSession { session, pid, left, held, .. } = unclaimed;
        Self { session, pid, left_ms: left.map(|left| left.as_millis()), held }
    }
}

/// An event of a request.
#[derive(Debug, Serialize)]
struct Happened<'a> {
    event: &'static str,
    time: &'a str,
    #[serde(flatten)]
    about: About<'a>,
    #[serde(flatten)]
    more: More,
}

/// The fields of some kinds of events.
#[derive(Debug, Default, Serialize)]
struct More {
    #[serde(skip_serializing_if = "Option::is_none")]
    token: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cause: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    by: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    clients: Option<Vec<String>>,
}

impl<'a> From<&'a Snapshot> for State<'a> {
    fn from(snapshot: &'a Snapshot) -> Self {
        Self {
            held: snapshot.held.iter().map(Entry::from).collect(),
            pending: snapshot.pending.iter().map(Entry::from).collect(),
            reason: None,
            unclaimed: Vec::new(),
        }
    }
}

/// The snapshot of one partition.
#[derive(Debug, Serialize)]
struct Space<'a> {
    partition: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    tenant: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    origin: &'a str,
    #[serde(flatten)]
    state: State<'a>,
}

/// The snapshots of all partitions.
#[derive(Debug, Serialize)]
struct All<'a> {
    partitions: Vec<Space<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    unclaimed: Vec<Session>,
}

/// Returns one line for a snapshot.
pub(crate) fn snapshot(
    snapshot: &Snapshot,
    reason: Option<&str>,
    unclaimed: &[UnclaimedSession],
) -> String {
    let unclaimed = unclaimed.iter().map(Session::from).collect();
    wire::write(&State { reason, unclaimed, ..State::from(snapshot) }) + "\n"
}

/// Returns one line for the snapshots of all partitions.
pub(crate) fn partitions(
    all: &[PartitionSnapshot],
    reason: Option<&str>,
    unclaimed: &[UnclaimedSession],
) -> String {
    let partitions = all.iter().map(|one| Space {
        partition: &one.partition,
        tenant: &one.tenant,
        origin: &one.origin,
        state: State::from(&one.snapshot),
    });
    let unclaimed = unclaimed.iter().map(Session::from).collect();
    wire::write(&All { partitions: partitions.collect(), reason, unclaimed }) + "\n"
}

/// A gap: events may be missing.
#[derive(Debug, Serialize)]
struct Gap<'a> {
    event: &'static str,
    time: &'a str,
}

/// Returns one line for a gap.
pub(crate) fn gap(time: &str) -> String {
    wire::write(&Gap { event: "gap", time }) + "\n"
}

/// Returns one line for an event.
pub(crate) fn event(event: &Event, time: &str) -> String {
    let (word, more) = described(&event.kind);
    let happened = Happened {
        event: word,
        time,
        about: About {
            names: Names(event.scope.clone()),
            sharing: event.mode.into(),
            request: event.request.to_string(),
            client: event.client.to_string(),
            pid: event.pid,
            process: None,
            tag: event.tag.as_deref(),
            traceparent: event.traceparent.as_deref(),
        },
        more,
    };
    wire::write(&happened) + "\n"
}

fn described(kind: &EventKind) -> (&'static str, More) {
    match kind {
        EventKind::Requested => ("requested", More::default()),
        EventKind::Granted(token) => {
            ("granted", More { token: Some(token.get()), ..More::default() })
        }
        EventKind::Unavailable => ("unavailable", More::default()),
        EventKind::Released => ("released", More::default()),
        EventKind::Downgraded => ("downgraded", More::default()),
        EventKind::Withdrawn => ("withdrawn", More::default()),
        EventKind::Aborted(loss) => ("aborted", cause(loss)),
        EventKind::Lost(loss) => ("lost", cause(loss)),
        EventKind::Deadlock(cycle) => {
            let clients = cycle.clients().iter().map(ToString::to_string).collect();
            ("deadlock", More { clients: Some(clients), ..More::default() })
        }
        _ => ("other", More::default()),
    }
}

fn cause(loss: &LossCause) -> More {
    let (cause, by) = match loss {
        LossCause::Stolen { by } => ("stolen", Some(by.request_id().to_string())),
        LossCause::ForceReleased => ("force-released", None),
        LossCause::HeldTooLong => ("held-too-long", None),
        LossCause::Evicted => ("evicted", None),
        LossCause::Suspended => ("suspended", None),
        LossCause::ClientEnded => ("client-ended", None),
        _ => ("service", None),
    };
    More { cause: Some(cause), by, ..More::default() }
}
