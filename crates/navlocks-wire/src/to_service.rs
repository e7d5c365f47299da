//! Messages of a client. The service ignores members that it does not know.

use navlocks_core::{Mode, Name, Wait};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

use super::id::RequestKey;
use super::info::mode;
use super::name::{Names, optional, single};
use super::trace::TraceParent;

/// A message from a client to the service.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ToService {
    /// The first message of a connection: a new session, or a resumed one. It opens client 0.
    Hello(Hello),
    /// Opens another client of the session; in a claim, names one that may be open.
    Open(Open),
    /// Ends a client and all its requests. The service does not answer.
    Close(u64),
    /// Requests a lock. The service answers with `granted` or `over`.
    Request(Request),
    /// Ends a request, pending or held, or acknowledges the loss of its lock. The service does not
    /// answer, and ignores unknown numbers.
    End(u64),
    /// Ends a lock whose longest time is over by the clock of its client, which counts from when it
    /// sent the request. The service does not answer, and ignores unknown numbers.
    Expired(u64),
    /// Ends a pending request whose timeout is over, as `end` does: the service counts it apart.
    /// Sent only to a service whose welcome has `timed-out`.
    TimedOut(u64),
    /// Gives a held lock a mode that allows more holders, in place. Answered by `downgraded`,
    /// unless the lock is lost.
    Downgrade(Downgrade),
    /// Subscribes to events, answered by `event`.
    Watch(Watch),
    /// A question, answered by `answer`.
    Ask(Ask),
    /// Shows that the client is alive, and renews the lease. The service answers `pong` with the
    /// same number.
    Ping(#[serde(deserialize_with = "number")] u64),
    /// Ends the claim of a resumed session: the client has sent all its clients and live requests,
    /// and the service ends all others.
    Claimed,
    /// The client listens at the path of its welcome: the session lives as long as a process keeps
    /// that socket open.
    Present,
    /// Ends the session.
    Bye,
}

/// The first message of a connection.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Hello {
    /// The partition of client 0; missing for the default one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub partition: String,
    /// The lease that the client prefers, in milliseconds. The welcome has the real one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease_ms: Option<u64>,
    /// The client cannot reach the node that owns its locks: a node that does not own them carries
    /// the messages there instead of answering `moved`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub carry: bool,
    /// The nodes that the client could not reach lately. A node that takes one of them for the
    /// owner carries the messages, or keeps the hello until the locks have another owner.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unreachable: Vec<String>,
    /// After so many milliseconds a node that carries the messages sends `moved`, so that the
    /// client tries to reach the owner again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub home_ms: Option<u64>,
    /// The secret of the session that this hello begins, if the client chooses it. A client
    /// without an answer repeats it, and a new owner ends the session of the earlier hello.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<String>,
    /// The process of the client, for people: `4711@host`. A service that learns it from the kernel
    /// ignores this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<String>,
    /// The session to resume.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resume: Option<Resume>,
}

/// The proof needed to resume a session over a new connection.
///
/// After the welcome the client names its clients by `open` and its live requests by `request`, and
/// ends with `claimed`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resume {
    /// The session in the welcome.
    pub session: u32,
    /// The secret in the welcome.
    pub secret: String,
    /// The epoch in the latest welcome.
    #[serde(default, deserialize_with = "number", skip_serializing_if = "is_zero")]
    pub epoch: u64,
}

/// Opens another client.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Open {
    /// Its number: larger than all earlier ones.
    #[serde(deserialize_with = "number")]
    pub client: u64,
    /// Its partition; missing for the default one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub partition: String,
}

/// A request for a lock.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Request {
    /// Its number: larger than all earlier ones of this session, except when it is sent again after
    /// a resume.
    #[serde(deserialize_with = "number")]
    pub id: u64,
    /// The client of the request; missing for client 0.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub client: u64,
    /// The names, all at once.
    pub names: Names,
    /// The mode; missing for exclusive.
    #[serde(default, with = "mode", skip_serializing_if = "mode::is_exclusive")]
    pub mode: Mode,
    /// The wait of the request; missing for `queue`.
    #[serde(default, with = "wait", skip_serializing_if = "wait::is_queue")]
    pub wait: Wait,
    /// A text that queries and events show.
    #[serde(default, with = "optional", skip_serializing_if = "Option::is_none")]
    pub tag: Option<Name>,
    /// The longest time for which the lock is held, in milliseconds: after that it is lost.
    #[serde(default, with = "max_hold", skip_serializing_if = "Option::is_none")]
    pub max_hold_ms: Option<u64>,
    /// The held request within which this one is made, and which is kept until this one is over:
    /// the search for deadlocks uses it. One that is over counts as missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub within: Option<Within>,
    /// The trace that the request belongs to, for events and logs. A malformed one is ignored.
    #[serde(
        default,
        deserialize_with = "super::trace::lenient",
        skip_serializing_if = "Option::is_none"
    )]
    pub traceparent: Option<TraceParent>,
    /// In a claim: the fencing token under which the client holds the lock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<u64>,
    /// In a claim: the place in the queue that the service sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<QueuePlace>,
    /// In a claim: for how many milliseconds the request has been held or pending.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ms: Option<u64>,
}

/// A subscription, or its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Watch {
    /// Starts a subscription to all later events in the lock space of a client. Each is answered by
    /// an event `watching` or `refused`.
    Events(u64),
    /// Ends that subscription.
    NoEvents(u64),
    /// Watches a lock once: an event `contended` follows when a request waits for it, at once if
    /// one does.
    Contention(u64),
}

/// A request within which another one is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Within {
    /// One of the same session, by its number.
    Own(#[serde(deserialize_with = "number")] u64),
    /// One of the program that started this one.
    Other(RequestKey),
}

impl Within {
    /// Names a request in this session.
    pub fn in_session(session: u32, key: RequestKey) -> Self {
        if key.session == session { Self::Own(key.request) } else { Self::Other(key) }
    }

    /// Returns the key of the request, named in this session.
    pub fn key(self, session: u32) -> RequestKey {
        match self {
            Self::Own(request) => RequestKey::new(session, request),
            Self::Other(key) => key,
        }
    }
}

/// A lock and the mode that it is to have, or has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Downgrade {
    /// The request that holds the lock.
    #[serde(deserialize_with = "number")]
    pub id: u64,
    /// The mode.
    #[serde(with = "mode")]
    pub mode: Mode,
}

/// The place of a pending request among all requests of a service: of two that conflict, the
/// smaller place comes first. Written as two numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(from = "(u64, u64)", into = "(u64, u64)")]
pub struct QueuePlace {
    /// The epoch of the service that gave it.
    pub epoch: u64,
    /// The number in that epoch.
    pub number: u64,
}

impl From<(u64, u64)> for QueuePlace {
    fn from((epoch, number): (u64, u64)) -> Self {
        Self { epoch, number }
    }
}

impl From<QueuePlace> for (u64, u64) {
    fn from(place: QueuePlace) -> Self {
        (place.epoch, place.number)
    }
}

/// A question.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ask {
    /// Its number, repeated in the answer.
    #[serde(deserialize_with = "number")]
    pub id: u64,
    /// The client whose lock space the question is about; missing for client 0.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub client: u64,
    /// The question.
    pub question: Question,
}

/// The questions of clients.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Question {
    /// The locks held and requests pending there.
    Locks(LocksOf),
    /// The requests that a request waits for.
    Blockers(RequestKey),
    /// Where the first pending request of the client stands.
    Place,
    /// Where a pending request stands.
    PlaceOf(RequestKey),
    /// Whether a request waits for this lock.
    Contended(RequestKey),
    /// The waits of one moment, and the cycles among them.
    Waits(WaitsOf),
    /// Takes away all held locks that have this name in their scope. Answered by their number.
    ForceRelease(#[serde(with = "single")] Name),
}

/// The requests whose waits a question is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WaitsOf {
    /// All of the partition of the client.
    Partition,
    /// Those of clients there that are in a cycle.
    Deadlocks,
}

/// The places whose locks a question is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LocksOf {
    /// The partition of the client.
    Partition,
    /// Every partition that the client may open; over a Unix socket, of all tenants and origins.
    All,
    /// The sessions of an earlier service that have not claimed their locks yet.
    Unclaimed,
}

/// Reads a number that every client can repeat exactly: JavaScript's are exact below 2^53.
fn number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    let number = u64::deserialize(deserializer)?;
    if number < 1 << 53 {
        return Ok(number);
    }
    Err(D::Error::custom(format_args!("the number {number} is not below 2^53")))
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
pub(super) fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// A maximum hold is a number as all others, and not zero.
mod max_hold {
    use serde::de::Error as _;
    use serde::{Deserializer, Serialize, Serializer};

    #[allow(clippy::ref_option, reason = "as serde calls it")]
    pub(super) fn serialize<S: Serializer>(ms: &Option<u64>, s: S) -> Result<S::Ok, S::Error> {
        ms.serialize(s)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Option<u64>, D::Error> {
        match super::number(d)? {
            0 => Err(D::Error::custom("a maximum hold is longer than no time")),
            ms => Ok(Some(ms)),
        }
    }
}

/// Ways to wait by their names.
mod wait {
    use navlocks_core::Wait;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    enum Word {
        Queue,
        IfAvailable,
        Steal,
        StealAll,
        Overtake,
    }

    #[allow(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
    pub(super) fn is_queue(wait: &Wait) -> bool {
        *wait == Wait::Queue
    }

    #[allow(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
    pub(super) fn serialize<S: Serializer>(wait: &Wait, serializer: S) -> Result<S::Ok, S::Error> {
        match wait {
            Wait::Queue => Word::Queue,
            Wait::IfAvailable => Word::IfAvailable,
            Wait::Steal => Word::Steal,
            Wait::StealAll => Word::StealAll,
            Wait::Overtake => Word::Overtake,
        }
        .serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Wait, D::Error> {
        Ok(match Word::deserialize(d)? {
            Word::Queue => Wait::Queue,
            Word::IfAvailable => Wait::IfAvailable,
            Word::Steal => Wait::Steal,
            Word::StealAll => Wait::StealAll,
            Word::Overtake => Wait::Overtake,
        })
    }
}
