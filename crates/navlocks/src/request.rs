//! A request before it is sent: scope, mode, and how to wait.

pub(crate) mod future;
pub(crate) mod reentrant;
mod timer;

use std::fmt;
use std::future::IntoFuture;
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

use navlocks_core::{Mode, RequestId, Scope, Wait};

use crate::backend::extras::Extras;
use crate::backend::{Answer, Blocking};
use crate::blocking::block_on;
use crate::error::{RequestError, RequestErrorKind};
use crate::lock::Lock;
use crate::owner::Owner;

/// A request for a lock, made by [`Locks::request`](crate::Locks::request). Nothing happens until
/// it is awaited.
///
/// Awaiting gives a [`Lock`]; [`with`](Self::with) runs a closure under the lock;
/// [`lock_blocking`](Self::lock_blocking) blocks the thread.
#[derive(Clone)]
#[must_use = "a request does nothing until it is awaited"]
pub struct Request {
    pub(crate) owner: Arc<Owner>,
    pub(crate) inner: navlocks_core::Request,
    /// Boxed, because few requests have any.
    pub(crate) extras: Option<Box<Extras>>,
}

/// A request that does not wait, made by [`Request::if_available`]. Awaiting it gives `None` when
/// the lock is not available.
#[derive(Clone, Debug)]
#[must_use = "a request does nothing until it is awaited"]
pub struct TryRequest(Request);

impl Request {
    #[inline]
    pub(crate) fn new(owner: Arc<Owner>, scope: Scope) -> Self {
        Self { owner, inner: navlocks_core::Request::exclusive(scope), extras: None }
    }

    /// Requests a shared lock.
    pub fn shared(self) -> Self {
        self.mode(Mode::Shared)
    }

    /// Requests a lock of this mode; exclusive is the default.
    pub fn mode(mut self, mode: Mode) -> Self {
        self.inner.mode = mode;
        if let Some(extras) = &mut self.extras {
            extras.bad_limit = None;
        }
        self
    }

    /// Requests a lock that may be held beside others, while the holders of each name, itself
    /// included, are no more than `holders`: a semaphore. 1 is exclusive.
    ///
    /// A limit belongs to the request, so names are not declared. Of the holders and waiters before
    /// a request, the smallest limit counts.
    ///
    /// ```
    /// # navlocks::blocking::block_on(async {
    /// # let locks = navlocks::Locks::new();
    /// let one = locks.request("build").limit(2).await?;
    /// let two = locks.request("build").limit(2).await?;
    /// assert!(locks.request("build").limit(2).if_available().await?.is_none());
    /// # Ok::<(), navlocks::RequestError>(())
    /// # }).unwrap();
    /// ```
    ///
    /// A number that is no limit is an error when the request is awaited:
    /// [`BadLimit`](RequestErrorKind::BadLimit).
    pub fn limit(mut self, holders: u32) -> Self {
        match Mode::limited(holders) {
            Ok(mode) => self.mode(mode),
            Err(bad) => {
                self.extras.get_or_insert_default().bad_limit = Some(bad);
                self
            }
        }
    }

    /// Does not wait: gives the lock if it can be granted at once, `None` otherwise. Of this,
    /// [`steal`](Self::steal) and [`overtake`](Self::overtake) the last call counts; a
    /// [`timeout`](Self::timeout) has no effect then.
    pub fn if_available(mut self) -> TryRequest {
        self.inner.wait = Wait::IfAvailable;
        TryRequest(self)
    }

    /// Takes the lock away from its holders, and goes before all pending requests. For recovering
    /// from a stuck holder: it may go on working for a while, so protect the resource with the
    /// [fencing token](Lock::fencing_token).
    pub fn steal(mut self) -> Self {
        self.inner.wait = Wait::Steal;
        self
    }

    /// Steals as [`steal`](Self::steal), and aborts all pending requests: the steal of 2017.
    pub(crate) fn steal_all(mut self) -> Self {
        self.inner.wait = Wait::StealAll;
        self
    }

    /// Does not queue behind pending exclusive requests. For shared requests; a stream of such
    /// readers can starve writers.
    pub fn overtake(mut self) -> Self {
        self.inner.wait = Wait::Overtake;
        self
    }

    /// Fails with [`TimedOut`](RequestErrorKind::TimedOut) when the lock is not granted within this
    /// time, and with [`Unreachable`](RequestErrorKind::Unreachable) if its service is out of reach
    /// then. Zero tries once and does not wait.
    ///
    /// The first timeout of a process starts one thread for all timers.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.extras.get_or_insert_default().timeout = Some(timeout);
        self
    }

    /// Limits how long the lock is held: after that it is lost, with the cause
    /// [`HeldTooLong`](crate::LossCause::HeldTooLong), and the next request is granted. The holder
    /// may go on working for a while, so protect the resource with the [fencing
    /// token](Lock::fencing_token).
    ///
    /// The time begins with the grant. A service keeps it over restarts and fail-overs, and while
    /// the machine sleeps; in process a timer does, on the thread of the timeouts.
    ///
    /// ```
    /// # navlocks::blocking::block_on(async {
    /// # let locks = navlocks::Locks::new();
    /// use navlocks::LossCause;
    /// use std::time::Duration;
    ///
    /// let lock = locks.request("report").max_hold(Duration::from_millis(5)).await?;
    /// assert_eq!(lock.lost().await, LossCause::HeldTooLong);
    /// # Ok::<(), navlocks::RequestError>(())
    /// # }).unwrap();
    /// ```
    ///
    /// Less than a millisecond, and more than 2⁵³ of them, is an error when the request is awaited:
    /// [`BadMaxHold`](RequestErrorKind::BadMaxHold).
    pub fn max_hold(mut self, time: Duration) -> Self {
        self.extras.get_or_insert_default().max_hold = Some(time);
        self
    }

    /// Names the trace that the request belongs to, by the text of a `traceparent` of [Trace
    /// Context](https://www.w3.org/TR/trace-context/). A service shows it in queries, in events and
    /// in its log; a malformed one is ignored, and so is one in process.
    pub fn traceparent(mut self, traceparent: impl Into<Arc<str>>) -> Self {
        self.extras.get_or_insert_default().traceparent = Some(traceparent.into());
        self
    }

    /// Says that the request is made within this held lock, whose holder keeps it until the request
    /// is over: a lock of the same client, or the one under which the program runs. As
    /// [`Lock::request`]; a lock that is over has no effect.
    ///
    /// Waits between holders are what a [deadlock](crate::deadlock) is made of. A request that
    /// would wait for its own outer lock fails at once, with
    /// [`Deadlock`](RequestErrorKind::Deadlock).
    pub fn within(mut self, outer: RequestId) -> Self {
        self.extras.get_or_insert_default().within = Some(outer);
        self
    }

    /// Attaches a text that queries and events show with this request.
    pub fn tag(mut self, tag: impl Into<Arc<str>>) -> Self {
        self.extras.get_or_insert_default().tag = Some(tag.into());
        self
    }

    /// Runs `work` under the lock and returns its result. The lock is released when the work ends,
    /// also by a panic.
    ///
    /// `work` is an async closure, `async |lock| …` or `async move |lock| …`:
    ///
    /// ```
    /// # navlocks::blocking::block_on(async {
    /// # let locks = navlocks::Locks::new();
    /// let factor = 2;
    /// let scaled = async move |lock: &navlocks::Lock| lock.fencing_token().get() * factor;
    /// let token = locks.request("a").with(scaled).await?;
    /// # assert!(token > 0);
    /// # Ok::<(), navlocks::RequestError>(())
    /// # }).unwrap();
    /// ```
    ///
    /// A closure that returns `async move { … }` does not compile ("type annotations needed", or
    /// with a type "lifetime may not live long enough"): the future may borrow the lock, and only
    /// the type of an async closure can express that. Put `async` before the bars.
    ///
    /// ```compile_fail
    /// # async fn example(locks: navlocks::Locks) -> Result<(), navlocks::RequestError> {
    /// locks.request("a").with(|lock| async move { lock.fencing_token() }).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As awaiting the request; the work has not begun then.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future while it waits leaves the queue; dropping it later drops the work and
    /// releases the lock.
    pub async fn with<T>(self, work: impl AsyncFnOnce(&Lock) -> T) -> Result<T, RequestError> {
        let lock = self.await?;
        Ok(work(&lock).await)
    }

    /// Blocks this thread until the lock is granted. For threads without a runtime, and
    /// `spawn_blocking`; on a thread of an async runtime it delays all tasks of that thread.
    ///
    /// Through a service: on a worker of a tokio runtime with several threads, other workers take
    /// over its tasks. On the one thread that carries the connection, it fails with
    /// [`BlocksConnection`](RequestErrorKind::BlocksConnection).
    ///
    /// # Errors
    ///
    /// As awaiting the request.
    pub fn lock_blocking(self) -> Result<Lock, RequestError> {
        let blocking = self.check_blocking()?;
        block_as(blocking, self)
    }
}

/// Runs a request to its end in the way in which this thread may block.
fn block_as<R: IntoFuture>(blocking: Blocking, request: R) -> R::Output {
    match blocking {
        #[cfg(feature = "service")]
        Blocking::InPlace => tokio::task::block_in_place(|| block_on(request)),
        _ => block_on(request),
    }
}

impl Request {
    /// Returns the way in which this thread may block until there is an answer.
    fn check_blocking(&self) -> Result<Blocking, RequestError> {
        match self.owner.backend.blocking() {
            Blocking::Forbidden => {
                let scope = self.inner.scope.clone();
                Err(RequestError::new(RequestErrorKind::BlocksConnection, scope))
            }
            blocking => Ok(blocking),
        }
    }

    /// Returns the first wrong argument.
    #[inline]
    pub(crate) fn error(&self) -> Option<RequestErrorKind> {
        self.extras.as_deref().and_then(Extras::error)
    }

    /// Sends the request to the backend of its client.
    #[inline]
    pub(crate) fn send(&self, waker: &Waker) -> Answer {
        let extras = self.extras.as_deref();
        if let Some(error) = self.error() {
            return Answer::Failed(error);
        }
        let Owner { backend, sender, client, .. } = &*self.owner;
        if client.drain.has_begun() {
            return Answer::Failed(RequestErrorKind::ClientDraining);
        }
        let answer = backend.request(sender, &self.inner, extras, waker);
        // Looked at again: the draining task may have found no request before this one came.
        if client.drain.has_begun() { self.take_back(&answer) } else { answer }
    }

    /// Ends a request that came after its client began to drain.
    #[cold]
    fn take_back(&self, answer: &Answer) -> Answer {
        match answer {
            Answer::Granted(grant) => drop(self.owner.backend.release(grant.id)),
            Answer::Pending(id) => self.owner.backend.abandon(*id),
            Answer::Unavailable | Answer::Failed(_) => {}
        }
        Answer::Failed(RequestErrorKind::ClientDraining)
    }

    #[inline]
    pub(crate) fn timeout_of(&self) -> Option<Duration> {
        self.extras.as_ref().and_then(|extras| extras.timeout)
    }

    /// Returns for how long the request waits, if not for ever. A request that tries once takes the
    /// answer whenever it comes, so it needs no timer.
    pub(crate) fn waits_at_most(&self) -> Option<Duration> {
        let tries_once = match self.inner.wait {
            Wait::IfAvailable => true,
            Wait::Steal | Wait::StealAll => self.timeout_of() == Some(Duration::ZERO),
            Wait::Queue | Wait::Overtake => false,
        };
        self.timeout_of().filter(|_| !tries_once)
    }
}

impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { owner, inner, extras } = self;
        f.debug_struct("Request")
            .field("client", &owner.client.shown_id())
            .field("scope", &inner.scope)
            .field("mode", &inner.mode)
            .field("wait", &inner.wait)
            .field("extras", extras)
            .finish()
    }
}

impl TryRequest {
    pub(crate) fn into_inner(self) -> Request {
        self.0
    }

    /// Requests a shared lock.
    pub fn shared(self) -> Self {
        Self(self.0.shared())
    }

    /// Requests a lock of this mode; exclusive is the default.
    pub fn mode(self, mode: Mode) -> Self {
        Self(self.0.mode(mode))
    }

    /// Requests a lock beside at most so many holders: see [`Request::limit`].
    pub fn limit(self, holders: u32) -> Self {
        Self(self.0.limit(holders))
    }

    /// Limits how long the lock is held: see [`Request::max_hold`].
    pub fn max_hold(self, time: Duration) -> Self {
        Self(self.0.max_hold(time))
    }

    /// Names the trace that the request belongs to: see [`Request::traceparent`].
    pub fn traceparent(self, traceparent: impl Into<Arc<str>>) -> Self {
        Self(self.0.traceparent(traceparent))
    }

    /// Says that the request is made within a held lock: see [`Request::within`].
    pub fn within(self, outer: RequestId) -> Self {
        Self(self.0.within(outer))
    }

    /// Attaches a text that queries and events show with this request.
    pub fn tag(self, tag: impl Into<Arc<str>>) -> Self {
        Self(self.0.tag(tag))
    }

    /// Runs `work` with the lock, or with `None` when it is not available, and returns its result.
    ///
    /// # Errors
    ///
    /// As awaiting the request; the work has not begun then.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future drops the work and releases the lock.
    pub async fn with<T>(
        self,
        work: impl AsyncFnOnce(Option<&Lock>) -> T,
    ) -> Result<T, RequestError> {
        let lock = self.await?;
        Ok(work(lock.as_ref()).await)
    }

    /// Requests the lock without a runtime. Waits for the answer of a service, and for no other
    /// client.
    ///
    /// # Errors
    ///
    /// As awaiting the request.
    pub fn lock_blocking(self) -> Result<Option<Lock>, RequestError> {
        let blocking = self.0.check_blocking()?;
        block_as(blocking, self)
    }
}
