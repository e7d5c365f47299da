//! The four adapters of the explainer's FAQ: each release style made from another.
//!
//! > Any of the above approaches can be implemented in terms of the other.
//!
//! The FAQ sketched four of them. Here they are in Rust, as a proof, and for code in the terms of
//! one style that meets an API of another. The sketches' bugs are fixed: all four report a request
//! that fails or is aborted, and the scoped one returns its work's result. Each passes the tests of
//! the style that it imitates.
//!
//! ```
//! # navlocks::blocking::block_on(async {
//! # let locks = navlocks::Locks::new();
//! use navlocks::lineage::adapters::{explicit_from_auto, scoped_from_explicit};
//!
//! let explicit = explicit_from_auto(locks.request("resource").auto());
//! let length = scoped_from_explicit(explicit, async |lock| lock.scope().names().len());
//! assert_eq!(length.await?, 1);
//! # Ok::<(), navlocks::RequestError>(())
//! # }).unwrap();
//! ```

use std::fmt;
use std::future::{Future, IntoFuture, poll_fn};
use std::pin::Pin;
use std::sync::mpsc;
use std::task::{Context, Poll, Waker};

use navlocks_core::{FencingToken, Mode, Scope};

use super::auto::{AutoLock, Facts, ReleaseError};
use super::gate::Gate;
use crate::error::RequestError;
use crate::lock::Lock;
use crate::request::Request;

/// A lock to be released by hand, made from a lock that releases itself or from a callback under a
/// lock. Dropping it releases it, too.
#[must_use = "a lock that is not kept is released at once"]
pub struct ExplicitLock {
    facts: Facts,
    /// `holding` waits for this gate. Declared first, because fields are dropped in order.
    gate: Gate,
    holding: Pin<Box<dyn Future<Output = Result<(), ReleaseError>> + Send + Sync>>,
}

impl ExplicitLock {
    /// Returns the locked names, in order.
    pub fn scope(&self) -> &Scope {
        &self.facts.scope
    }

    /// Returns the mode: shared or exclusive.
    pub fn mode(&self) -> Mode {
        self.facts.mode
    }

    /// Returns the token, as [`Lock::fencing_token`].
    pub fn fencing_token(&self) -> FencingToken {
        self.facts.token
    }

    /// Releases the lock. It is free when this returns, unless another handle of an [`AutoLock`]
    /// added work to it.
    ///
    /// A second release does not compile:
    ///
    /// ```compile_fail,E0382
    /// # use navlocks::lineage::adapters::ExplicitLock;
    /// # fn twice(lock: ExplicitLock) {
    /// lock.release();
    /// lock.release();
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// There was nothing to release: the lock had been taken away.
    pub fn release(self) -> Result<(), ReleaseError> {
        let Self { gate, mut holding, .. } = self;
        drop(gate);
        match holding.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(outcome) => outcome,
            Poll::Pending => Ok(()),
        }
    }
}

impl fmt::Debug for ExplicitLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ExplicitLock").field(&self.facts).finish()
    }
}

/// "Can you implement explicit release in terms of auto-release?" The lock gets work that ends with
/// [`release`](ExplicitLock::release).
///
/// # Errors
///
/// Those of the request.
///
/// # Cancel safety
///
/// That of the request.
pub async fn explicit_from_auto<E>(
    request: impl IntoFuture<Output = Result<AutoLock, E>>,
) -> Result<ExplicitLock, E> {
    let lock = request.await?;
    let (gate, opened) = Gate::new();
    let holding = Box::pin(lock.wait_until(opened));
    Ok(ExplicitLock { facts: lock.facts().clone(), gate, holding })
}

/// "Can you implement auto-release in terms of explicit-release?" The FAQ's `Extendable` is
/// [`AutoLock`], which takes over a [`Lock`] and releases it when its work has ended.
///
/// # Errors
///
/// Those of the request.
///
/// # Cancel safety
///
/// That of the request.
pub async fn auto_from_explicit<E>(
    request: impl IntoFuture<Output = Result<Lock, E>>,
) -> Result<AutoLock, E> {
    request.await.map(AutoLock::from)
}

/// "Can you implement explicit release in terms of scoped release?" The lock is held by work that
/// reports the grant and then waits for [`release`](ExplicitLock::release).
///
/// # Errors
///
/// Those of the request; the sketch would have waited for ever.
///
/// # Cancel safety
///
/// That of the request.
pub async fn explicit_from_scoped(request: Request) -> Result<ExplicitLock, RequestError> {
    let (gate, opened) = Gate::new();
    let (tell, told) = mpsc::channel();
    let mut holding = Box::pin(async move {
        let held = request.with(async |lock| {
            // The receiver is gone only if the caller dropped its future, which drops this one too.
            let _ = tell.send(Ok(Facts::of(lock)));
            let Ok(()) = opened.await;
            lock.loss()
        });
        match held.await {
            Ok(None) => Ok(()),
            Ok(Some(loss)) => Err(ReleaseError::Lost(loss)),
            Err(error) => {
                let _ = tell.send(Err(error));
                Ok(())
            }
        }
    });
    let mut held = holding.as_mut();
    let granted = poll_fn(move |cx| {
        // The result of the poll is not needed: `holding` reports the grant itself.
        let _ = held.as_mut().poll(cx);
        told.try_recv().map_or(Poll::Pending, Poll::Ready)
    });
    Ok(ExplicitLock { facts: granted.await?, gate, holding })
}

/// "Can you implement scoped release in terms of explicit release?" Works with any lock that is
/// released on drop, so also when the work panics or is dropped.
///
/// # Errors
///
/// Those of the request; the work has not begun then.
///
/// # Cancel safety
///
/// Dropping the future while it waits drops the request; dropping it later drops the work and
/// releases the lock.
pub async fn scoped_from_explicit<L, E, T>(
    request: impl IntoFuture<Output = Result<L, E>>,
    work: impl AsyncFnOnce(&L) -> T,
) -> Result<T, E> {
    let lock = request.await?;
    Ok(work(&lock).await)
}
