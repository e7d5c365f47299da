//! The way in: a lock space, and one client of it.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use navlocks_core::{Blockers, ClientId, Name, RequestId, Scope};

use crate::deadlock::DeadlockPolicy;
use crate::error::{Cycle, QueryError};
use crate::events::Events;
use crate::query::Snapshot;
use crate::request::Request;
use crate::space::Space;

/// Locks by name, and one client that asks for them.
///
/// A clone is the same client; [`new_client`](Self::new_client) is another in the same lock space, and
/// [`partition`](Self::partition) is another lock space. What a client is matters when it [ends](Self::end), which releases
/// all that it has, and when [deadlocks](DeadlockPolicy) are looked for. Otherwise one client
/// serves any number of tasks and threads.
///
/// # Policy
///
/// Each name is first come, first served. Shared locks are held together; a shared request waits behind an
/// earlier exclusive one even if that one is still waiting, so neither readers nor writers starve. A request for
/// several names gets all of them at once, and cannot deadlock with others that do the same. Locks are not re-entrant.
///
/// ```
/// # navlocks::block_on(async {
/// use navlocks::Locks;
///
/// let locks = Locks::new();
/// let lock = locks.request("invoice/42").await?;
/// assert!(locks.request("invoice/42").if_available().await?.is_none());
/// drop(lock); // or lock.release()
/// # Ok::<(), navlocks::RequestError>(())
/// # }).unwrap();
/// ```
#[derive(Clone)]
pub struct Locks {
    pub(crate) client: Arc<Client>,
}

/// A client, known to its space as long as anybody can act for it.
pub(crate) struct Client {
    pub(crate) space: Arc<Space>,
    pub(crate) id: ClientId,
    registry: Arc<Registry>,
}

/// The partitions that are in use.
struct Registry {
    partitions: Mutex<HashMap<String, Weak<Space>>>,
    deadlocks: DeadlockPolicy,
}

/// Options of a lock space. Made by [`Locks::builder`].
#[derive(Clone, Copy, Debug, Default)]
#[must_use = "call build()"]
pub struct Builder {
    deadlocks: DeadlockPolicy,
}

impl Builder {
    /// What to do about deadlocks; nothing by default.
    pub fn deadlocks(mut self, policy: DeadlockPolicy) -> Self {
        self.deadlocks = policy;
        self
    }

    /// A new lock space with these options.
    pub fn build(self) -> Locks {
        let partitions = Mutex::new(HashMap::new());
        let registry = Arc::new(Registry { partitions, deadlocks: self.deadlocks });
        Locks::in_space(Arc::new(Space::new(self.deadlocks)), registry)
    }
}

impl Locks {
    /// A new lock space in this process, shared by the clones of what is returned and by nobody else.
    #[allow(
        clippy::new_without_default,
        reason = "two defaults would be two spaces that exclude nothing"
    )]
    pub fn new() -> Self {
        Self::builder().build()
    }

    /// A lock space with options.
    pub fn builder() -> Builder {
        Builder::default()
    }

    fn in_space(space: Arc<Space>, registry: Arc<Registry>) -> Self {
        let id = space.add_client();
        Self { client: Arc::new(Client { space, id, registry }) }
    }

    /// Another client in the same lock space.
    pub fn new_client(&self) -> Self {
        Self::in_space(self.client.space.clone(), self.client.registry.clone())
    }

    /// A client in the lock space of that name: the same for all who are related by [`new_client`](Self::new_client),
    /// `partition` and cloning, and independent of every other. It is forgotten when nobody uses it.
    pub fn partition(&self, name: &str) -> Self {
        let registry = &self.client.registry;
        let mut partitions = registry.partitions.lock().unwrap_or_else(PoisonError::into_inner);
        let known = partitions.get(name).and_then(Weak::upgrade);
        let space = known.unwrap_or_else(|| {
            partitions.retain(|_, space| space.strong_count() > 0);
            let space = Arc::new(Space::new(registry.deadlocks));
            partitions.insert(name.to_owned(), Arc::downgrade(&space));
            space
        });
        drop(partitions);
        Self::in_space(space, registry.clone())
    }

    /// Who this is in queries and events.
    pub fn client_id(&self) -> ClientId {
        self.client.id
    }

    /// A request for an exclusive lock on a name, or on several at once. Say how on what is returned, then await it.
    ///
    /// ```
    /// # navlocks::block_on(async {
    /// # let locks = navlocks::Locks::new();
    /// use std::time::Duration;
    ///
    /// let read = locks.request("cache").shared().await?;
    /// let both = locks.request(["from", "to"]).timeout(Duration::from_secs(2)).await?;
    /// let sum = locks.request("till").with(async |lock| lock.fencing_token().get() + 1).await?;
    /// # Ok::<(), navlocks::RequestError>(())
    /// # }).unwrap();
    /// ```
    #[inline]
    pub fn request(&self, scope: impl Into<Scope>) -> Request {
        Request::new(self.clone(), scope.into())
    }

    /// Takes away all held locks that have `name` in their scope, in one step; their holders are told, and the queue
    /// goes on. Returns how many there were.
    ///
    /// # Errors
    ///
    /// [`QueryError::ClientEnded`] when this client was ended.
    pub async fn force_release(&self, name: impl Into<Name>) -> Result<usize, QueryError> {
        self.alive()?;
        Ok(self.client.space.force_release(&name.into()))
    }

    /// Ends this client, for all clones of it: its locks are [lost](crate::Loss::ClientEnded) and released, its requests fail,
    /// and every later one does.
    pub fn end(&self) {
        self.client.space.end_client(self.client.id);
    }

    /// All locks held and requests pending in this space, at one moment.
    ///
    /// # Errors
    ///
    /// [`QueryError::ClientEnded`] when this client was ended.
    pub async fn query(&self) -> Result<Snapshot, QueryError> {
        self.alive()?;
        Ok(self.client.space.query())
    }

    /// What a request waits for: nothing, if it does not wait.
    ///
    /// # Errors
    ///
    /// [`QueryError::ClientEnded`] when this client was ended.
    pub async fn blockers(&self, request: RequestId) -> Result<Blockers, QueryError> {
        self.alive()?;
        Ok(self.client.space.ask(|manager| manager.blockers(request)))
    }

    /// Clients that wait for each other at this moment.
    ///
    /// # Errors
    ///
    /// [`QueryError::ClientEnded`] when this client was ended.
    pub async fn deadlocks(&self) -> Result<Vec<Cycle>, QueryError> {
        self.alive()?;
        let deadlocks = self.client.space.ask(|manager| manager.deadlocks());
        Ok(deadlocks.into_iter().map(Cycle::from).collect())
    }

    fn alive(&self) -> Result<(), QueryError> {
        let known = self.client.space.ask(|manager| manager.knows(self.client.id));
        if known { Ok(()) } else { Err(QueryError::ClientEnded) }
    }

    /// Everything that happens in this space from now on.
    pub fn events(&self) -> Events {
        Events::new(self.client.space.clone())
    }
}

impl fmt::Debug for Locks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Locks").field("client", &self.client.id).finish_non_exhaustive()
    }
}

impl Drop for Client {
    /// Guards and requests keep their client, so there is nothing left to release.
    fn drop(&mut self) {
        self.space.end_client(self.id);
    }
}
