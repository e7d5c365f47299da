//! Snapshot the lock state.

use alloc::vec::Vec;

use super::LockManager;
use crate::id::Index;
use crate::{ClientId, FencingToken, Mode, RequestId, Scope};

/// All locks and requests of a manager at one moment, as a copy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Snapshot {
    /// The locks held, in the order in which they were granted.
    pub held: Vec<RequestInfo>,
    /// The requests pending, in the order in which they stand in the queue.
    pub pending: Vec<RequestInfo>,
}

/// One lock or request in a [`Snapshot`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RequestInfo {
    /// The request, and once granted the lock.
    pub request: RequestId,
    /// The client of the request.
    pub client: ClientId,
    /// The names it asks for.
    pub scope: Scope,
    /// Exclusive, shared, or shared up to a limit.
    pub mode: Mode,
    /// Its fencing token; none while it is pending.
    pub token: Option<FencingToken>,
    /// The held lock [within](LockManager::nest) which it was requested.
    pub within: Option<RequestId>,
}

/// The state of a live request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It waits for its turn.
    Pending,
    /// It holds its lock, under this token.
    Held(FencingToken),
}

impl LockManager {
    /// Returns the locks held and requests pending now. Changes nothing, unlike a client's
    /// [`query`](Self::query).
    pub fn snapshot(&self) -> Snapshot {
        self.snapshot_the_lock_state()
    }

    /// Returns the state of a request; `None` when it is over.
    #[inline]
    pub fn state(&self, request: RequestId) -> Option<State> {
        self.seating.find(request).map(|entry| self.state_of(entry))
    }

    /// Returns what a snapshot says of this one request; `None` when it is over.
    pub fn info(&self, request: RequestId) -> Option<RequestInfo> {
        self.seating.find(request).map(|entry| self.lock_info(entry))
    }

    /// Returns the requests of a client, held and pending, in order of arrival.
    pub fn requests_of(&self, client: ClientId) -> impl Iterator<Item = RequestId> + '_ {
        let entries =
            self.clients.find(client).into_iter().flat_map(|index| self.entries_of(index));
        entries.map(|entry| self.seating.id(entry))
    }

    #[inline]
    fn state_of(&self, entry: Index) -> State {
        match self.seating.life(entry).token {
            0 => State::Pending,
            token => State::Held(FencingToken::new(token)),
        }
    }

    /// <https://w3c.github.io/web-locks/#snapshot-the-lock-state>
    fn snapshot_the_lock_state(&self) -> Snapshot {
        let mut entries: Vec<Index> = Vec::with_capacity(self.seating.live());
        entries.extend(self.clients.all_entries(&self.seating));
        self.seating.sort(&mut entries);
        let (held, pending) = entries.split_at(self.seating.held());
        let info = |&entry: &Index| self.lock_info(entry);
        Snapshot {
            // Steps 2 and 3. For each request of each queue, append its name, mode and client to
            // pending.
            pending: pending.iter().map(info).collect(),
            // Steps 4 and 5. For each lock of the held lock set, append the same to held.
            held: held.iter().map(info).collect(),
        }
        // Step 6 is the embedder's: resolve promise with both.
    }

    pub(super) fn lock_info(&self, entry: Index) -> RequestInfo {
        let token = match self.state_of(entry) {
            State::Held(token) => Some(token),
            State::Pending => None,
        };
        RequestInfo {
            request: self.seating.id(entry),
            client: self.clients.id(self.owner(entry)),
            scope: self.seating.scope(entry),
            mode: self.seating.mode(entry),
            token,
            within: self.outer_of(self.seating.id(entry)),
        }
    }
}
