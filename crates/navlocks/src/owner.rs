//! Who keeps a client: those who can ask for it, its requests and its locks.
//!
//! Every request and every lock counts itself. Threads that count at one place wait for each other, so each part of a lock
//! space has a place of its own to count at.

use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};
use std::task::Waker;

use navlocks_core::{ClientId, Scope};

use crate::home::Home;
use crate::space::PARTS;
use crate::subscribers::Inboxes;
use crate::sync::{AtomicBool, AtomicU64};

/// A client, known to its space as long as anybody can act for it.
pub(crate) struct Client {
    pub(crate) home: Home,
    /// At a service, only the number in the session counts.
    pub(crate) id: ClientId,
    ended: AtomicBool,
    /// How many event streams it has.
    streams: AtomicU64,
}

/// A client, and who owns it for each part of its space, from the first request there.
pub(crate) struct Owners {
    pub(crate) client: Arc<Client>,
    parts: [OnceLock<Arc<Owner>>; PARTS],
}

/// Whoever owns a client for one part of its space.
///
/// Apart in memory from the count of those, which every request and every lock changes.
#[repr(align(64))]
pub(crate) struct Owner {
    pub(crate) client: Arc<Client>,
    pub(crate) part: usize,
    /// As the client has them, at hand.
    pub(crate) home: Home,
    pub(crate) id: ClientId,
}

impl Client {
    pub(crate) fn new(home: Home, id: ClientId) -> Arc<Self> {
        let (ended, streams) = (AtomicBool::new(false), AtomicU64::new(0));
        Arc::new(Self { home, id, ended, streams })
    }

    /// Ends the client, and then its event streams.
    pub(crate) fn end(&self) {
        self.ended.store(true, Ordering::Release);
        self.home.end_client(self.id);
        // A stream counts itself before it first locks the space, as the line above does: it is counted here, or finds the end.
        if self.streams.load(Ordering::Acquire) > 0 {
            let wakers = |inboxes: &mut Inboxes| inboxes.take_wakers().collect::<Vec<_>>();
            let wakers = self.home.listen(self.id, wakers);
            wakers.into_iter().flatten().for_each(Waker::wake);
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

    /// Who this is in queries and events.
    pub(crate) fn shown_id(&self) -> ClientId {
        match &self.home {
            Home::Local(_) => self.id,
            #[cfg(feature = "service")]
            Home::Remote(session) => session.client_id(self.id.serial()),
        }
    }
}

impl Owners {
    pub(crate) fn new(client: Arc<Client>) -> Arc<Self> {
        Arc::new(Self { client, parts: Default::default() })
    }

    /// The owner for a request of this scope.
    #[inline]
    pub(crate) fn of(&self, scope: &Scope) -> Arc<Owner> {
        let part = self.client.home.part_of(scope);
        let owner = || {
            let client = self.client.clone();
            let (home, id) = (client.home.clone(), client.id);
            Arc::new(Owner { client, part, home, id })
        };
        self.parts[part].get_or_init(owner).clone()
    }
}

impl Drop for Client {
    /// Locks and requests keep their client, so there is nothing left to release.
    fn drop(&mut self) {
        self.home.end_client(self.id);
    }
}
