//! The lines of a record: steps of clients, and acts of the conductor.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::Moment;

/// The name of the conductor in its record.
pub const CONDUCTOR: &str = "conductor";
/// The name of the service, on which the conductor acts as well.
pub const SERVICE: &str = "service";

/// One line of a record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Line {
    /// The time, in the sense that [`Step`] or [`Deed`] defines.
    pub at: Moment,
    /// The process that writes.
    pub who: Who,
    /// The step or the act.
    pub what: What,
}

/// A process. Names are unique: a process that replaces a killed one has another name.
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

/// The content of a line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum What {
    /// A client made a step with one of its requests.
    Request(RequestNo, Step),
    /// The conductor acted on a process, or observed it.
    Deed(Who, Deed),
    /// The conductor acts no more and has seen enough. The last line of its record.
    Over {
        /// The longest time, with these leases, until a message or the end of a process has had its
        /// effect on another. No process was disturbed for this long before this moment, if a
        /// request was still pending.
        patience: Duration,
        /// A lock outlasts the absence of its client and of the service if both together are absent
        /// for less than this. Zero if nothing is promised.
        #[serde(default)]
        endurance: Duration,
    },
}

/// A step of a request, as its client sees it.
///
/// The time of a step is read *before* the client acts and *after* it receives: between the two
/// readings, the client took its lock for held from [`Held`](Self::Held) to the last
/// [`Still`](Self::Still).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// It is about to request.
    #[allow(missing_docs, reason = "the parts of a request")]
    Asked { names: Vec<Arc<str>>, mode: Mode, wait: Wait },
    /// A query showed that its request is pending.
    Pending {
        /// It was about to query.
        since: Moment,
        /// The id of the request at the service.
        id: Arc<str>,
    },
    /// It received the grant.
    Held {
        /// The fencing token.
        token: u64,
        /// The id of the request at the service.
        id: Arc<str>,
    },
    /// It was about to check, and found no loss.
    Still,
    /// It is about to release.
    Releasing,
    /// It has released, and received no error.
    Released,
    /// It received the loss.
    Lost(Arc<str>),
    /// It has dropped the request before it received an outcome.
    Withdrawn,
    /// It received that the lock is not available.
    Unavailable,
    /// It received the timeout.
    TimedOut,
    /// It received another failure.
    Failed(Arc<str>),
    /// It received that the names were force-released.
    Forced,
}

/// Exclusive, shared, or shared up to a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "the three modes")]
pub enum Mode {
    Exclusive,
    Shared,
    Limited(u32),
}

impl From<navlocks_core::Mode> for Mode {
    fn from(mode: navlocks_core::Mode) -> Self {
        match mode {
            navlocks_core::Mode::Exclusive => Self::Exclusive,
            navlocks_core::Mode::Shared => Self::Shared,
            navlocks_core::Mode::Limited(limit) => Self::Limited(limit.get()),
        }
    }
}

impl From<Mode> for navlocks_core::Mode {
    fn from(mode: Mode) -> Self {
        match mode {
            Mode::Exclusive => Self::Exclusive,
            Mode::Shared => Self::Shared,
            Mode::Limited(limit) => Self::limited(limit).expect("it was a limit of a request"),
        }
    }
}

/// The wait of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Wait {
    /// Waits for its turn.
    Queue,
    /// Waits for its turn, at most for this time.
    AtMost(Duration),
    /// Does not wait.
    IfAvailable,
    /// Waits before all other waiters.
    Overtake,
    /// Does not wait: it takes the lock away from its holders.
    Steal,
    /// Requests no lock: it force-releases the names.
    Force,
}

/// An act of the conductor on a process, or an observation. The time is read before in the *-ing*
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
    /// It was continued.
    Continued,
    /// It ended by itself, with success.
    Finished,
    /// It ended by itself, with a failure.
    Failed,
    /// It answered the conductor. For the service.
    Answered,
}
