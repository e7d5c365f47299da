//! The auto-release style: a lock that is held until the work added to it has ended.

use std::error::Error;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};

use navlocks_core::{FencingToken, Mode, RequestId, Scope};

use crate::error::{LossCause, RequestError};
use crate::lock::Lock;
use crate::request::{Request, TryRequest};

mod holding;
mod wakeups;

pub(crate) use holding::Facts;
use holding::Holding;

/// A lock that releases itself: held until all work added with [`wait_until`](Self::wait_until) has
/// ended well, or until some has failed. Made by [`Request::auto`](crate::Request::auto), or from a
/// [`Lock`].
///
/// A clone is another handle of the same lock. Nothing is spawned here: the work makes progress
/// while a task awaits [`released`](Self::released). If several tasks await it, any of them that is
/// woken drives the work.
///
/// # When it is released
///
/// - All work has ended well. A lock without work is released by the first `released` that is
///   awaited.
/// - Some work has failed, or panicked. The rest is dropped.
/// - The lock was lost. The work is dropped.
/// - All handles are gone: this one, its clones, and every [`Released`]. The work is dropped.
///
/// Work is dropped before the lock is released, so it never runs without the lock, except when the
/// lock was lost.
///
/// ```
/// # navlocks::blocking::block_on(async {
/// # let locks = navlocks::Locks::new();
/// # async fn upload(_part: u8) -> Result<(), std::io::Error> { Ok(()) }
/// let lock = locks.request("uploads").auto().await?;
/// lock.wait_until(upload(1));
/// lock.wait_until(upload(2));
/// lock.released().await?; // both have ended, and the lock is free
/// assert!(lock.wait_until(upload(3)).await.is_err()); // too late
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # }).unwrap();
/// ```
///
/// # What changed since the documents of 2017
///
/// There, a lock without work was released a microtask after the script that had awaited it got to
/// run. Rust has no such moment: code between `auto().await` and the first `released().await`
/// always comes in time.
#[derive(Clone)]
#[must_use = "a lock that is not kept is released at once"]
pub struct AutoLock(Arc<Holding>);

impl AutoLock {
    /// Holds the lock until `work` has ended, too. Work can be added as long as the lock is held,
    /// also by other work.
    ///
    /// Returns the same future as [`released`](Self::released). It need not be awaited as long as
    /// another one is. When the lock has been released already, the work is dropped and the future
    /// fails with [`ReleaseError::TooLate`].
    ///
    /// Work that adds work to its own lock should own a [`WeakAutoLock`]. If it owned an
    /// `AutoLock`, the lock would stay held after all other handles are gone, and no task would
    /// drive the work.
    ///
    /// ```
    /// # navlocks::blocking::block_on(async {
    /// # let locks = navlocks::Locks::new();
    /// # async fn fetch() -> Result<Vec<u8>, std::io::Error> { Ok(vec![]) }
    /// # async fn store(_page: Vec<u8>) -> Result<(), std::io::Error> { Ok(()) }
    /// let lock = locks.request("mirror").auto().await?;
    /// let weak = lock.downgrade();
    /// let released = lock.wait_until(async move {
    ///     let page = fetch().await?;
    ///     if let Some(lock) = weak.upgrade() {
    ///         lock.wait_until(store(page));
    ///     }
    ///     Ok::<(), std::io::Error>(())
    /// });
    /// released.await?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # }).unwrap();
    /// ```
    pub fn wait_until<E>(
        &self,
        work: impl Future<Output = Result<(), E>> + Send + 'static,
    ) -> Released
    where
        E: Into<Box<dyn Error + Send + Sync>>,
    {
        let work = async move { work.await.map_err(|error| Arc::from(error.into())) };
        if self.0.add(Box::pin(work)) { self.released() } else { Released(Awaited::Nothing) }
    }

    /// Drives the work and resolves when the lock is released.
    #[must_use = "futures do nothing until they are awaited"]
    pub fn released(&self) -> Released {
        Released(Awaited::Lock { holding: self.0.clone(), waiter: None })
    }

    /// Returns the locked names, in order.
    pub fn scope(&self) -> &Scope {
        &self.0.facts.scope
    }

    /// Returns the mode: shared or exclusive.
    pub fn mode(&self) -> Mode {
        self.0.facts.mode
    }

    /// Returns the token, as [`Lock::fencing_token`].
    pub fn fencing_token(&self) -> FencingToken {
        self.0.facts.token
    }

    /// Returns the id of the lock in queries and events.
    pub fn request_id(&self) -> RequestId {
        self.0.facts.request
    }

    /// Returns how the lock was lost, if it was.
    pub fn loss(&self) -> Option<LossCause> {
        self.0.loss()
    }

    pub(crate) fn facts(&self) -> &Facts {
        &self.0.facts
    }

    /// Returns a handle that does not keep the lock held.
    pub fn downgrade(&self) -> WeakAutoLock {
        WeakAutoLock(Arc::downgrade(&self.0))
    }
}

impl Request {
    /// Requests the lock under the auto-release style: held until all work given to
    /// [`AutoLock::wait_until`] has ended.
    ///
    /// # Errors
    ///
    /// As awaiting the request.
    ///
    /// # Cancel safety
    ///
    /// As awaiting the request.
    pub async fn auto(self) -> Result<AutoLock, RequestError> {
        self.await.map(AutoLock::from)
    }
}

impl TryRequest {
    /// Requests the lock under the auto-release style; `None` when it is not available.
    ///
    /// # Errors
    ///
    /// As awaiting the request.
    pub async fn auto(self) -> Result<Option<AutoLock>, RequestError> {
        Ok(self.await?.map(AutoLock::from))
    }
}

impl From<Lock> for AutoLock {
    fn from(lock: Lock) -> Self {
        Self(Arc::new(Holding::new(lock)))
    }
}

impl fmt::Debug for AutoLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("AutoLock").field(&self.0.facts).finish()
    }
}

/// A handle of an [`AutoLock`] that does not keep the lock held, made by [`AutoLock::downgrade`].
/// For work that adds work.
#[derive(Clone)]
pub struct WeakAutoLock(Weak<Holding>);

impl WeakAutoLock {
    /// Returns the lock, unless all handles that keep it are gone.
    pub fn upgrade(&self) -> Option<AutoLock> {
        self.0.upgrade().map(AutoLock)
    }
}

impl fmt::Debug for WeakAutoLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("WeakAutoLock").finish_non_exhaustive()
    }
}

/// The future of [`AutoLock::released`] and [`AutoLock::wait_until`]: drives the work of the lock,
/// and resolves when the lock is released. All futures of one lock resolve to the same result.
///
/// # Errors
///
/// [`ReleaseError`]: some work failed, the lock was lost, or the work was added too late. The lock
/// is released all the same.
///
/// # Panics
///
/// A panic of the work continues in the task that drove it, once the lock is released. Other tasks
/// get [`ReleaseError::Panicked`].
///
/// # Cancel safety
///
/// Dropping it loses nothing as long as another handle lives: another task that awaits the release
/// drives the work from then on. Dropping the last handle drops the work and releases the lock.
pub struct Released(Awaited);

enum Awaited {
    Lock {
        holding: Arc<Holding>,
        /// The number of this waiter, from the first poll on.
        waiter: Option<u64>,
    },
    /// The work was not accepted.
    Nothing,
}

impl Future for Released {
    type Output = Result<(), ReleaseError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut self.0 {
            Awaited::Lock { holding, waiter } => holding.poll_released(waiter, cx.waker()),
            Awaited::Nothing => Poll::Ready(Err(ReleaseError::TooLate)),
        }
    }
}

impl Drop for Released {
    fn drop(&mut self) {
        if let Awaited::Lock { holding, waiter: Some(waiter) } = &self.0 {
            holding.leave(*waiter);
        }
    }
}

impl fmt::Debug for Released {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut released = f.debug_tuple("Released");
        match &self.0 {
            Awaited::Lock { holding, .. } => released.field(&holding.facts),
            Awaited::Nothing => released.field(&ReleaseError::TooLate),
        };
        released.finish()
    }
}

/// Why an [`AutoLock`] was released before all its work had ended well.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum ReleaseError {
    /// Some work failed, with this error.
    Failed(Arc<dyn Error + Send + Sync>),
    /// The lock was lost before all work had ended.
    Lost(LossCause),
    /// Some work panicked, in another task.
    Panicked,
    /// The lock had been released already, so the work was dropped.
    TooLate,
}

impl ReleaseError {
    /// Returns the name of the error that JavaScript gets for this; none if it is the work's own
    /// error.
    pub fn dom_exception_name(&self) -> Option<&'static str> {
        match self {
            Self::Failed(_) | Self::Panicked => None,
            Self::Lost(loss) => Some(loss.dom_exception_name()),
            Self::TooLate => Some("TypeError"),
        }
    }
}

impl fmt::Display for ReleaseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            // The error of the work is shown as it is.
            Self::Failed(error) => error.fmt(f),
            Self::Lost(loss) => loss.fmt(f),
            Self::Panicked => f.write_str("work under the lock panicked in another task"),
            Self::TooLate => f.write_str("the lock had been released before the work was added"),
        }
    }
}

impl Error for ReleaseError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Failed(error) => error.source(),
            _ => None,
        }
    }
}
