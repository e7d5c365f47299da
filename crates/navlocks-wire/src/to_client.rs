//! Messages of the service. Clients ignore members that they do not know.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::fault::Fault;
use super::id::RequestKey;
use super::info::{About, Cycle, Info, LossCause, RequestEvent, UnclaimedSession, What};
use super::to_service::{Downgrade, QueuePlace, is_zero};

/// A message from the service to a client.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ToClient {
    /// The first message of a connection: the session has begun, or is resumed.
    Welcome(Welcome),
    /// A request holds its lock.
    Granted(Granted),
    /// A request is pending, at this place. Sent by services that keep no registry of requests.
    Pending(Pending),
    /// A request is over, and has no lock.
    Over(Over),
    /// The answer to `downgrade`: the mode that the lock has now. It is not the one that was asked
    /// for if that allows fewer holders.
    Downgraded(Downgrade),
    /// The answer to a question.
    Answer(Answer),
    /// The answer to `watch`, or an event for a subscriber.
    Event(Event),
    /// The answer to `ping`.
    Pong(u64),
    /// Why the service closes the connection. The last message.
    Error(Fault),
}

/// The first message of a connection.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Welcome {
    /// The program that serves, and its version.
    pub service: String,
    /// The number of the session.
    pub session: u32,
    /// The proof that a later connection belongs to this session. Only its client receives it.
    /// Missing if the session ends with its connection.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub secret: String,
    /// A number that grows with every start of the service.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub epoch: u64,
    /// True if the service knows the message `timed-out`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub timed_out: bool,
    /// The lease in milliseconds: how long the session lives after the last message of the client.
    /// Missing over a Unix socket: there the end of the connection is the end of the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease_ms: Option<u64>,
    /// True if the session is resumed: the client must send its clients and all its live requests,
    /// and then `claimed`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub resumed: bool,
    /// The web origin that the service assigns to this session: the operator may have given several
    /// origins one lock space. Empty for programs.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub origin: String,
    /// The service is a cluster, where a session has one partition: each further one takes a
    /// session of its own.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cluster: bool,
    /// The path at which the client should listen, over a Unix socket: see `present`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub presence: Option<String>,
    /// The limits of one session.
    pub limits: Limits,
}

/// The limits of a service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Limits {
    /// The longest message that a client may send, in bytes.
    pub message_bytes_max: usize,
    /// The longest name, in bytes of UTF-8.
    pub name_bytes_max: usize,
    /// The most names in one request.
    pub names_per_request_max: usize,
    /// The longest tag, in bytes.
    pub tag_bytes_max: usize,
    /// The most requests of one session, held and pending together.
    pub requests_per_session_max: usize,
    /// The most clients of one session.
    pub clients_per_session_max: usize,
}

/// A request holds its lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Granted {
    /// The request.
    pub id: u64,
    /// Its fencing token.
    pub token: u64,
    /// For how many milliseconds it waited at the service, if its hold has a maximum. A client
    /// counts that from when it sent the request.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub waited_ms: u64,
}

impl Granted {
    /// Makes the grant of a request that did not wait, or that has no maximum hold.
    pub fn new(id: u64, token: u64) -> Self {
        Self { id, token, waited_ms: 0 }
    }

    /// Makes the grant of a request that waited for so long.
    pub fn after(waited: Duration, id: u64, token: u64) -> Self {
        Self { id, token, waited_ms: u64::try_from(waited.as_millis()).unwrap_or(u64::MAX) }
    }
}

/// A request is pending.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pending {
    /// The request.
    pub id: u64,
    /// Its place in the queue.
    pub place: QueuePlace,
}

/// A request is over, and has no lock.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Over {
    /// The request.
    pub id: u64,
    /// The reason.
    pub why: Why,
}

/// Why a request is over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Why {
    /// It wanted its lock only if available, and it is not.
    Unavailable,
    /// Its lock was lost, or it was aborted while it was pending. The client acknowledges with
    /// `end`.
    Lost(Lost),
    /// It was refused.
    Refused(Refused),
}

impl Over {
    /// Makes the end of a request that wanted its lock only if available.
    pub fn unavailable(id: u64) -> Self {
        Self { id, why: Why::Unavailable }
    }

    /// Makes the loss of a lock, without a thief in words.
    pub fn lost(id: u64, cause: LossCause) -> Self {
        Self::lost_to(id, cause, None)
    }

    /// Makes the loss of a lock, with the thief in words if there are some.
    pub fn lost_to(id: u64, cause: LossCause, thief: Option<Box<str>>) -> Self {
        Self { id, why: Why::Lost(Lost { cause, thief }) }
    }

    /// Makes the end of a request that is refused for this reason.
    pub fn refused(id: u64, fault: Fault) -> Self {
        Self { id, why: Why::Refused(Refused { fault, cycle: None }) }
    }
}

impl From<Over> for ToClient {
    fn from(over: Over) -> Self {
        Self::Over(over)
    }
}

/// How a lock was lost, or a pending request aborted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lost {
    /// The cause.
    pub cause: LossCause,
    /// The thief in words, for people: its tag or program, and its process. Missing if nothing was
    /// stolen, or if the service has only the thief's number left.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thief: Option<Box<str>>,
}

/// Why a request was refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refused {
    /// The reason.
    pub fault: Fault,
    /// The cycle that it would have closed, if that is the reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cycle: Option<Cycle>,
}

/// The answer to a `watch`, or an event of a subscription.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Event {
    /// This client receives all events in its lock space from now on.
    Watching(u64),
    /// This client receives no events.
    Refused(NotWatching),
    /// A request waits for this lock.
    Contended(u64),
    /// A request changed in the lock space of a subscriber.
    Request(RequestEvent),
}

/// A subscription was refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotWatching {
    /// The client that wanted to subscribe.
    pub client: u64,
    /// The reason.
    pub fault: Fault,
}

/// The answer to the question with this number.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// The number.
    pub id: u64,
    /// The answer.
    pub reply: Reply,
}

/// The locks held and requests pending in one partition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Partition {
    /// Its name; missing for the default one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub partition: String,
    /// The tenant that it belongs to; missing if none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub tenant: String,
    /// The web origin that it belongs to; missing if none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub origin: String,
    /// The locks held.
    pub held: Vec<Info>,
    /// The requests pending.
    pub pending: Vec<Info>,
}

impl Answer {
    /// Returns the text before a reply that was written apart.
    pub fn head(id: u64) -> String {
        format!(r#"{{"answer":{{"id":{id},"reply":"#)
    }

    /// The text after it.
    pub const TAIL: &str = "}}";
}

/// Requests, waits and cycles of one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Waits {
    /// The locks held, in the order of their grants.
    pub held: Vec<Info>,
    /// The requests pending, in the order of the queue.
    pub pending: Vec<Info>,
    /// The waits of the first of these.
    pub waits: Vec<BlockedBy>,
    /// The cycles of requests that wait for each other, the certain ones first.
    pub cycles: Vec<Cycle>,
    /// How many further pending requests were not looked at.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub more: u64,
}

/// A pending request, and what it waits for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockedBy {
    /// The request.
    pub request: RequestKey,
    /// The first held locks that conflict with it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hard: Vec<RequestKey>,
    /// The last earlier request that conflicts with it and waits itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub soft: Option<RequestKey>,
    /// How many held locks conflict with it.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub holders: u64,
    /// How many earlier requests conflict with it and wait themselves.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub before: u64,
}

/// Where a pending request stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// How many earlier requests that conflict with it wait themselves.
    pub before: u64,
    /// How many held locks conflict with it.
    pub holders: u64,
    /// The first of these locks.
    pub held: Vec<Info>,
}

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reply {
    /// To `locks` of one partition: held in the order of their grants, pending in the order of the
    /// queue.
    Locks {
        /// The locks held.
        held: Vec<Info>,
        /// The requests pending.
        pending: Vec<Info>,
    },
    /// To `locks` of all partitions.
    Partitions(Vec<Partition>),
    /// To `locks` of unclaimed sessions.
    Unclaimed(Vec<UnclaimedSession>),
    /// To `blockers`.
    Blockers {
        /// Held locks that conflict with it.
        hard: Vec<RequestKey>,
        /// Earlier requests that conflict with it and wait themselves.
        soft: Vec<RequestKey>,
    },
    /// To `place` and `place-of`: none if no such request is pending.
    Place(Option<Place>),
    /// To `contended`.
    Contended(bool),
    /// To `waits`.
    Waits(Waits),
    /// To `force-release`: how many locks there were.
    Released(u64),
    /// The service did not answer, for this reason.
    Refused(Fault),
}

/// An event as text, written once for all subscribers. Only the client number at its start differs.
#[derive(Clone, Debug)]
pub struct EventText {
    /// The whole event, for client 0.
    pub text: String,
    /// The offset of the part that is the same for all clients.
    pub rest: usize,
}

impl EventText {
    /// Writes an event.
    pub fn new(about: About, what: What) -> Self {
        let event = Event::Request(RequestEvent { client: 0, about, what });
        let event = ToClient::Event(event);
        Self { text: crate::write(&event), rest: Self::head(0).len() }
    }

    /// Returns the text before the part that is the same for all clients.
    pub fn head(client: u64) -> String {
        format!(r#"{{"event":{{"request":{{"client":{client},"#)
    }
}
