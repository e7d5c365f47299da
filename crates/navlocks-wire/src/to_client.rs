//! What the service says. Clients ignore members that they do not know.

use serde::{Deserialize, Serialize};

use super::fault::Fault;
use super::id::RequestKey;
use super::info::{About, Cause, Cycle, Event, Info, Unclaimed, What};
use super::shown::Shown;
use super::to_service::{QueuePlace, is_zero};

/// A message from the service to a client.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ToClient {
    /// The first message of a connection: the session has begun, or goes on.
    Welcome(Welcome),
    /// A request has its lock.
    Granted(Granted),
    /// A request has to wait, and stands at this place. Sent by services that keep no table of
    /// requests.
    Pending(Pending),
    /// A request wanted its lock only if available, and it is not. The request is over.
    Unavailable(u64),
    /// A lock was taken away, or a request thrown out of the queue. The client takes note with
    /// `release`.
    Lost(Lost),
    /// A request was not taken. It is over.
    Refused(Refused),
    /// Somebody waits for this lock.
    Contended(u64),
    /// The answer to a question.
    Answer(Answer),
    /// The answer to `listen`: what happens from here on is told to this client.
    Listening(u64),
    /// Something happened in a lock space that is listened to.
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
    /// The protocol's version.
    pub version: u32,
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
    /// For how long a session lives on without a sign of life, in milliseconds. Missing over a Unix
    /// socket: there the end of the connection is the end of the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease_ms: Option<u64>,
    /// The session goes on where it was.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub resumed: bool,
    /// The web origin that the service takes this session for: the operator may have given several
    /// of them one lock space. Empty for that of programs.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub origin: String,
    /// The service was started again and knows of the session only that it exists: the client must
    /// send all its requests again, and then `claimed`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub claim: bool,
    /// The service is a cluster, where a session has one partition: each further one takes a
    /// session of its own.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cluster: bool,
    /// Where the client should listen, over a Unix socket: see `present`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub presence: Option<String>,
    /// What the service allows one session.
    pub limits: Limits,
}

/// What the service allows.
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

/// A lock is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Granted {
    /// The request.
    pub id: u64,
    /// Its fencing token.
    pub token: u64,
}

/// A request has to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pending {
    /// The request.
    pub id: u64,
    /// Its place in the queue.
    pub place: QueuePlace,
}

/// A lock or a place in the queue is no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lost {
    /// The request.
    pub id: u64,
    /// Why.
    pub cause: Cause,
}

/// A request was not taken.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refused {
    /// The request.
    pub id: u64,
    /// Why.
    pub fault: Fault,
    /// The cycle that it would have closed, if that is why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cycle: Option<Cycle>,
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
    /// Its name; the default one when it is missing.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub partition: String,
    /// The tenant that it belongs to, if to one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub tenant: String,
    /// The web origin that it belongs to, if to one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub origin: String,
    /// The locks held.
    pub held: Vec<Info>,
    /// The requests pending.
    pub pending: Vec<Info>,
}

impl Answer {
    /// Returns what stands before the text of a reply that was written apart.
    pub fn head(id: u64) -> String {
        format!(r#"{{"answer":{{"id":{id},"reply":"#)
    }

    /// What stands after it.
    pub const TAIL: &str = "}}";
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
    /// To `query`: held in the order of their grants, pending in the order of the queue.
    Snapshot {
        /// The locks held.
        held: Vec<Info>,
        /// The requests pending.
        pending: Vec<Info>,
    },
    /// To `query-all`.
    Partitions(Vec<Partition>),
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
    /// To `deadlocks`.
    Deadlocks(Vec<Cycle>),
    /// To `recovery`.
    Recovery(Vec<Unclaimed>),
    /// To `force-release`: how many locks there were.
    Released(u64),
    /// To `view`.
    View(Shown),
    /// It was not answered, and why.
    Refused(Fault),
}

/// An event as text, written once for all subscribers. Their numbers of the client differ, and
/// stand first.
#[derive(Clone, Debug)]
pub struct EventText {
    /// The whole event, for client 0.
    pub text: String,
    /// Where the part begins that is the same for all clients.
    pub rest: usize,
}

impl EventText {
    /// Writes an event.
    pub fn new(about: About, what: What) -> Self {
        let event = ToClient::Event(Event { client: 0, about, what });
        Self { text: crate::write(&event), rest: Self::head(0).len() }
    }

    /// Returns what stands before the part that is the same for all.
    pub fn head(client: u64) -> String {
        format!(r#"{{"event":{{"client":{client},"#)
    }
}
