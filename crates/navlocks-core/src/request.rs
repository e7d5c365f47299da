//! Requests: scope, mode and wait, and how they are answered.

use core::fmt;

use crate::limit::Allowance;
use crate::{FencingToken, Limit, Scope};

/// How a lock is shared with others on the same names: its limit, with a word for the two limits of
/// the standard.
///
/// <https://w3c.github.io/web-locks/#modes-scheduling>
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Mode {
    /// Excludes every other lock on the same names: a limit of 1. The default.
    #[default]
    Exclusive,
    /// Held beside other shared locks: no limit.
    Shared,
    /// Held while the holders of each name, itself included, are no more than its limit: a
    /// semaphore.
    Limited(Limit),
}

impl Mode {
    /// Returns the mode of requests that allow so many holders of a name, themselves included.
    ///
    /// # Errors
    ///
    /// The number is 0 or above [`Limit::MAX`].
    pub const fn limited(holders: u32) -> Result<Self, BadLimit> {
        match holders {
            1 => Ok(Self::Exclusive),
            _ => match Limit::new(holders) {
                Some(limit) => Ok(Self::Limited(limit)),
                None => Err(BadLimit(holders)),
            },
        }
    }

    /// Returns the limit, if there is one.
    #[inline]
    pub const fn limit(self) -> Option<u32> {
        match self {
            Self::Exclusive => Some(1),
            Self::Shared => None,
            Self::Limited(limit) => Some(limit.get()),
        }
    }

    /// Returns true if a lock of this mode can be [downgraded](crate::LockManager::downgrade) to
    /// the other: that one allows as many holders, or more.
    #[inline]
    pub fn downgrades_to(self, other: Self) -> bool {
        Allowance::from(other) >= Allowance::from(self)
    }

    /// Returns the mode of one request that stands for all of these in an engine that knows only a
    /// part of the holders of a name: shared if all are, and exclusive if one has a limit, because
    /// such an engine cannot count the holders.
    ///
    /// ```
    /// use navlocks_core::Mode;
    ///
    /// let limited = Mode::limited(4)?;
    /// assert_eq!(Mode::standing_for([Mode::Shared, Mode::Shared]), Mode::Shared);
    /// assert_eq!(Mode::standing_for([Mode::Shared, limited]), Mode::Exclusive);
    /// # Ok::<(), navlocks_core::BadLimit>(())
    /// ```
    pub fn standing_for(modes: impl IntoIterator<Item = Self>) -> Self {
        let limited = modes.into_iter().any(|mode| mode.limit().is_some());
        if limited { Self::Exclusive } else { Self::Shared }
    }
}

impl From<Mode> for Allowance {
    fn from(mode: Mode) -> Self {
        Self::new(mode.limit())
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exclusive => f.write_str("exclusive"),
            Self::Shared => f.write_str("shared"),
            Self::Limited(limit) => write!(f, "limit {limit}"),
        }
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

/// The number is no limit of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadLimit(pub u32);

impl fmt::Display for BadLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (limit, max) = (self.0, Limit::MAX);
        write!(f, "{limit} is no limit of a lock: pass a number of holders from 1 to {max}")
    }
}

impl core::error::Error for BadLimit {}

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
    /// Exclusive, shared, or shared up to a limit.
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

    /// Returns the same request with another mode.
    #[inline]
    #[must_use]
    pub fn mode(self, mode: Mode) -> Self {
        Self { mode, ..self }
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

/// Why a lock was not downgraded. Nothing has changed then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DowngradeError {
    /// The request holds no lock: it is pending, was released, or was lost.
    NotHeld,
    /// The new mode allows fewer holders. Two holders that upgrade would wait for each other.
    Upgrade,
}

impl fmt::Display for DowngradeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotHeld => "the request holds no lock, so there is nothing to downgrade",
            Self::Upgrade => {
                "a lock cannot be upgraded, because two holders that upgrade would wait for each \
                 other: release it, then request the stricter one"
            }
        })
    }
}

impl core::error::Error for DowngradeError {}

/// Why the engine refused a request. Nothing has changed then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestError {
    /// The client was terminated, or belongs to another manager.
    UnknownClient,
    /// The client is suspended; resume it first.
    ClientSuspended,
    /// [`Wait::Overtake`] is for shared requests; one with a limit would starve all others.
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
