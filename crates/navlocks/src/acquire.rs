//! A request on its way: the future that waits for the lock.

use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_timer::Delay;
use navlocks_core::{RequestId, Wait};

use crate::backend::{Answer, Grant};
use crate::error::RequestError;
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
/// The request takes its place in the queue when this is first polled. Dropping the future aborts the request: it leaves
/// the queue at once, and those who waited for nothing else are granted. If the lock had been
/// granted and the future not been polled since, the lock passes on. Polling again with another future starts at the end of the queue.
#[derive(Debug)]
#[must_use = "a request does nothing until it is awaited"]
// In this order, so that a request is moved here in the pieces in which it was written: others
// would cause store-forwarding stalls.
#[repr(C)]
pub struct Acquire {
    /// Taken when the future is ready.
    request: Option<Request>,
    /// The place in the queue, while the request is pending.
    waiting: Option<Waiting>,
}

#[derive(Debug)]
struct Waiting {
    id: RequestId,
    /// Runs if the request has a timeout.
    timer: Option<Box<Delay>>,
}

/// The future of a [`TryRequest`](crate::TryRequest): resolves at once, to `None` when the lock is not free.
///
/// # Cancel safety
///
/// Dropping it before it was polled does nothing.
#[derive(Debug)]
#[must_use = "a request does nothing until it is awaited"]
pub struct TryAcquire(Acquire);

impl Acquire {
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
        let backend = &request.owner.backend;
        let id = waiting.id;
        let mut answer = backend.poll_request(id, cx.waker());
        if let (Answer::Pending(_), Some(timer)) = (&answer, &mut waiting.timer) {
            if Pin::new(timer).poll(cx).is_pending() {
                return answer;
            }
            answer = match request.timeout_of() {
                Some(after) if backend.time_out(id) => {
                    Answer::Failed(RequestError::TimedOut { after })
                }
                // It was decided just before its timeout, and that counts.
                _ => backend.poll_request(id, cx.waker()),
            };
        }
        if !matches!(answer, Answer::Pending(_)) {
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
            Answer::Unavailable => {
                self.request = None;
                Ok(None)
            }
            Answer::Failed(error) => {
                self.request = None;
                Err(error)
            }
        })
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
        let timeout = self.request.as_ref().and_then(Request::timeout_of);
        let timer = timeout.map(|after| Box::new(Delay::new(after)));
        let timed = timer.is_some();
        self.waiting = Some(Waiting { id, timer });
        if timed { self.poll_waiting(cx) } else { Answer::Pending(id) }
    }
}

/// Panics, because the future was ready before.
#[cold]
fn over() -> ! {
    panic!("a lock request was polled after it had given its result")
}

impl IntoFuture for Request {
    type Output = Result<Lock, RequestError>;
    type IntoFuture = Acquire;

    #[inline(always)]
    fn into_future(mut self) -> Acquire {
        // A request without time to wait tries once, and leaves no trace.
        if self.timeout_of() == Some(Duration::ZERO) && self.inner.wait == Wait::Queue {
            self.inner.wait = Wait::IfAvailable;
        }
        Acquire::new(self)
    }
}

impl IntoFuture for TryRequest {
    type Output = Result<Option<Lock>, RequestError>;
    type IntoFuture = TryAcquire;

    fn into_future(self) -> TryAcquire {
        TryAcquire(Acquire::new(self.into_inner()))
    }
}

impl Future for Acquire {
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
        // Among requests that may wait, only one that has no time to is ever unavailable.
        let timed_out = || RequestError::TimedOut { after: Duration::ZERO };
        self.finish(answer, cx).map(|finished| finished?.ok_or_else(timed_out))
    }
}

impl Future for TryAcquire {
    type Output = Result<Option<Lock>, RequestError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let answer = self.0.poll_answer(cx);
        self.0.finish(answer, cx)
    }
}

impl Drop for Acquire {
    #[inline]
    fn drop(&mut self) {
        if let (Some(waiting), Some(request)) = (&self.waiting, &self.request) {
            request.owner.backend.abandon(waiting.id);
        }
    }
}
