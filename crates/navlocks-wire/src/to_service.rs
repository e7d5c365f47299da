//! What a client says.

use navlocks_core::{Mode, Name, Wait};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

use super::id::{ClientKey, RequestKey};
use super::info::mode;
use super::name::{Names, single};
use super::view::View;

/// A message from a client to the service.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum ToService {
    /// The first message of a connection: a new session, or one that goes on. It opens client 0.
    Hello(Hello),
    /// Opens another client of the session.
    Open(Open),
    /// Ends a client: all it has is released. It is answered by nothing.
    Close(u64),
    /// Requests a lock. Answered by `granted`, `unavailable`, `lost` or `refused`, sooner or later.
    Request(Request),
    /// Lets go of a lock, or takes note that it was lost. Answered by nothing. A number that is not
    /// known means nothing.
    Release(u64),
    /// Takes a request out of the queue; if it was granted meanwhile, releases the lock. Answered
    /// by nothing.
    Abort(u64),
    /// Wants to hear once when somebody waits for this lock: `contended`, at once if somebody does.
    Contention(u64),
    /// A question, answered by `answer`.
    Ask(Ask),
    /// Wants to hear of everything that happens in the lock space of a client from now on. Answered
    /// by `listening`, each time.
    Listen(u64),
    /// Has heard enough.
    Unlisten(u64),
    /// Shows that the client is alive, and renews the lease. Answered by `pong` with the same
    /// number.
    Ping(#[serde(deserialize_with = "number")] u64),
    /// Ends the claim of a session whose service was started again: everything that the client
    /// still has was sent before.
    Claimed,
    /// The client listens at the path that its welcome named: the session lives for as long as a
    /// process keeps that socket open.
    Present,
    /// The client leaves and ends its session.
    Bye,
}

/// The first message of a connection.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Hello {
    /// The protocol's version: [`VERSION`](super::VERSION).
    pub version: u32,
    /// The partition of client 0; the default one when it is missing.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub partition: String,
    /// The lease that the client would like, in milliseconds. What it gets is in the welcome.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease_ms: Option<u64>,
    /// The client under whose locks the program of this one runs, and which waits for it therefore.
    /// Deadlocks are found through it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<ClientKey>,
    /// The client cannot reach the node that owns its locks: a node that does not own them carries
    /// the messages there instead of answering `moved`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub carry: bool,
    /// The session that goes on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resume: Option<Resume>,
}

/// What it takes to go on with a session over a new connection.
///
/// After it the client sends again what was not answered: a request whose number the service knows
/// is answered by what became of it, and keeps its place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Resume {
    /// From the welcome.
    pub session: u32,
    /// From the welcome.
    pub secret: String,
    /// From the latest welcome.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub epoch: u64,
    /// The clients that the session still has. The others end, and one that the service does not
    /// know is opened.
    pub clients: Vec<Open>,
    /// The requests that are still wanted, held and pending. The others are over.
    pub alive: Vec<u64>,
}

/// Opens another client.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Open {
    /// Its number: larger than all before.
    #[serde(deserialize_with = "number")]
    pub client: u64,
    /// Its partition; the default one when it is missing.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub partition: String,
}

/// A request for a lock.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Request {
    /// Its number: larger than all before in this session, except when it is sent again after a
    /// resume.
    #[serde(deserialize_with = "number")]
    pub id: u64,
    /// Whose it is; client 0 when it is missing.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub client: u64,
    /// The names, all at once.
    pub names: Names,
    /// Exclusive when it is missing.
    #[serde(default, with = "mode", skip_serializing_if = "mode::is_exclusive")]
    pub mode: Mode,
    /// What to do when the lock is not free; `queue` when it is missing.
    #[serde(default, with = "wait", skip_serializing_if = "wait::is_queue")]
    pub wait: Wait,
    /// A text that queries and events show.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tag: Option<Box<str>>,
    /// In a claim: the fencing token under which the client holds the lock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<u64>,
    /// In a claim: the place in the queue that the client was told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<QueuePlace>,
}

/// Where a pending request stands among all requests of a service: smaller places are granted
/// first where requests conflict. Written as two numbers.
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
#[serde(deny_unknown_fields)]
pub struct Ask {
    /// Its number, repeated in the answer.
    #[serde(deserialize_with = "number")]
    pub id: u64,
    /// Whose lock space it is about; client 0's when it is missing.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub client: u64,
    /// What is asked.
    pub question: Question,
}

/// What can be asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Question {
    /// All locks held and requests pending.
    Query,
    /// All locks held and requests pending in every partition that the client may open; over a Unix
    /// socket, of all tenants and origins.
    QueryAll,
    /// What a request waits for.
    Blockers(RequestKey),
    /// Where the first pending request of the client stands.
    Place,
    /// Where a pending request stands.
    PlaceOf(RequestKey),
    /// Whether somebody waits for a lock.
    Contended(RequestKey),
    /// Clients that wait for each other.
    Deadlocks,
    /// Sessions of an earlier service that the service still waits for.
    Recovery,
    /// Take all held locks away that have this name in their scope, and say how many there were.
    ForceRelease(#[serde(with = "single")] Name),
    /// A question of a dashboard, over a connection that was opened as one.
    View(View),
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
