//! Owners of a client: handles, requests and locks, which keep it from ending.
//!
//! Every request and every lock counts as an owner. Threads that share one counter slow each other
//! down, so each shard has a counter of its own.

mod drain;
pub(crate) mod backend;

use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};
use std::task::{Poll, Waker};

use navlocks_core::{ClientId, Scope};

use self::backend::{AnyBackend, Member};
use self::drain::Drain;
use crate::backend::inbox::Inboxes;
use crate::backend::{SHARDS, Sender, shard_of};
use crate::sync::wakes::wake_all;
use crate::sync::{AtomicBool, AtomicU64};

/// A client, known to its lock space as long as it has an owner.
pub(crate) struct Client {
    pub(crate) backend: AnyBackend,
    /// Through a service, the serial of this id is the client's number in the session.
    pub(crate) id: ClientId,
    ended: AtomicBool,
    /// How many event streams it has.
    streams: AtomicU64,
    pub(crate) drain: Drain,
}

/// A client, and its owner for each shard of the lock space, from the first request there.
pub(crate) struct Owners {
    pub(crate) client: Arc<Client>,
    shards: [OnceLock<Arc<Owner>>; SHARDS],
}

/// The owner of a client for one shard.
///
/// Aligned apart from the count of its own owners, which every request and every lock changes.
#[repr(align(64))]
pub(crate) struct Owner {
    pub(crate) client: Arc<Client>,
    /// The backend of the client, copied to avoid a second load.
    pub(crate) backend: AnyBackend,
    pub(crate) sender: Sender,
}

impl Client {
    fn new((backend, id): Member) -> Arc<Self> {
        let (ended, streams) = (AtomicBool::new(false), AtomicU64::new(0));
        Arc::new(Self { backend, id, ended, streams, drain: Drain::default() })
    }

    /// Ends the client, and then its event streams.
    pub(crate) fn end(&self) {
        self.ended.store(true, Ordering::Release);
        self.backend.end_client(self.id);
        // A stream counts itself before it first locks the space: either it is counted here, or it
        // finds the client ended.
        if self.streams.load(Ordering::Acquire) > 0 {
            let wakers = |inboxes: &mut Inboxes| inboxes.take_wakers().collect::<Vec<_>>();
            let wakers = self.backend.inboxes(self.id, wakers);
            wake_all(wakers.into_iter().flatten());
        }
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Acquire)
    }

    pub(crate) fn add_stream(&self) {
        self.streams.fetch_add(1, Ordering::AcqRel);
    }

    pub(crate) fn remove_stream(&self) {
        self.streams.fetch_sub(1, Ordering::AcqRel);
    }

    /// Returns the id of the client in queries and events.
    pub(crate) fn shown_id(&self) -> ClientId {
        self.backend.shown_id(self.id)
    }

    /// Notes that a request or lock of this client is over.
    #[inline]
    pub(crate) fn note_over(&self) {
        // The backend's mutex orders this load: an end that a draining task has not seen there
        // comes after the flag was set.
        if self.drain.has_begun() {
            self.drain.wake();
        }
    }

    /// Returns whether no request of this client is live. Registers first, so that an end between
    /// the two is not missed.
    pub(crate) fn poll_drained(&self, waker: &Waker) -> Poll<()> {
        self.drain.register(waker);
        if self.backend.has_requests(self.id) { Poll::Pending } else { Poll::Ready(()) }
    }
}

impl Owners {
    pub(crate) fn new(member: Member) -> Arc<Self> {
        Self::of_client(Client::new(member))
    }

    pub(crate) fn of_client(client: Arc<Client>) -> Arc<Self> {
        Arc::new(Self { client, shards: Default::default() })
    }

    /// Returns the owner for a request of this scope.
    #[inline]
    pub(crate) fn of(&self, scope: &Scope) -> Arc<Owner> {
        let shard = shard_of(scope);
        let owner = || {
            let client = self.client.clone();
            let backend = client.backend.clone();
            let sender = Sender { client: client.id, shard };
            Arc::new(Owner { client, backend, sender })
        };
        self.shards[shard].get_or_init(owner).clone()
    }
}

impl Drop for Client {
    /// Locks and requests keep their client, so no lock is left to release.
    fn drop(&mut self) {
        self.backend.end_client(self.id);
        self.backend.forget_client(self.id);
    }
}
