//! The way in: a lock space, and one client of it.

use std::fmt;
#[cfg(feature = "client")]
use std::pin::Pin;
use std::sync::Arc;

use navlocks_core::{Blockers, ClientId, DeadlockPolicy, Name, RequestId, Scope};

use crate::connection::Connection;
use crate::deadlock::Cycle;
use crate::error::QueryError;
use crate::local::Space;
use crate::lock::Lock;
use crate::owner::{Client, Owners};
use crate::place::{Member, Place};
use crate::query::{self, PartitionSnapshot, Snapshot};
#[cfg(feature = "client")]
use crate::remote::{Connect, ConnectError, Greeting};
use crate::request::Request;
use crate::stream::Events;
use crate::watch::ConnectionWatch;

/// Locks by name, and one client that asks for them.
///
/// A clone is the same client; [`new_client`](Self::new_client) is another in the same lock space, and
/// [`partition`](Self::partition) is another lock space. What a client is matters when it [ends](Self::end), which releases
/// all that it has, and when [deadlocks](DeadlockPolicy) are looked for. Otherwise one client
/// serves any number of tasks and threads.
///
/// Threads that ask for different names hardly hold each other up, as long as each request has one name: requests for
/// several names, [events](Self::events) and a [deadlock policy](DeadlockPolicy) bring all names of the space behind one mutex.
///
/// # Policy
///
/// Each name is first come, first served. Shared locks are held together; a shared request waits behind an
/// earlier exclusive one even if that one is still waiting, so neither readers nor writers starve. A request for
/// several names gets all of them at once, and cannot deadlock with others that do the same. Locks are not re-entrant.
///
/// ```
/// # navlocks::blocking::block_on(async {
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
    owners: Arc<Owners>,
}

/// Options of a lock space. Made by [`Locks::builder`].
#[derive(Clone, Copy, Debug, Default)]
#[must_use = "call build()"]
pub struct Builder {
    deadlocks: DeadlockPolicy,
}

impl Builder {
    /// The policy for deadlocks; they are ignored by default. Each task needs a
    /// [client of its own](crate::deadlock#one-client-for-each-unit-of-work) then.
    pub fn deadlocks(mut self, policy: DeadlockPolicy) -> Self {
        self.deadlocks = policy;
        self
    }

    /// A new lock space with these options.
    pub fn build(self) -> Locks {
        let space = Space::alone(self.deadlocks);
        let client = space.add_client();
        Locks::of((Place::Local(space), client))
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

    /// The lock spaces of a service, shared by all who connect to it: `unix:/path/to/socket`, `ws://host:port` or
    /// `wss://host:port`. Say how on what is returned, then await it.
    ///
    /// Everything is as in process, with what a network adds. Locks and requests outlive the
    /// connection and the service: the connection is made again, and a service that was started
    /// again gets a claim of what is held and pending here. A held lock can be lost because the
    /// service was out of reach for longer than the lease
    /// ([`Loss::LeaseLapsed`](crate::Loss::LeaseLapsed)), which is known here before any other
    /// client is granted, or because the service has lost its state
    /// ([`Loss::ServiceGone`](crate::Loss::ServiceGone)). A pending request then queues anew, at
    /// the tail, and [`client_id`](Self::client_id) and request ids are new ones.
    ///
    /// One task drives the connection: on the tokio runtime in which it was made, and without one on a thread of this crate's own.
    /// A runtime that shuts down takes its connections with it.
    ///
    /// # Errors
    ///
    /// [`ConnectError`](crate::ConnectError) when the service cannot be reached this first time.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future ends the connection.
    #[cfg(feature = "client")]
    pub fn connect(url: impl AsRef<str>) -> Connect {
        Connect::new(url.as_ref())
    }

    /// Connects to the user's own service, which the command `navlocks` uses: its socket is in the
    /// folder that `NAVLOCKS_DIR` names, or else in the folder `navlocks-UID` of `/tmp`.
    /// [`start`](Connect::start) starts it if it does not run.
    #[cfg(feature = "client")]
    pub fn connect_own() -> Connect {
        Connect::own()
    }

    fn of(member: Member) -> Self {
        Self { owners: Owners::new(member) }
    }

    fn client(&self) -> &Client {
        &self.owners.client
    }

    fn backend(&self) -> &Place {
        &self.client().backend
    }

    /// Another client in the same lock space.
    pub fn new_client(&self) -> Self {
        Self::of(self.backend().new_client(self.client().id))
    }

    /// A client in the lock space of that name: the same for all who are related by [`new_client`](Self::new_client),
    /// `partition` and cloning, and independent of every other. It is forgotten when nobody uses it.
    pub fn partition(&self, name: &str) -> Self {
        Self::of(self.backend().partition(name))
    }

    /// Who this is in queries and events.
    pub fn client_id(&self) -> ClientId {
        self.client().shown_id()
    }

    /// A request for an exclusive lock on a name, or on several at once. Say how on what is returned, then await it.
    ///
    /// ```
    /// # navlocks::blocking::block_on(async {
    /// # let locks = navlocks::Locks::new();
    /// use std::time::Duration;
    ///
    /// let read = locks.request("cache").shared().await?;
    /// let both = locks.request(["from", "to"]).timeout(Duration::from_secs(2)).await?;
    /// let sum = locks.request("till").with(async |lock| lock.fencing_token().get() + 1).await?;
    /// # Ok::<(), navlocks::RequestError>(())
    /// # }).unwrap();
    /// ```
    #[inline(always)]
    pub fn request(&self, scope: impl Into<Scope>) -> Request {
        // The scope first: counting the owner gives its stores the time to complete before it is
        // moved.
        let scope = scope.into();
        Request::new(self.owners.of(&scope), scope)
    }

    /// Takes away all held locks that have `name` in their scope, in one step; their holders are told, and the queue
    /// goes on. Returns how many there were.
    ///
    /// # Errors
    ///
    /// [`QueryError`] says why there is no answer.
    pub async fn force_release(&self, name: impl Into<Name>) -> Result<usize, QueryError> {
        self.backend().force_release(self.client().id, name.into()).await
    }

    /// Ends this client, for all clones of it: its locks are [lost](crate::Loss::ClientEnded) and released, its requests fail,
    /// and every later one does. Its event streams end.
    pub fn end(&self) {
        self.client().end();
    }

    /// Takes leave of a service, for all clients of this connection, and waits until everything
    /// that was said has been sent. Their locks are released, and their requests fail. In process
    /// it does nothing.
    ///
    /// Dropping all that belongs to a connection takes leave as well: where this crate has a thread
    /// of its own for the connection, the drop waits for that, half a second at most; in a runtime
    /// the connection's task takes leave, at the latest when the runtime shuts down. A program that
    /// is killed takes no leave, and its locks are kept until its lease is over.
    pub async fn disconnect(&self) {
        self.backend().leave();
        std::future::poll_fn(|cx| self.backend().poll_left(cx.waker())).await;
    }

    /// Returns the state of the connection at this moment.
    pub fn connection(&self) -> Connection {
        self.backend().connection().0
    }

    /// Returns a watch for changes of the connection, for a task of its own: a program can tell its
    /// operator, or its health check, that the service is away.
    ///
    /// ```no_run
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// # #[cfg(feature = "client")]
    /// # {
    /// let locks = navlocks::Locks::connect("wss://locks.example").await?;
    /// let mut watch = locks.watch_connection();
    /// tokio::spawn(async move {
    ///     while let Some(now) = watch.changed().await {
    ///         eprintln!("{now}");
    ///     }
    /// });
    /// # }
    /// # Ok(())
    /// # }
    /// ```
    pub fn watch_connection(&self) -> ConnectionWatch {
        ConnectionWatch::new(&self.owners.client)
    }

    /// Returns a copy of the socket by which the service knows that this client is alive, over a
    /// Unix socket.
    ///
    /// The service keeps the locks of this client for as long as any process has that socket open.
    /// A program that does its work in child processes can hand them this, so that its locks are
    /// not free before they have ended, even if it is killed itself.
    #[cfg(feature = "client")]
    pub fn descriptor(&self) -> Option<std::os::fd::OwnedFd> {
        self.backend().descriptor()
    }

    /// Returns for how long the service grants the locks of this client to no other client, counted
    /// from the last message that it answered; none where no lease ends them.
    ///
    /// A lock is [lost](crate::Loss::LeaseLapsed) an eighth of the lease earlier, so a holder that
    /// stops its work within this time after the loss meets no other holder.
    #[cfg(feature = "client")]
    pub fn lease_left(&self) -> Option<std::time::Duration> {
        self.backend().lease_left()
    }

    /// Returns the sessions of an earlier service whose clients have not come back to its successor
    /// yet: the names of their requests are granted to no other client until then. A steal or a
    /// forced release gets past them.
    ///
    /// # Errors
    ///
    /// [`QueryError`] says why there is no answer.
    #[cfg(feature = "client")]
    pub async fn recovery(&self) -> Result<Vec<query::Unclaimed>, QueryError> {
        self.backend().recovery(self.client().id).await
    }

    /// All locks held and requests pending in this space, at one moment.
    ///
    /// # Errors
    ///
    /// [`QueryError`] says why there is no answer.
    pub async fn query(&self) -> Result<Snapshot, QueryError> {
        self.backend().query(self.client().id).await
    }

    /// All locks held and requests pending in every partition that is in use, in the order of their names. Of a service: those
    /// that this client could open, and over a Unix socket those of all its tenants and origins.
    ///
    /// # Errors
    ///
    /// [`QueryError`] says why there is no answer.
    pub async fn query_all(&self) -> Result<Vec<PartitionSnapshot>, QueryError> {
        self.backend().query_all(self.client().id).await
    }

    /// Returns where the first pending request of this client stands; none if it has no pending request.
    ///
    /// Costs what stands before the request, where a [query](Self::query) costs the whole lock space.
    ///
    /// # Errors
    ///
    /// [`QueryError`] says why there is no answer.
    pub async fn place(&self) -> Result<Option<query::Place>, QueryError> {
        self.backend().place(self.client().id).await
    }

    /// Returns where a pending request stands, also one of another client; none if it is not
    /// pending. [`Acquire::request_id`](crate::Acquire::request_id) is the id of one's own.
    ///
    /// # Errors
    ///
    /// [`QueryError`] says why there is no answer.
    pub async fn place_of(&self, request: RequestId) -> Result<Option<query::Place>, QueryError> {
        self.backend().place_of(self.client().id, request).await
    }

    /// What a request waits for: nothing, if it does not wait.
    ///
    /// # Errors
    ///
    /// [`QueryError`] says why there is no answer.
    pub async fn blockers(&self, request: RequestId) -> Result<Blockers, QueryError> {
        self.backend().blockers(self.client().id, request).await
    }

    /// Clients that wait for each other at this moment.
    ///
    /// # Errors
    ///
    /// [`QueryError`] says why there is no answer.
    pub async fn deadlocks(&self) -> Result<Vec<Cycle>, QueryError> {
        self.backend().deadlocks(self.client().id).await
    }

    /// Everything that happens in this space from now on, in order.
    ///
    /// ```
    /// # navlocks::blocking::block_on(async {
    /// use navlocks::{Locks, events::Kind};
    ///
    /// let locks = Locks::new();
    /// let mut events = locks.events();
    /// let lock = locks.request("a").await?;
    /// let event = events.recv().await.expect("the client has not ended")?;
    /// assert_eq!((event.request, event.what), (lock.request_id(), Kind::Requested));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # }).unwrap();
    /// ```
    pub fn events(&self) -> Events {
        Events::new(self.owners.client.clone())
    }
}

#[cfg(feature = "client")]
impl Connect {
    /// Opens the socket and returns before the service has answered: await the [`Greeting`] too.
    ///
    /// Requests that were polled before the greeting travel with it, so their answers come up to two
    /// round trips earlier. For programs that connect for one request, as `navlocks run` does.
    ///
    /// # Errors
    ///
    /// [`ConnectError`](crate::ConnectError) when the socket cannot be opened.
    pub async fn open(self) -> Result<(Locks, Greeting), ConnectError> {
        let (handle, greeting) = self.open_handle().await?;
        let first = handle.first_client();
        Ok((Locks::of((Place::Remote(Arc::new(handle)), first)), greeting))
    }
}

#[cfg(feature = "client")]
impl IntoFuture for Connect {
    type Output = Result<Locks, ConnectError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let handle = self.connect().await?;
            let first = handle.first_client();
            Ok(Locks::of((Place::Remote(Arc::new(handle)), first)))
        })
    }
}

impl Lock {
    /// The client that requested it, for further requests.
    pub fn locks(&self) -> Locks {
        Locks { owners: Owners::of_client(self.owner.client.clone()) }
    }
}

impl fmt::Debug for Locks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Locks").field("client", &self.client_id()).finish_non_exhaustive()
    }
}
