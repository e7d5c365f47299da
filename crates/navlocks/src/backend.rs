//! The seam: what every backend does, and the plain data that goes through it.
//!
//! ```text
//!   Locks, Request, Lock, Events       what a program sees: guards and futures
//!        │  Sender, Request, RequestId     ▲  Answer, Grant, Loss, wakers
//!        ▼                                 │
//!   dyn Backend ─┬─ local/                 engines behind mutexes, in this process
//!                └─ remote/                a session with a service
//! ```

pub(crate) mod extras;
pub(crate) mod inbox;

use std::fmt::Debug;
use std::future::Future;
use std::pin::Pin;
use std::task::{Poll, Waker};

use navlocks_core::{
    Blockers, ClientId, Explained, FencingToken, LockManager, Mode, Name, Request, RequestId, Scope,
};

use self::extras::Extras;
use self::inbox::Inboxes;
use crate::connection::Connection;
use crate::error::{DowngradeError, LossCause, QueryError, RequestErrorKind};
use crate::query::{PartitionSnapshot, Place, Snapshot, Waits};

/// A lock space, as its clients use it. No method blocks; wakers run after unlocking.
pub(crate) trait Backend: Debug + Send + Sync {
    /// Requests a lock. If the request has to wait, wakes `waker` once it is decided.
    fn request(
        &self,
        sender: &Sender,
        request: &Request,
        extras: Option<&Extras>,
        waker: &Waker,
    ) -> Answer;

    /// Returns the outcome of a request. While it is pending, wakes `waker` once it is decided.
    fn poll_request(&self, id: RequestId, waker: &Waker) -> Answer;

    /// Aborts a pending request, or releases its lock if its future did not receive the grant.
    fn abandon(&self, id: RequestId);

    /// Aborts a request whose timeout is over. Returns false when it was decided before.
    fn time_out(&self, id: RequestId) -> bool;

    /// Releases a lock, or returns how it was lost.
    fn release(&self, id: RequestId) -> Result<(), LossCause>;

    /// Gives a lock a mode that allows more holders, in place. Returns false if
    /// [`Watched::Downgrade`] comes when that is done.
    fn downgrade(&self, id: RequestId, mode: Mode) -> Result<bool, DowngradeError>;

    /// Returns how many locks were lost here: while it does not change, no holder has lost its
    /// lock.
    fn losses(&self) -> u64;

    /// Returns how a lock was lost. The answer stays the same until its guard is dropped.
    fn loss(&self, id: RequestId) -> Option<LossCause>;

    /// Returns whether the watched event has come, or the guard is gone; if not, wakes `waker` when
    /// that may be so. The first call writes the number of the watch to `watch`.
    fn poll_watch(
        &self,
        id: RequestId,
        watched: Watched,
        watch: &mut Option<u64>,
        waker: &Waker,
    ) -> Poll<Result<(), LossCause>>;

    /// Ends a watch.
    fn unwatch(&self, id: RequestId, watch: u64);

    /// Ends a client and all its requests.
    fn end_client(&self, client: ClientId);

    /// Returns true if a request of the client is pending or held.
    fn has_requests(&self, client: ClientId) -> bool;

    /// Forgets an ended client that has no user any more.
    fn forget_client(&self, _client: ClientId) {}

    /// Returns the id of a client in queries and events.
    fn shown_id(&self, client: ClientId) -> ClientId {
        client
    }

    /// Returns the id of a pending request in queries and events.
    fn shown_request(&self, id: RequestId) -> RequestId {
        id
    }

    /// Runs `work` on the event inboxes of a client, unless no event will come any more.
    fn with_inboxes(&self, client: ClientId, work: &mut dyn FnMut(&mut Inboxes));

    /// Ends the connection of all clients, if there is one.
    fn leave(&self) {}

    /// Returns whether the connection has ended; if not, wakes `waker` when it has.
    fn poll_left(&self, _waker: &Waker) -> Poll<()> {
        Poll::Ready(())
    }

    /// Returns the way in which this thread may block until there is an answer.
    fn blocking(&self) -> Blocking {
        Blocking::Free
    }

    /// Returns the state of the connection, and how often it has changed.
    fn connection(&self) -> (Connection, u64) {
        (Connection::InProcess, 0)
    }

    /// Wakes `waker` when the state of the connection has changed more often than `changes`.
    fn watch_connection(&self, _changes: u64, _waker: &Waker) {}

    /// Returns a copy of the socket by which a service knows that the session is alive.
    #[cfg(feature = "client")]
    fn liveness_fd(&self) -> Option<std::os::fd::OwnedFd> {
        None
    }

    /// Returns for how long no other client can be granted what is held here, if a lease says so.
    #[cfg(feature = "client")]
    fn lease_left(&self) -> Option<std::time::Duration> {
        None
    }

    /// Returns the sessions of an earlier service that the service still waits for.
    #[cfg(feature = "client")]
    fn unclaimed_sessions(
        &self,
        _client: ClientId,
    ) -> Reply<'_, Vec<crate::query::UnclaimedSession>> {
        Box::pin(async { Ok(Vec::new()) })
    }

    fn query(&self, client: ClientId) -> Reply<'_, Snapshot>;
    fn place(&self, client: ClientId) -> Reply<'_, Option<Place>>;
    fn place_of(&self, client: ClientId, request: RequestId) -> Reply<'_, Option<Place>>;
    fn query_all(&self, client: ClientId) -> Reply<'_, Vec<PartitionSnapshot>>;
    fn blockers(&self, client: ClientId, request: RequestId) -> Reply<'_, Blockers>;
    fn is_contended(&self, client: ClientId, lock: RequestId) -> Reply<'_, bool>;
    fn waits(&self, client: ClientId, explained: Explained) -> Reply<'_, Waits>;
    fn force_release(&self, client: ClientId, name: Name) -> Reply<'_, usize>;
}

/// The answer to a question of a client.
pub(crate) type Reply<'a, T> = Pin<Box<dyn Future<Output = Result<T, QueryError>> + Send + 'a>>;

impl dyn Backend {
    /// Runs `work` on the event inboxes of a client. Returns none when no event will come any more.
    pub(crate) fn inboxes<T>(
        &self,
        client: ClientId,
        work: impl FnOnce(&mut Inboxes) -> T,
    ) -> Option<T> {
        let (mut work, mut result) = (Some(work), None);
        self.with_inboxes(client, &mut |inboxes| {
            result = work.take().map(|work| work(inboxes));
        });
        result
    }
}

/// The client of a request, and the [shard](shard_of) of its scope.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sender {
    pub(crate) client: ClientId,
    pub(crate) shard: usize,
}

/// The outcome of a request at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    Granted(Grant),
    Unavailable,
    Pending(RequestId),
    Failed(RequestErrorKind),
}

/// A lock as it is granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Grant {
    pub(crate) id: RequestId,
    pub(crate) token: FencingToken,
    /// The [losses](Backend::losses) until then; [`OVER`](Self::OVER) once the lock is released.
    pub(crate) losses: u64,
}

impl Grant {
    /// Larger than every count of losses.
    pub(crate) const OVER: u64 = u64::MAX;
}

/// The way in which a thread may block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(not(feature = "client"), allow(dead_code, reason = "nothing else is awaited here"))]
pub(crate) enum Blocking {
    /// The thread delays nothing that it waits for.
    Free,
    /// The thread is a worker of a runtime, and another worker must take over its tasks.
    InPlace,
    /// The thread is the only one that runs the task of the connection.
    Forbidden,
}

/// An event that a holder can wait for. A loss ends every kind of wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Watched {
    Loss,
    Contention,
    /// The lock has the mode that its holder has asked for.
    Downgrade,
}

/// The number of shards of a lock space. Two under the model checker, so that it terminates.
pub(crate) const SHARDS: usize = if cfg!(loom) { 2 } else { 8 };

/// Returns the first shard that a request of this scope uses, below [`SHARDS`].
#[inline]
pub(crate) fn shard_of(scope: &Scope) -> usize {
    match scope.names() {
        [name] => LockManager::shard_of::<SHARDS>(name),
        _ => 0,
    }
}
