//! Who keeps a client: those who can ask for it, its requests and its locks.
//!
//! Every request and every lock counts itself. Threads that count at one place wait for each other, so each part of a lock
//! space has a place of its own to count at.

use std::sync::{Arc, OnceLock};

use navlocks_core::{ClientId, Scope};

use crate::home::Home;
use crate::space::PARTS;

/// A client, known to its space as long as anybody can act for it.
pub(crate) struct Client {
    pub(crate) home: Home,
    /// At a service, only the number in the session counts.
    pub(crate) id: ClientId,
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
