//! Snapshot the lock state.

use alloc::vec::Vec;

use crate::id::Index;
use crate::manager::LockManager;
use crate::{ClientId, FencingToken, Mode, RequestId, Scope};

/// All locks and requests of a manager at one moment. A copy: later changes do not show in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Snapshot {
    /// The locks held, in the order in which they were granted.
    pub held: Vec<LockInfo>,
    /// The requests pending, in the order in which they stand in the queue.
    pub pending: Vec<LockInfo>,
}

/// One lock or request in a [`Snapshot`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LockInfo {
    /// The request, and once granted the lock.
    pub request: RequestId,
    /// Whose it is.
    pub client: ClientId,
    /// The names it asks for.
    pub scope: Scope,
    /// Shared or exclusive.
    pub mode: Mode,
    /// Its fencing token; none while it is pending.
    pub token: Option<FencingToken>,
}

/// Where a request is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It waits for its turn.
    Pending,
    /// It holds its lock, under this token.
    Held(FencingToken),
}

impl LockManager {
    /// The locks held and requests pending now. Disturbs nobody, unlike a client's [`query`](Self::query).
    pub fn snapshot(&self) -> Snapshot {
        self.snapshot_the_lock_state()
    }

    /// Where a request is in its life; `None` when that is over.
    #[inline]
    pub fn state(&self, request: RequestId) -> Option<State> {
        self.entries.find(request).map(|entry| self.state_of(entry))
    }

    /// What a snapshot says of this one request; `None` when its life is over.
    pub fn info(&self, request: RequestId) -> Option<LockInfo> {
        self.entries.find(request).map(|entry| self.lock_info(entry))
    }

    /// All that a client holds and waits for, in order of arrival.
    pub fn requests_of(&self, client: ClientId) -> impl Iterator<Item = RequestId> + '_ {
        let entries =
            self.clients.find(client).into_iter().flat_map(|index| self.entries_of(index));
        entries.map(|entry| self.entries.id(entry))
    }

    #[inline]
    fn state_of(&self, entry: Index) -> State {
        match self.entries[entry].life.token {
            0 => State::Pending,
            token => State::Held(FencingToken::new(token)),
        }
    }

    /// <https://w3c.github.io/web-locks/#snapshot-the-lock-state>
    fn snapshot_the_lock_state(&self) -> Snapshot {
        let clients = self.clients.iter().map(|(client, _)| client);
        let mut entries: Vec<Index> = Vec::with_capacity(self.live);
        entries.extend(clients.flat_map(|client| self.entries_of(client)));
        self.sort(&mut entries);
        let (held, pending) = entries.split_at(self.held);
        let info = |&entry: &Index| self.lock_info(entry);
        Snapshot {
            // Steps 2 and 3. For each request of each queue, append its name, mode and client to pending.
            pending: pending.iter().map(info).collect(),
            // Steps 4 and 5. For each lock of the held lock set, append the same to held.
            held: held.iter().map(info).collect(),
        }
        // Step 6 is the embedder's: resolve promise with both.
    }

    pub(crate) fn lock_info(&self, entry: Index) -> LockInfo {
        let slot = &self.entries[entry];
        let token = match self.state_of(entry) {
            State::Held(token) => Some(token),
            State::Pending => None,
        };
        LockInfo {
            request: self.entries.id(entry),
            client: self.clients.id(slot.life.client),
            scope: self.scope_of(entry),
            mode: slot.seat.mode,
            token,
        }
    }

    /// The names an entry has seats for. They were taken from a scope, in its order.
    pub(crate) fn scope_of(&self, entry: Index) -> Scope {
        let name = |seat: Index| &self.queues[self.entries[seat].seat.queue].name;
        let rest = self.entries.seats(entry).skip(1).map(name);
        Scope::of_sorted(name(entry), rest)
    }
}
