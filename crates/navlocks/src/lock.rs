//! A lock that is held.

pub(crate) mod watch;

use std::fmt;
use std::future::{Future, IntoFuture, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use navlocks_core::{FencingToken, Mode, Request, RequestId, Scope};

use self::watch::LossWatch;
use crate::backend::{Grant, Watched};
use crate::error::{DowngradeError, LossCause, QueryError};
use crate::owner::Owner;

/// A lock that is held. Dropping it releases it, also in a panic.
///
/// A lock is `'static` and `Send`: moving it to another task or thread passes the lock on without
/// releasing it. Its client does not change.
#[must_use = "a lock that is not kept is released at once"]
// In this order, so that a lock is moved in the pieces in which it was written: others would cause
// store-forwarding stalls. An error would stand at the first word, which is written apart for that.
#[repr(C)]
pub struct Lock {
    pub(crate) owner: Arc<Owner>,
    request: Request,
    grant: Grant,
}

impl Lock {
    #[inline]
    pub(crate) fn new(owner: Arc<Owner>, grant: Grant, request: Request) -> Self {
        Self { owner, request, grant }
    }

    /// Returns the locked names, in order.
    pub fn scope(&self) -> &Scope {
        &self.request.scope
    }

    /// Returns the mode: exclusive, shared, or limited.
    pub fn mode(&self) -> Mode {
        self.request.mode
    }

    /// Returns a number larger than that of every lock granted before in this space. Send it with
    /// each write to the resource: a resource that refuses smaller numbers than it has seen is safe
    /// from a late holder.
    pub fn fencing_token(&self) -> FencingToken {
        self.grant.token
    }

    /// Returns the id of the lock in queries and events.
    pub fn request_id(&self) -> RequestId {
        self.grant.id
    }

    /// Gives the lock a mode that allows more holders, in place: exclusive to limited or shared, or
    /// a larger limit. It keeps its token, no other request comes between, and waiters that fit now
    /// are granted.
    ///
    /// There is no upgrade, because two holders that upgrade would wait for each other: release the
    /// lock, request the stricter one, and look again at what it protects.
    ///
    /// ```
    /// # navlocks::blocking::block_on(async {
    /// # let locks = navlocks::Locks::new();
    /// use navlocks::Mode;
    ///
    /// let mut cache = locks.request("cache").await?;
    /// // … fill the cache …
    /// cache.downgrade(Mode::Shared).await?; // readers come in, and no other writer
    /// let reader = locks.request("cache").shared().await?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # }).unwrap();
    /// ```
    ///
    /// # Errors
    ///
    /// The lock is lost, or the new mode allows fewer holders. Nothing has changed then.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future does not take the downgrade back: the lock has the new mode as soon as
    /// the service receives that.
    pub async fn downgrade(&mut self, mode: Mode) -> Result<(), DowngradeError> {
        let is_done = self.owner.backend.downgrade(self.grant.id, mode)?;
        // Before the answer, because the future may be dropped.
        let earlier = std::mem::replace(&mut self.request.mode, mode);
        if is_done {
            return Ok(());
        }
        let mut watching = Watching { lock: self, watched: Watched::Downgrade, watch: None };
        let downgraded = poll_fn(|cx| watching.poll(cx)).await;
        drop(watching);
        downgraded.map_err(|loss| {
            self.request.mode = earlier;
            DowngradeError::Lost(loss)
        })
    }

    /// Releases the lock.
    ///
    /// # Errors
    ///
    /// There was nothing to release: the lock had been lost, with this cause.
    pub fn release(mut self) -> Result<(), LossCause> {
        self.grant.losses = Grant::OVER;
        let released = self.owner.backend.release(self.grant.id);
        self.owner.client.note_over();
        released
    }

    /// Returns how the lock was lost, if it was. Cheap while no lock was lost in the whole space:
    /// one load.
    pub fn loss(&self) -> Option<LossCause> {
        let backend = &self.owner.backend;
        if backend.losses() == self.grant.losses { None } else { backend.loss(self.grant.id) }
    }

    /// Runs `work` until it ends or the lock is lost: then `work` is dropped at its next await, and
    /// the cause returned. The lock stays with the caller, who may do more under it.
    ///
    /// ```
    /// # navlocks::blocking::block_on(async {
    /// # let locks = navlocks::Locks::new();
    /// # async fn write(_: navlocks::FencingToken) -> u32 { 7 }
    /// use navlocks::LossCause;
    ///
    /// let lock = locks.request("report").await?;
    /// let written = lock.guard(write(lock.fencing_token())).await;
    /// assert_eq!(written, Ok(7));
    ///
    /// locks.force_release("report").await?;
    /// let endless = std::future::pending::<()>();
    /// assert_eq!(lock.guard(endless).await, Err(LossCause::ForceReleased));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # }).unwrap();
    /// ```
    ///
    /// # Errors
    ///
    /// The lock was lost before `work` ended. Its effects until then stay, so
    /// protect the resource with the [fencing token](Self::fencing_token).
    ///
    /// # Cancel safety
    ///
    /// Dropping the future drops the work, and the lock stays held.
    pub async fn guard<F: IntoFuture>(&self, work: F) -> Result<F::Output, LossCause> {
        let mut lost = self.lost();
        let mut work = pin!(work.into_future());
        poll_fn(|cx| match Pin::new(&mut lost).poll(cx) {
            Poll::Ready(cause) => Poll::Ready(Err(cause)),
            Poll::Pending => work.as_mut().poll(cx).map(Ok),
        })
        .await
    }

    /// Resolves when the lock is lost, with the cause; never, if it is not.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future and asking again loses nothing.
    pub fn lost(&self) -> Lost<'_> {
        Lost(Watching { lock: self, watched: Watched::Loss, watch: None })
    }

    /// Returns a watch for the loss of the lock that borrows nothing, for a task of its own that
    /// stops the work at the loss.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// use navlocks::{Locks, LossCause};
    ///
    /// let locks = Locks::new();
    /// let lock = locks.request("leader").await?;
    /// let watch = tokio::spawn(lock.watch_loss());
    /// let thief = locks.request("leader").steal().await?;
    /// assert_eq!(watch.await?, Some(LossCause::Stolen { by: thief.request_id().into() }));
    ///
    /// let watch = tokio::spawn(thief.watch_loss());
    /// drop(thief);
    /// assert_eq!(watch.await?, None);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # }).unwrap();
    /// ```
    pub fn watch_loss(&self) -> LossWatch {
        LossWatch::new(Arc::downgrade(&self.owner), self.grant.id)
    }

    /// Resolves when a request waits for the lock, so that a holder can release it early.
    ///
    /// # Errors
    ///
    /// The lock was lost meanwhile.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future and asking again loses nothing.
    pub fn contended(&self) -> Contended<'_> {
        Contended(Watching { lock: self, watched: Watched::Contention, watch: None })
    }

    /// Returns whether the watched event has come; if not, wakes `waker` when it may have.
    pub(crate) fn poll_watch(
        &self,
        watched: Watched,
        watch: &mut Option<u64>,
        waker: &Waker,
    ) -> Poll<Result<(), LossCause>> {
        self.owner.backend.poll_watch(self.grant.id, watched, watch, waker)
    }

    /// Returns true if a request waits for the lock now.
    ///
    /// # Errors
    ///
    /// [`QueryError`] says why there is no answer.
    pub async fn is_contended(&self) -> Result<bool, QueryError> {
        self.owner.backend.is_contended(self.owner.sender.client, self.grant.id).await
    }
}

impl fmt::Debug for Lock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lock")
            .field("request", &self.grant.id)
            .field("scope", &self.request.scope)
            .field("mode", &self.request.mode)
            .field("fencing_token", &self.grant.token)
            .finish_non_exhaustive()
    }
}

impl Drop for Lock {
    #[inline]
    fn drop(&mut self) {
        if self.grant.losses != Grant::OVER {
            // A dropped guard does not report its loss.
            let _lost_or_released = self.owner.backend.release(self.grant.id);
            self.owner.client.note_over();
        }
    }
}

/// The future of [`Lock::lost`].
#[derive(Debug)]
#[must_use = "futures do nothing until they are awaited"]
pub struct Lost<'a>(Watching<'a>);

/// The future of [`Lock::contended`].
#[derive(Debug)]
#[must_use = "futures do nothing until they are awaited"]
pub struct Contended<'a>(Watching<'a>);

/// A holder that waits for an event of its lock.
#[derive(Debug)]
struct Watching<'a> {
    lock: &'a Lock,
    watched: Watched,
    /// The number of the watch, once it is registered.
    watch: Option<u64>,
}

impl Watching<'_> {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), LossCause>> {
        self.lock.poll_watch(self.watched, &mut self.watch, cx.waker())
    }
}

impl Future for Lost<'_> {
    type Output = LossCause;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<LossCause> {
        match self.0.poll(cx) {
            Poll::Ready(Err(loss)) => Poll::Ready(loss),
            _ => Poll::Pending,
        }
    }
}

impl Future for Contended<'_> {
    type Output = Result<(), LossCause>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.0.poll(cx)
    }
}

impl Drop for Watching<'_> {
    fn drop(&mut self) {
        if let Some(watch) = self.watch {
            self.lock.owner.backend.unwatch(self.lock.grant.id, watch);
        }
    }
}
