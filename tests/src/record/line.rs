//! The lines of a record: what a client did and was told, and what the conductor did to whom.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::Moment;

/// The name of the conductor in its record.
pub const CONDUCTOR: &str = "conductor";
/// The name of the service, to which the conductor does things as well.
pub const SERVICE: &str = "service";

/// One line of a record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Line {
    /// When, in the sense that [`Step`] or [`Deed`] gives to it.
    pub at: Moment,
    /// The process that writes.
    pub who: Who,
    /// What it did or was told.
    pub what: What,
}

/// A process. Names are not used twice: who is started again after a kill is somebody else.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Who(pub Arc<str>);

impl From<&str> for Who {
    fn from(name: &str) -> Self {
        Self(name.into())
    }
}

impl fmt::Display for Who {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The number that a client gives to its request, once.
pub type RequestNo = u32;

/// What a line tells.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum What {
    /// A client made a step with one of its requests.
    Request(RequestNo, Step),
    /// The conductor did something to a process, or saw something of it.
    Deed(Who, Deed),
    /// The conductor will do nothing any more and has seen enough. The last line of its record.
    Over {
        /// So long it takes at most, on this machine and with these leases, until what one process
        /// sent or what became of it has had its effect on another. Nobody was disturbed for so
        /// long before this moment, if anybody was still waiting.
        patience: Duration,
        /// A lock outlasts the absence of its client and of the service if both together are absent
        /// for less than this. Zero if nothing is promised.
        #[serde(default)]
        endurance: Duration,
    },
}

/// A step in the life of a request, as its client sees it.
///
/// The moment of a step is read *before* the client acts and *after* it was told: whatever else
/// happened between the two readings, the client believed in its lock from [`Held`](Self::Held) to
/// the last [`Still`](Self::Still).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// It is about to ask.
    #[allow(missing_docs, reason = "the parts of a request")]
    Asked { names: Vec<Arc<str>>, mode: Mode, wait: Wait },
    /// It was told by a query that its request waits.
    Pending {
        /// It was about to query.
        since: Moment,
        /// What the service calls the request.
        id: Arc<str>,
    },
    /// It was told that it holds the lock.
    Held {
        /// The fencing token.
        token: u64,
        /// What the service calls the request.
        id: Arc<str>,
    },
    /// It was about to look, and did not find that the lock is lost.
    Still,
    /// It is about to release.
    Releasing,
    /// It has released, and was not told that there was nothing to release.
    Released,
    /// It was told that the lock is lost.
    Lost(Arc<str>),
    /// It has dropped the request before it heard of an outcome.
    Withdrawn,
    /// It was told that the lock is not available.
    Unavailable,
    /// It was told that its time is up.
    TimedOut,
    /// It was told that the request failed otherwise.
    Failed(Arc<str>),
    /// It was told that the names were force-released.
    Forced,
}

/// Shared or exclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "the two modes")]
pub enum Mode {
    Exclusive,
    Shared,
}

impl From<navlocks_core::Mode> for Mode {
    fn from(mode: navlocks_core::Mode) -> Self {
        match mode {
            navlocks_core::Mode::Exclusive => Self::Exclusive,
            navlocks_core::Mode::Shared => Self::Shared,
        }
    }
}

/// How a request waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Wait {
    /// For its turn.
    Queue,
    /// For its turn, but not longer.
    AtMost(Duration),
    /// Not at all.
    IfAvailable,
    /// Before all others who wait.
    Overtake,
    /// Not at all: it takes the lock away from whoever holds it.
    Steal,
    /// Not at all, and it wants no lock: it takes the names away from whoever holds them.
    Force,
}

/// What the conductor did to a process, or saw of it. The moment is read before in the *-ing*
/// forms, after in the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Deed {
    /// It was started.
    Started,
    /// It is about to be killed.
    Killing,
    /// It was killed and is gone.
    Killed,
    /// It is about to be stopped.
    Stopping,
    /// It was told to go on.
    Continued,
    /// It ended by itself, and well.
    Finished,
    /// It ended by itself, and not well.
    Failed,
    /// It answered the conductor. Of the service.
    Answered,
}
