//! What is told about requests and locks: in answers to questions, and as events.

use navlocks_core::Mode;
use serde::{Deserialize, Serialize};

use super::id::{ClientKey, RequestKey};
use super::name::Names;

/// A lock that is held or a request that waits, in an answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Info {
    /// Which, and whose.
    pub about: About,
    /// Its fencing token, once it is held.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<u64>,
    /// For how long it has been held or has waited, in milliseconds.
    pub ms: u64,
}

/// What every answer and event says of a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct About {
    /// The request, and once granted the lock.
    pub request: RequestKey,
    /// Whose it is.
    pub client: ClientKey,
    /// The names it asks for.
    pub names: Names,
    /// Shared or exclusive.
    #[serde(default, with = "mode", skip_serializing_if = "mode::is_exclusive")]
    pub mode: Mode,
    /// The text that came with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tag: Option<Box<str>>,
    /// The process that asks, where the service knows it: over a Unix socket.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
}

/// Something that happened in a lock space.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// The client that listens, by its number in its own session.
    pub client: u64,
    /// To which request.
    pub about: About,
    /// What.
    pub what: What,
}

/// What happened to a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum What {
    /// It was made.
    Requested,
    /// It holds its lock, with this fencing token.
    Granted(u64),
    /// It wanted the lock only if available, which it is not.
    Unavailable,
    /// Its lock was released by its holder.
    Released,
    /// It was given up by its owner while it waited, or refused for a deadlock.
    Withdrawn,
    /// It was thrown out of the queue by somebody else.
    Aborted(Cause),
    /// Its lock was taken away.
    Lost(Cause),
    /// It waits, and thereby closes a cycle.
    Deadlock(Cycle),
}

/// Why a lock was taken away, or a request thrown out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cause {
    /// By this request.
    Stolen(RequestKey),
    /// Somebody force-released a name of its scope.
    ForceReleased,
    /// Its client was suspended and somebody else needed the lock.
    Evicted,
    /// Its client was suspended, under the policy that releases at once.
    Suspended,
    /// Its client ended, or was lost.
    ClientEnded,
    /// The service was started again, and its claim cannot be right.
    NotReclaimed,
}

/// A session of an earlier service whose client has not come back yet. The names of its requests
/// are held back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Unclaimed {
    /// Its number.
    pub session: u32,
    /// Its process, where the earlier service knew it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// For how long the service waits for it at most; missing if until its process ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_ms: Option<u64>,
    /// How many locks it held.
    pub held: u64,
}

/// Clients that wait for each other.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cycle {
    /// The clients.
    pub clients: Vec<ClientKey>,
    /// The requests, held and pending, that make the cycle.
    pub requests: Vec<RequestKey>,
}

/// Modes by their names in the standard; exclusive is the default.
pub(super) mod mode {
    use navlocks_core::Mode;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    enum Word {
        Exclusive,
        Shared,
    }

    #[allow(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
    pub(crate) fn is_exclusive(mode: &Mode) -> bool {
        *mode == Mode::Exclusive
    }

    #[allow(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
    pub(crate) fn serialize<S: Serializer>(mode: &Mode, serializer: S) -> Result<S::Ok, S::Error> {
        match mode {
            Mode::Exclusive => Word::Exclusive,
            Mode::Shared => Word::Shared,
        }
        .serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Mode, D::Error> {
        Ok(match Word::deserialize(d)? {
            Word::Exclusive => Mode::Exclusive,
            Word::Shared => Mode::Shared,
        })
    }
}
