//! The auto-release model: a lock that is held until the work it was given has ended.

use std::error::Error;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};

use navlocks_core::{FencingToken, Mode, RequestId, Scope};

use crate::error::{Loss, RequestError};
use crate::lock::Lock;
use crate::request::{Request, TryRequest};

mod holding;
mod wakeups;

pub(crate) use holding::Facts;
use holding::Holding;

/// A lock that releases itself: held until every work given to [`wait_until`](Self::wait_until) has
/// ended well, or until one has failed. Made by [`Request::auto`](crate::Request::auto), or from a
/// [`Lock`].
///
/// A clone is another handle of the same lock. Futures do nothing by themselves and nothing is
/// spawned here, so the works make progress while somebody awaits [`released`](Self::released), on
/// any task; if several do, whichever is awake drives them.
///
/// # When it is released
///
/// - All works have ended well. A lock that was never given any is released by the first `released`
///   that is awaited.
/// - A work has failed, or panicked. The other works are dropped.
/// - The lock was taken away. The works are dropped.
/// - All handles are gone: this, its clones, and every [`Released`]. The works are dropped.
///
/// Works are dropped before the lock is released, so none runs without it, except on a lock that
/// was taken away.
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
    /// Holds the lock until `work` has ended, too. Works can be added as long as the lock is held,
    /// also by a work.
    ///
    /// Returns what [`released`](Self::released) returns. Not awaiting it is fine as long as
    /// somebody awaits another. When the lock has been released already, the work is dropped and
    /// what is returned fails with [`ReleaseError::TooLate`].
    ///
    /// A work that adds works to its own lock should own a [`WeakAutoLock`]. If it owned an
    /// `AutoLock`, then the lock would stay held when everybody else has let go of it: nobody would
    /// be left to drive the work.
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

    /// Drives the works and resolves when the lock is released.
    #[must_use = "futures do nothing until they are awaited"]
    pub fn released(&self) -> Released {
        Released(Awaited::Lock { holding: self.0.clone(), waiter: None })
    }

    /// The names that are locked, in order.
    pub fn scope(&self) -> &Scope {
        &self.0.facts.scope
    }

    /// Shared or exclusive.
    pub fn mode(&self) -> Mode {
        self.0.facts.mode
    }

    /// As [`Lock::fencing_token`].
    pub fn fencing_token(&self) -> FencingToken {
        self.0.facts.token
    }

    /// Which one this is in queries and events.
    pub fn request_id(&self) -> RequestId {
        self.0.facts.request
    }

    /// Why the lock was taken away, if it was.
    pub fn loss(&self) -> Option<Loss> {
        self.0.loss()
    }

    pub(crate) fn facts(&self) -> &Facts {
        &self.0.facts
    }

    /// A handle that does not keep the lock held.
    pub fn downgrade(&self) -> WeakAutoLock {
        WeakAutoLock(Arc::downgrade(&self.0))
    }
}

impl Request {
    /// The lock under the auto-release model: held until all that is given to
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
    /// The lock under the auto-release model, or `None` when it is not free.
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
/// For works that add works.
#[derive(Clone)]
pub struct WeakAutoLock(Weak<Holding>);

impl WeakAutoLock {
    /// The lock, unless all that kept it are gone.
    pub fn upgrade(&self) -> Option<AutoLock> {
        self.0.upgrade().map(AutoLock)
    }
}

impl fmt::Debug for WeakAutoLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("WeakAutoLock").finish_non_exhaustive()
    }
}

/// The future of [`AutoLock::released`] and [`AutoLock::wait_until`]: drives the works of the lock,
/// and resolves when the lock is released. All of one lock resolve to the same.
///
/// # Errors
///
/// [`ReleaseError`]: a work failed, the lock was taken away, or the work came too late. The lock is
/// released all the same.
///
/// # Panics
///
/// A panic of a work goes on in the task that drove it, once the lock is released. Other tasks get
/// [`ReleaseError::Panicked`].
///
/// # Cancel safety
///
/// Dropping it loses nothing as long as another handle lives: whoever else awaits the release
/// drives the works from then on. Dropping the last handle drops the works and releases the lock.
pub struct Released(Awaited);

enum Awaited {
    Lock {
        holding: Arc<Holding>,
        /// The number under which this waits, from the first poll on.
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

/// Why the release of an [`AutoLock`] was not the good end of all its works.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum ReleaseError {
    /// A work failed, with this error.
    Failed(Arc<dyn Error + Send + Sync>),
    /// The lock was taken away before all works had ended.
    Lost(Loss),
    /// A work panicked, in another task.
    Panicked,
    /// The work was given to a lock that had been released already, and was dropped.
    TooLate,
}

impl ReleaseError {
    /// The name of the error that this is in JavaScript; none if it is the work's own.
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
            // The lock adds nothing to it.
            Self::Failed(error) => error.fmt(f),
            Self::Lost(loss) => loss.fmt(f),
            Self::Panicked => f.write_str("a work that the lock was held for panicked"),
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
