//! Requests that join the hold of an outer lock.

use std::future::IntoFuture;
use std::ops::Deref;
use std::pin::Pin;
use std::sync::Arc;

use crate::error::RequestError;
use crate::lock::Lock;
use crate::request::Request;

/// A request that joins the hold of its outer lock, made by [`Request::reentrant`].
#[derive(Debug)]
#[must_use = "a request does nothing until it is awaited"]
pub struct Reentrant<'a> {
    request: Request,
    outer: &'a Lock,
}

/// A lock from a [`Reentrant`] request: the outer one, or one of its own. Reads as a [`Lock`].
#[derive(Debug)]
#[must_use = "a lock that is not kept is released at once"]
pub enum Entered<'a> {
    /// The outer lock has all the names.
    Outer(&'a Lock),
    /// A lock that is released when this is dropped.
    Own(Lock),
}

impl Request {
    /// Works under `outer` if that lock has all the names, in a mode that allows no more holders;
    /// otherwise requests a lock [within](Self::within) it. A lock of another client covers
    /// nothing: its lock space may be another one.
    ///
    /// ```
    /// # navlocks::blocking::block_on(async {
    /// # let locks = navlocks::Locks::new();
    /// let outer = locks.request("account").await?;
    /// let inner = outer.request("account").reentrant(&outer).await?;
    /// assert_eq!(inner.fencing_token(), outer.fencing_token());
    /// # Ok::<(), navlocks::RequestError>(())
    /// # }).unwrap();
    /// ```
    pub fn reentrant(self, outer: &Lock) -> Reentrant<'_> {
        Reentrant { request: self, outer }
    }
}

impl<'a> Reentrant<'a> {
    /// Runs `work` under the lock and returns its result, as [`Request::with`].
    ///
    /// # Errors
    ///
    /// As awaiting the request; the work has not begun then.
    pub async fn with<T>(self, work: impl AsyncFnOnce(&Lock) -> T) -> Result<T, RequestError> {
        let lock = self.await?;
        Ok(work(&lock).await)
    }

    fn is_of_one_client(&self) -> bool {
        Arc::ptr_eq(&self.request.owner.client, &self.outer.owner.client)
    }

    /// Returns true if work under the outer lock needs no other one.
    fn is_covered(&self) -> bool {
        let Self { request, outer } = self;
        let names = request.inner.scope.names();
        self.is_of_one_client()
            && names.iter().all(|name| outer.scope().contains(name))
            && outer.mode().downgrades_to(request.inner.mode)
            && outer.loss().is_none()
    }
}

impl<'a> IntoFuture for Reentrant<'a> {
    type Output = Result<Entered<'a>, RequestError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send + 'a>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async {
            if self.is_covered() && self.request.error().is_none() {
                return Ok(Entered::Outer(self.outer));
            }
            let is_within = self.is_of_one_client();
            let Self { request, outer } = self;
            let request = if is_within { request.within(outer.request_id()) } else { request };
            Ok(Entered::Own(request.await?))
        })
    }
}

impl Deref for Entered<'_> {
    type Target = Lock;

    fn deref(&self) -> &Lock {
        match self {
            Self::Outer(lock) => lock,
            Self::Own(lock) => lock,
        }
    }
}
