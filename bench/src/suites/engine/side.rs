//! The interface of a side to the cases: the engine, or a floor.

use std::hash::BuildHasher;
use std::hint::black_box;

use navlocks_core::{ClientId, Event, HashKey, LockManager, Mode, Request, RequestId, Scope, Wait};

use crate::floor::{Floor, Id};

/// One side. Every call does the work of its user as well: it makes the name and reads the outcome.
pub(super) trait Side: Sized + 'static {
    type Id: Copy;
    /// A client that ends with all its entries.
    type Session;

    fn new() -> Self;
    fn request(&mut self, name: &str, mode: Mode) -> Self::Id;
    /// Returns the last request that the release granted.
    fn release(&mut self, id: Self::Id) -> Option<Self::Id>;
    fn abort(&mut self, id: Self::Id);
    /// Requests and releases the names together.
    fn cycle_scope<const N: usize>(&mut self, names: [&str; N]);
    /// Takes the lock from its only holder.
    fn steal(&mut self, name: &str, holder: Self::Id) -> Self::Id;
    fn open<'a>(&mut self, names: impl Iterator<Item = &'a str>) -> Self::Session;
    fn close(&mut self, session: Self::Session);
}

/// navlocks, as an embedder drives it: every input, then every event.
pub(super) struct Engine {
    pub(super) locks: LockManager,
    client: ClientId,
}

impl Engine {
    #[inline]
    fn submit(&mut self, client: ClientId, request: Request) -> RequestId {
        let Ok((id, answer)) = self.locks.request(client, request) else {
            unreachable!("the client is known and not suspended, and no request overtakes")
        };
        black_box(answer);
        self.events();
        id
    }

    #[inline]
    fn events(&mut self) -> Option<RequestId> {
        let mut granted = None;
        while let Some(event) = self.locks.poll_event() {
            if let Event::Granted { request, .. } = black_box(event) {
                granted = Some(request);
            }
        }
        granted
    }
}

impl Side for Engine {
    type Id = RequestId;
    type Session = ClientId;

    fn new() -> Self {
        let mut locks = LockManager::new(HashKey::from_bytes(*b"sixteen bytes ok"));
        let client = locks.add_client();
        Self { locks, client }
    }

    #[inline]
    fn request(&mut self, name: &str, mode: Mode) -> RequestId {
        self.submit(self.client, Request::exclusive(name).mode(mode))
    }

    #[inline]
    fn release(&mut self, id: RequestId) -> Option<RequestId> {
        self.locks.release(id);
        self.events()
    }

    #[inline]
    fn abort(&mut self, id: RequestId) {
        self.locks.abort(id);
        self.events();
    }

    #[inline]
    fn cycle_scope<const N: usize>(&mut self, names: [&str; N]) {
        let Ok(scope) = Scope::new(names) else { unreachable!("there are names") };
        let id = self.submit(self.client, Request::exclusive(scope));
        self.release(id);
    }

    #[inline]
    fn steal(&mut self, name: &str, _holder: RequestId) -> RequestId {
        self.submit(self.client, Request::exclusive(name).wait(Wait::Steal))
    }

    fn open<'a>(&mut self, names: impl Iterator<Item = &'a str>) -> ClientId {
        let client = self.locks.add_client();
        for name in names {
            self.submit(client, Request::exclusive(name));
        }
        client
    }

    #[inline]
    fn close(&mut self, client: ClientId) {
        self.locks.terminate(client);
        self.events();
    }
}

impl<H: BuildHasher + Default + 'static> Side for Floor<H> {
    type Id = Id;
    /// Its ids, and whether each is held.
    type Session = Vec<(Id, bool)>;

    fn new() -> Self {
        Self::new()
    }

    #[inline]
    fn request(&mut self, name: &str, mode: Mode) -> Id {
        let (id, held) = self.request(name, mode);
        black_box(held);
        id
    }

    #[inline]
    fn release(&mut self, id: Id) -> Option<Id> {
        let mut last = None;
        self.release(id, |granted| last = Some(black_box(granted)));
        last
    }

    #[inline]
    fn abort(&mut self, id: Id) {
        self.abort(id, |granted| {
            black_box(granted);
        });
    }

    #[inline]
    fn cycle_scope<const N: usize>(&mut self, names: [&str; N]) {
        let ids = names.map(|name| Side::request(self, name, Mode::Exclusive));
        for id in ids {
            Side::release(self, id);
        }
    }

    #[inline]
    fn steal(&mut self, name: &str, holder: Id) -> Id {
        Side::release(self, holder);
        Side::request(self, name, Mode::Exclusive)
    }

    fn open<'a>(&mut self, names: impl Iterator<Item = &'a str>) -> Self::Session {
        names.map(|name| self.request(name, Mode::Exclusive)).collect()
    }

    #[inline]
    fn close(&mut self, session: Self::Session) {
        for (id, held) in session {
            if held {
                Side::release(self, id);
            } else {
                Side::abort(self, id);
            }
        }
    }
}
