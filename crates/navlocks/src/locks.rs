//! Locks: a lock space, and one client of it.

mod builder;
#[cfg(feature = "client")]
mod connect;

use std::fmt;
use std::sync::Arc;

use navlocks_core::{Blockers, ClientId, Explained, Name, RequestId, Scope};

use crate::connection::Connection;
use crate::deadlock::Cycle;
use crate::error::QueryError;
use crate::lock::Lock;
use crate::lock::watch::ConnectionWatch;
use crate::owner::backend::{AnyBackend, Member};
use crate::owner::{Client, Owners};
use crate::query::{self, PartitionSnapshot, Snapshot};
#[cfg(feature = "client")]
use crate::remote::Connect;
use crate::request::Request;
use crate::stream::Events;
pub use builder::Builder;

/// Locks by name, and one client that requests them.
///
/// A clone is the same client; [`new_client`](Self::new_client) makes another one in the same lock
/// space, and [`partition`](Self::partition) opens another lock space. Clients matter when one
/// [ends](Self::end_client), which releases all its locks, and for
/// [deadlocks](crate::DeadlockPolicy). Otherwise one client serves any number of tasks and threads.
///
/// Threads that request different names hardly contend, as long as each request has one name:
/// requests for several names, [events](Self::events) and a
/// [deadlock policy](crate::DeadlockPolicy) put all names of the space behind one mutex.
///
/// # Policy
///
/// Each name is first come, first served. Shared locks are held together; a shared request waits
/// behind an earlier exclusive one even if that one is still waiting, so neither readers nor
/// writers starve. A request for several names gets all of them at once, and cannot deadlock with
/// others that do the same. Locks are not re-entrant.
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

impl Locks {
    /// Makes a lock space in this process, shared only by the clones of the returned value.
    #[allow(
        clippy::new_without_default,
        reason = "two defaults would be two spaces that exclude nothing"
    )]
    pub fn new() -> Self {
        Self::builder().build()
    }

    /// Returns the options of a new lock space.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// Connects to a service, whose lock spaces all its clients share: `unix:/path/to/socket`,
    /// `ws://host:port` or `wss://host:port`. Set options on the returned value, then await it.
    ///
    /// Of a cluster: the addresses of some of its nodes, `wss://n1:7400,n2:7400,n3:7400`, where
    /// later ones may leave out the scheme. They are dialled in turn, from a random one on, and the
    /// node that answers leads to the one that owns the locks. Each [partition](Self::partition) of
    /// a cluster is a session of its own, with its own [connection](Self::connection).
    ///
    /// The API is the same as in process. Locks and requests outlive the connection and the
    /// service: the client connects again, and claims its locks and requests from a service that
    /// was restarted. A held lock can be lost because the service was out of reach for longer than
    /// the lease ([`LossCause::LeaseLapsed`](crate::LossCause::LeaseLapsed)), which the client
    /// learns before any other client is granted, or because the service has lost its state
    /// ([`LossCause::ServiceGone`](crate::LossCause::ServiceGone)). A pending request then queues
    /// again, at the tail, and [`client_id`](Self::client_id) and request ids are new ones.
    ///
    /// One task drives the connection: on the tokio runtime in which it was made, and without one
    /// on a thread of this crate. A runtime that shuts down ends its connections. A current-thread
    /// runtime drives it only inside of `block_on`: a lock that is dropped at the end of one is
    /// released in the next one, or when the runtime shuts down. Await
    /// [`disconnect`](Self::disconnect) at the end, or connect without a runtime.
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
    pub fn connect_user_service() -> Connect {
        Connect::own()
    }

    fn of(member: Member) -> Self {
        Self { owners: Owners::new(member) }
    }

    fn client(&self) -> &Client {
        &self.owners.client
    }

    fn backend(&self) -> &AnyBackend {
        &self.client().backend
    }

    /// Makes another client in the same lock space.
    pub fn new_client(&self) -> Self {
        Self::of(self.backend().new_client(self.client().id))
    }

    /// Makes a client in the lock space of that name: the same for all clients related by
    /// [`new_client`](Self::new_client), `partition` and cloning, and independent of every other.
    /// It is dropped with its last client.
    pub fn partition(&self, name: &str) -> Self {
        Self::of(self.backend().partition(name))
    }

    /// Returns the id of this client in queries and events.
    pub fn client_id(&self) -> ClientId {
        self.client().shown_id()
    }

    /// Makes a request for an exclusive lock on a name, or on several at once. Set options on the
    /// returned value, then await it.
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

    /// Takes away all held locks that have `name` in their scope, in one step; their holders
    /// receive the loss, and the queue is processed. Returns how many there were.
    ///
    /// # Errors
    ///
    /// [`QueryError`] says why there is no answer.
    pub async fn force_release(&self, name: impl Into<Name>) -> Result<usize, QueryError> {
        self.backend().force_release(self.client().id, name.into()).await
    }

    /// Ends this client, for all clones of it: its locks are [lost](crate::LossCause::ClientEnded)
    /// and released, its requests fail, and every later one does. Its event streams end.
    pub fn end_client(&self) {
        self.client().end();
    }

    /// Stops this client gracefully, for all clones of it: every later request fails with
    /// [`ClientDraining`](crate::RequestErrorKind::ClientDraining), and the future resolves when
    /// the last pending request has ended and the last lock is released. For a program that shuts
    /// down while handlers still work under locks; [`end_client`](Self::end_client) does not wait.
    ///
    /// ```
    /// # navlocks::blocking::block_on(async {
    /// # let locks = navlocks::Locks::new();
    /// use navlocks::RequestErrorKind;
    ///
    /// let held = locks.request("a").await?;
    /// let drained = std::thread::spawn({
    ///     let locks = locks.clone();
    ///     move || navlocks::blocking::block_on(locks.drain())
    /// });
    /// # while locks.request("b").if_available().await.is_ok() { std::thread::yield_now(); }
    /// let refused = locks.request("a").if_available().await.unwrap_err();
    /// assert_eq!(refused, RequestErrorKind::ClientDraining);
    /// held.release()?; // the work is done
    /// drained.join().unwrap();
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # }).unwrap();
    /// ```
    ///
    /// # Cancel safety
    ///
    /// Requests fail from the first poll on, and also after the future was dropped. Another call
    /// waits again.
    pub async fn drain(&self) {
        let client = self.client();
        client.drain.begin();
        std::future::poll_fn(|cx| client.poll_drained(cx.waker())).await;
    }

    /// Ends the session with a service, for all clients of this connection, and waits until all
    /// messages are sent. Their locks are released, and their requests fail. In process it does
    /// nothing.
    ///
    /// Dropping the last handle of a connection ends the session as well. On a thread of this
    /// crate, the drop waits for that, at most half a second; in a runtime the task of the
    /// connection does it, at the latest when the runtime shuts down. The locks of a killed program
    /// are kept until its lease is over.
    pub async fn disconnect(&self) {
        self.backend().leave();
        std::future::poll_fn(|cx| self.backend().poll_left(cx.waker())).await;
    }

    /// Returns the state of the connection at this moment.
    pub fn connection(&self) -> Connection {
        self.backend().connection().0
    }

    /// Returns a watch for changes of the connection, for a task of its own that informs an
    /// operator or a health check.
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
    /// A program that works in child processes can pass it to them, so that its locks stay held
    /// until they have ended, even if it is killed.
    #[cfg(feature = "client")]
    pub fn liveness_fd(&self) -> Option<std::os::fd::OwnedFd> {
        self.backend().liveness_fd()
    }

    /// Returns for how long the service grants the locks of this client to no other client, counted
    /// from the last message that it answered; none where no lease ends them.
    ///
    /// A lock is [lost](crate::LossCause::LeaseLapsed) an eighth of the lease earlier, so a holder
    /// that stops its work within this time after the loss meets no other holder.
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
    pub async fn unclaimed_sessions(&self) -> Result<Vec<query::UnclaimedSession>, QueryError> {
        self.backend().unclaimed_sessions(self.client().id).await
    }

    /// Returns all locks held and requests pending in this space, at one moment.
    ///
    /// # Errors
    ///
    /// [`QueryError`] says why there is no answer.
    pub async fn query(&self) -> Result<Snapshot, QueryError> {
        self.backend().query(self.client().id).await
    }

    /// Returns all locks held and requests pending in every partition that is in use, in the order
    /// of their names. A service returns those that this client could open, and over a Unix socket
    /// those of all its tenants and origins.
    ///
    /// # Errors
    ///
    /// [`QueryError`] says why there is no answer.
    pub async fn query_all(&self) -> Result<Vec<PartitionSnapshot>, QueryError> {
        self.backend().query_all(self.client().id).await
    }

    /// Returns where the first pending request of this client stands; none if it has no pending
    /// request.
    ///
    /// Costs the entries before the request, where a [query](Self::query) costs the whole lock
    /// space.
    ///
    /// # Errors
    ///
    /// [`QueryError`] says why there is no answer.
    pub async fn place(&self) -> Result<Option<query::Place>, QueryError> {
        self.backend().place(self.client().id).await
    }

    /// Returns where a pending request stands, also one of another client; none if it is not
    /// pending. [`RequestFuture::request_id`](crate::RequestFuture::request_id) returns the id of
    /// an own request.
    ///
    /// # Errors
    ///
    /// [`QueryError`] says why there is no answer.
    pub async fn place_of(&self, request: RequestId) -> Result<Option<query::Place>, QueryError> {
        self.backend().place_of(self.client().id, request).await
    }

    /// Returns the requests that a request waits for: none, if it is not pending.
    ///
    /// # Errors
    ///
    /// [`QueryError`] says why there is no answer.
    pub async fn blockers(&self, request: RequestId) -> Result<Blockers, QueryError> {
        self.backend().blockers(self.client().id, request).await
    }

    /// Returns the cycles of requests that wait for each other at this moment: first the certain
    /// ones, then those that are possible, because it is not known which lock of a client waits.
    ///
    /// # Errors
    ///
    /// [`QueryError`] says why there is no answer.
    pub async fn deadlocks(&self) -> Result<Vec<Cycle>, QueryError> {
        Ok(self.waits(Explained::Deadlocked).await?.cycles)
    }

    /// Returns the requests, the waits of each and the cycles among them, all of one moment.
    ///
    /// # Errors
    ///
    /// [`QueryError`] says why there is no answer.
    pub async fn waits(&self, explained: Explained) -> Result<query::Waits, QueryError> {
        self.backend().waits(self.client().id, explained).await
    }

    /// Returns a stream of all events of this space from now on, in order.
    ///
    /// ```
    /// # navlocks::blocking::block_on(async {
    /// use navlocks::{EventKind, Locks};
    ///
    /// let locks = Locks::new();
    /// let mut events = locks.events();
    /// let lock = locks.request("a").await?;
    /// let event = events.recv().await.expect("the client has not ended")?;
    /// assert_eq!((event.request, event.kind), (lock.request_id(), EventKind::Requested));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # }).unwrap();
    /// ```
    pub fn events(&self) -> Events {
        Events::new(self.owners.client.clone())
    }
}

impl Lock {
    /// Makes a request within this lock, whose holder keeps it until the request is over, as
    /// [`Request::within`]. Further as [`Locks::request`].
    ///
    /// ```
    /// # navlocks::blocking::block_on(async {
    /// # let locks = navlocks::Locks::new();
    /// use navlocks::RequestErrorKind;
    ///
    /// let account = locks.request("account").await?;
    /// let audit = account.request("audit").await?;
    /// let error = audit.request("account").await.unwrap_err(); // would wait for ever
    /// assert!(matches!(error.kind(), RequestErrorKind::Deadlock(_)));
    /// # Ok::<(), navlocks::RequestError>(())
    /// # }).unwrap();
    /// ```
    pub fn request(&self, scope: impl Into<Scope>) -> Request {
        self.locks().request(scope).within(self.request_id())
    }

    /// Returns the client of the request, for further requests.
    pub fn locks(&self) -> Locks {
        Locks { owners: Owners::of_client(self.owner.client.clone()) }
    }
}

impl fmt::Debug for Locks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Locks").field("client", &self.client_id()).finish_non_exhaustive()
    }
}
