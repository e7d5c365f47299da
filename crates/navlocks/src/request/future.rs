//! A request on its way: the future that waits for the lock.

use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use navlocks_core::{RequestId, Wait};

use super::timer::Timer;
use crate::backend::{Answer, Grant};
use crate::error::{RequestError, RequestErrorKind};
use crate::lock::Lock;
use crate::request::{Request, TryRequest};

/// The future of a [`Request`]: resolves to the [`Lock`].
///
/// # Errors
///
/// [`RequestError`] says why there is no lock. Nothing of the request is left then.
///
/// # Cancel safety
///
/// The request enters the queue when this future is first polled. Dropping the future aborts the
/// request: it leaves the queue at once, and requests that waited for it alone are granted. If the
/// lock was granted and the future not polled since, the lock is released. A new future starts at
/// the tail of the queue.
#[derive(Debug)]
#[must_use = "a request does nothing until it is awaited"]
// Fields are moved in the pieces in which they were written: another order would cause
// store-forwarding stalls.
#[repr(C)]
pub struct RequestFuture {
    /// Taken when the future is ready.
    request: Option<Request>,
    /// The place in the queue, while the request is pending.
    waiting: Option<Waiting>,
}

#[derive(Debug)]
struct Waiting {
    id: RequestId,
    /// Runs if the request has a timeout.
    timer: Option<Box<Timer>>,
}

/// The future of a [`TryRequest`](crate::TryRequest): resolves at once, to `None` when the lock is
/// not free.
///
/// # Cancel safety
///
/// Dropping it before it was polled does nothing.
#[derive(Debug)]
#[must_use = "a request does nothing until it is awaited"]
pub struct TryRequestFuture(RequestFuture);

impl RequestFuture {
    #[inline]
    fn new(request: Request) -> Self {
        Self { request: Some(request), waiting: None }
    }

    /// Returns the answer of this moment.
    #[inline]
    fn poll_answer(&mut self, cx: &mut Context<'_>) -> Answer {
        if self.waiting.is_some() {
            return self.poll_waiting(cx);
        }
        let Some(request) = &self.request else { over() };
        request.send(cx.waker())
    }

    #[inline(never)]
    fn poll_waiting(&mut self, cx: &mut Context<'_>) -> Answer {
        let (Some(request), Some(waiting)) = (&self.request, &mut self.waiting) else {
            return Answer::Unavailable;
        };
        let id = waiting.id;
        let answer = match (&mut waiting.timer, request.timeout_of()) {
            (Some(timer), Some(after)) => timer.poll(&request.owner, id, after, cx),
            _ => request.owner.backend.poll_request(id, cx.waker()),
        };
        if let Answer::Granted(_) = answer {
            // From here on the guard releases, and not this future.
            self.waiting = None;
        }
        answer
    }

    /// Makes the guard of a granted request, once.
    #[inline]
    fn lock(&mut self, grant: Grant) -> Lock {
        let Some(Request { owner, inner, .. }) = self.request.take() else { over() };
        Lock::new(owner, grant, inner)
    }

    /// Returns the output of the future for any answer.
    #[inline(never)]
    fn finish(
        &mut self,
        mut answer: Answer,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<Lock>, RequestError>> {
        if let Answer::Pending(id) = answer
            && self.waiting.is_none()
        {
            answer = self.begin_to_wait(id, cx);
        }
        Poll::Ready(match answer {
            Answer::Granted(grant) => Ok(Some(self.lock(grant))),
            Answer::Pending(_) => return Poll::Pending,
            Answer::Unavailable => Ok(None),
            Answer::Failed(kind) => Err(self.fail(kind)),
        })
    }

    /// Makes the error of a request that has no lock, once.
    fn fail(&mut self, kind: RequestErrorKind) -> RequestError {
        let timer = self.waiting.take().and_then(|waiting| waiting.timer);
        let holders = timer.map_or(Some(Vec::new()), |timer| timer.holders);
        let Some(Request { inner, owner, .. }) = self.request.take() else { over() };
        owner.client.note_over();
        RequestError::with_holders(kind, inner.scope, holders)
    }

    /// Returns the id of the request in queries and events, while it is pending. Through a service,
    /// it is a new id after the service has forgotten the request.
    ///
    /// ```
    /// # navlocks::blocking::block_on(async {
    /// # let locks = navlocks::Locks::new();
    /// use std::future::{IntoFuture, poll_fn};
    /// use std::task::Poll;
    ///
    /// let held = locks.request("a").await?;
    /// let mut waiting = locks.request("a").into_future();
    /// assert_eq!(waiting.request_id(), None); // not polled yet
    /// # use std::pin::Pin;
    /// poll_fn(|cx| Poll::Ready(Pin::new(&mut waiting).poll(cx).is_pending())).await;
    /// let id = waiting.request_id().expect("it is pending");
    /// assert_eq!(locks.blockers(id).await?.hard, [held.request_id()]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # }).unwrap();
    /// ```
    pub fn request_id(&self) -> Option<RequestId> {
        let (request, waiting) = (self.request.as_ref()?, self.waiting.as_ref()?);
        Some(request.owner.backend.shown_request(waiting.id))
    }

    /// Notes the place of a pending request without extras. Returns false for any other.
    #[inline]
    fn waits_for_ever(&mut self, id: RequestId) -> bool {
        let plain = self.request.as_ref().is_some_and(|request| request.extras.is_none());
        if plain && self.waiting.is_none() {
            self.waiting = Some(Waiting { id, timer: None });
        }
        plain
    }

    fn begin_to_wait(&mut self, id: RequestId, cx: &mut Context<'_>) -> Answer {
        let timeout = self.request.as_ref().and_then(Request::waits_at_most);
        let timer = timeout.map(|after| Box::new(Timer::new(after)));
        let timed = timer.is_some();
        self.waiting = Some(Waiting { id, timer });
        if timed { self.poll_waiting(cx) } else { Answer::Pending(id) }
    }
}

/// Panics, because the future was already ready.
#[cold]
fn over() -> ! {
    panic!("a lock request was polled after it had given its result")
}

impl IntoFuture for Request {
    type Output = Result<Lock, RequestError>;
    type IntoFuture = RequestFuture;

    #[inline(always)]
    fn into_future(mut self) -> RequestFuture {
        // A request with a timeout of zero tries once, and leaves no trace.
        if self.timeout_of() == Some(Duration::ZERO) && self.inner.wait == Wait::Queue {
            self.inner.wait = Wait::IfAvailable;
        }
        RequestFuture::new(self)
    }
}

impl IntoFuture for TryRequest {
    type Output = Result<Option<Lock>, RequestError>;
    type IntoFuture = TryRequestFuture;

    fn into_future(self) -> TryRequestFuture {
        TryRequestFuture(RequestFuture::new(self.into_inner()))
    }
}

impl Future for RequestFuture {
    type Output = Result<Lock, RequestError>;

    // Inlined, so that the guard is built in place: moving it costs a store-forwarding stall.
    #[inline(always)]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let answer = self.poll_answer(cx);
        // Matched by reference, so that the answer is not moved before the guard is built.
        match &answer {
            Answer::Granted(grant) => return Poll::Ready(Ok(self.lock(*grant))),
            Answer::Pending(id) if self.waits_for_ever(*id) => return Poll::Pending,
            _ => {}
        }
        // Of requests that may wait, only one with a timeout of zero is ever unavailable.
        let timed_out = RequestErrorKind::TimedOut { after: Duration::ZERO };
        self.finish(answer, cx).map(|finished| finished?.ok_or_else(|| self.fail(timed_out)))
    }
}

impl Future for TryRequestFuture {
    type Output = Result<Option<Lock>, RequestError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let answer = self.0.poll_answer(cx);
        let finished = self.0.finish(answer, cx);
        if let Poll::Ready(Ok(None)) = finished {
            (self.0.request, self.0.waiting) = (None, None);
        }
        finished
    }
}

impl Drop for RequestFuture {
    #[inline]
    fn drop(&mut self) {
        if let (Some(waiting), Some(request)) = (&self.waiting, &self.request) {
            request.owner.backend.abandon(waiting.id);
            request.owner.client.note_over();
        }
    }
}
