//! Descriptions of requests and locks, in answers to questions and in events.

use std::fmt;

use navlocks_core::{Mode, Name};
use serde::{Deserialize, Serialize};

use super::id::{ClientKey, RequestKey};
use super::name::{Names, optional};
use super::trace::TraceParent;

/// A held lock or a pending request, in an answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Info {
    /// The request and its client.
    pub about: About,
    /// Its fencing token, once it is held.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<u64>,
    /// How long it has been held or pending, in milliseconds.
    pub ms: u64,
    /// For how many milliseconds it may still be held, if its hold has a maximum.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_ms: Option<u64>,
    /// The held request within which it was made, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub within: Option<RequestKey>,
    /// Its process, or the command of its `navlocks run`, is stopped, as by Ctrl-Z.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stopped: bool,
}

/// The facts about a request that every answer and event repeats.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct About {
    /// The request, and once granted the lock.
    pub request: RequestKey,
    /// The client of the request.
    pub client: ClientKey,
    /// The names of the request.
    pub names: Names,
    /// Exclusive, shared, or shared up to a limit.
    #[serde(default, with = "mode", skip_serializing_if = "mode::is_exclusive")]
    pub mode: Mode,
    /// The tag of the request.
    #[serde(default, with = "optional", skip_serializing_if = "Option::is_none")]
    pub tag: Option<Name>,
    /// The trace that the request belongs to.
    #[serde(
        default,
        deserialize_with = "super::trace::lenient",
        skip_serializing_if = "Option::is_none"
    )]
    pub traceparent: Option<TraceParent>,
    /// The process of the client, where the service knows it: over a Unix socket.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// Otherwise the process as the client described it in its hello.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<Box<str>>,
}

/// A change of a request in a lock space.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestEvent {
    /// The subscriber, by its client number in its own session.
    pub client: u64,
    /// The request.
    pub about: About,
    /// The kind of the event.
    pub what: What,
}

/// The kinds of events of a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum What {
    /// The request was made.
    Requested,
    /// The request holds its lock, with this fencing token.
    Granted(u64),
    /// The request wanted the lock only if available, and it is not.
    Unavailable,
    /// The holder gave the lock the mode that this event has.
    Downgraded,
    /// The client released the lock.
    Released,
    /// The client aborted the pending request, or it was refused for a deadlock.
    Withdrawn,
    /// The pending request was aborted, not by its client.
    Aborted(LossCause),
    /// The lock was lost.
    Lost(LossCause),
    /// The request is pending, and closes a cycle.
    Deadlock(Cycle),
}

/// Why a lock was lost, or a pending request aborted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LossCause {
    /// This request stole it.
    Stolen(RequestKey),
    /// A name of its scope was force-released.
    ForceReleased,
    /// It was held for as long as its request allowed.
    HeldTooLong,
    /// Its client was suspended and another client needed the lock.
    Evicted,
    /// Its client was suspended, under the policy that releases at once.
    Suspended,
    /// Its client ended, or was lost.
    ClientEnded,
    /// The service was restarted, and its claim contradicts the registry.
    NotReclaimed,
}

impl fmt::Display for LossCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stolen(by) => write!(f, "stolen by {by}"),
            Self::ForceReleased => f.write_str("force-released"),
            Self::HeldTooLong => f.write_str("held-too-long"),
            Self::Evicted => f.write_str("evicted"),
            Self::Suspended => f.write_str("suspended"),
            Self::ClientEnded => f.write_str("client-ended"),
            Self::NotReclaimed => f.write_str("not-reclaimed"),
        }
    }
}

/// A session of an earlier service whose client has not come back yet. The names of its requests
/// are held back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct UnclaimedSession {
    /// Its number.
    pub session: u32,
    /// Its process, where the earlier service knew it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// How long the service waits for it at most; missing if it waits for the end of its process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_ms: Option<u64>,
    /// How many locks it held.
    pub held: u64,
}

/// Requests that wait for each other.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cycle {
    /// The clients.
    pub clients: Vec<ClientKey>,
    /// The requests, held and pending, that make the cycle.
    pub requests: Vec<RequestKey>,
    /// The lock that waits for itself, if the cycle is of that holder alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outer: Option<RequestKey>,
    /// The cycle is one only because requests share a client.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub possible: bool,
}

/// Modes by their names in the standard, or a limit; exclusive is the default.
pub mod mode {
    use navlocks_core::Mode;
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    enum Word {
        Exclusive,
        Shared,
        Limit(u32),
    }

    /// Returns true for the default.
    #[allow(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
    pub fn is_exclusive(mode: &Mode) -> bool {
        *mode == Mode::Exclusive
    }

    /// Writes it.
    #[allow(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
    pub fn serialize<S: Serializer>(mode: &Mode, serializer: S) -> Result<S::Ok, S::Error> {
        match mode {
            Mode::Exclusive => Word::Exclusive,
            Mode::Shared => Word::Shared,
            Mode::Limited(limit) => Word::Limit(limit.get()),
        }
        .serialize(serializer)
    }

    /// Reads it.
    pub fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Mode, D::Error> {
        Ok(match Word::deserialize(d)? {
            Word::Exclusive => Mode::Exclusive,
            Word::Shared => Mode::Shared,
            Word::Limit(holders) => Mode::limited(holders).map_err(D::Error::custom)?,
        })
    }
}
