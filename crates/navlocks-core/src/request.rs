//! Requests: scope, mode and wait, and how they are answered.

use core::fmt;

use crate::{FencingToken, Scope};

/// How a lock is shared with others on the same names.
///
/// <https://w3c.github.io/web-locks/#modes-scheduling>
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Mode {
    /// Excludes every other lock on the same names. The default.
    #[default]
    Exclusive,
    /// Held beside other shared locks.
    Shared,
}

impl Mode {
    /// Returns true if two entries with a name in common and these modes exclude each other.
    #[inline]
    pub fn conflicts_with(self, other: Self) -> bool {
        self == Self::Exclusive || other == Self::Exclusive
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Exclusive => "exclusive",
            Self::Shared => "shared",
        })
    }
}

/// The behaviour of a request that cannot be granted at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Wait {
    /// Waits for its turn. The default.
    #[default]
    Queue,
    /// Gets the answer [`Unavailable`](Answer::Unavailable) and leaves no trace.
    IfAvailable,
    /// Takes away every held lock whose scope intersects, whatever its mode, and goes before all
    /// pending requests: always granted at once. The queue keeps its order behind it.
    Steal,
    /// The older steal of 2017: as [`Steal`](Self::Steal), and every pending request whose scope
    /// intersects is aborted as well.
    StealAll,
    /// Waits before all pending requests instead of behind them: a reader that does not queue
    /// behind waiting writers. For shared requests only.
    Overtake,
}

/// A request for a lock, as it enters the engine.
///
/// ```
/// use navlocks_core::{Request, Wait};
///
/// let report = Request::shared(["orders", "stock"]).wait(Wait::IfAvailable);
/// # let _ = report;
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The names of the request, granted all at once.
    pub scope: Scope,
    /// Shared or exclusive.
    pub mode: Mode,
    /// The behaviour if it cannot be granted at once.
    pub wait: Wait,
}

impl Request {
    /// Makes a request for an exclusive lock that waits for its turn.
    #[inline]
    pub fn exclusive(scope: impl Into<Scope>) -> Self {
        Self { scope: scope.into(), mode: Mode::Exclusive, wait: Wait::Queue }
    }

    /// Makes a request for a shared lock that waits for its turn.
    #[inline]
    pub fn shared(scope: impl Into<Scope>) -> Self {
        Self { scope: scope.into(), mode: Mode::Shared, wait: Wait::Queue }
    }

    /// Returns the same request with another way to wait.
    #[inline]
    #[must_use]
    pub fn wait(self, wait: Wait) -> Self {
        Self { wait, ..self }
    }
}

/// The outcome of a request at the moment it was made, from
/// [`LockManager::request`](crate::LockManager::request).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The request holds its lock.
    Granted(FencingToken),
    /// The request wanted the lock only if available, and it is not. Nothing of it is left.
    Unavailable,
    /// The request waits; an event will end its wait.
    Pending,
}

/// Why the engine refused a request. Nothing has changed then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestError {
    /// The client was terminated, or belongs to another manager.
    UnknownClient,
    /// The client is suspended; resume it first.
    ClientSuspended,
    /// [`Wait::Overtake`] is for shared requests; an exclusive one would starve all others.
    ExclusiveOvertake,
}

impl fmt::Display for RequestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::UnknownClient => {
                "the client is not known here: it was terminated or belongs to another lock manager"
            }
            Self::ClientSuspended => {
                "the client is suspended and cannot request locks: resume it first"
            }
            Self::ExclusiveOvertake => "only a shared request can overtake the queue",
        })
    }
}

impl core::error::Error for RequestError {}
