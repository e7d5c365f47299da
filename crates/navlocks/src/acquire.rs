//! A request on its way: the future that waits for the lock.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_timer::Delay;
use navlocks_core::RequestId;

use crate::error::RequestError;
use crate::lock::Lock;
use crate::request::Request;
use crate::space::{Answer, Grant};

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
// In this order, so that a request is moved here in the pieces in which it was written: others would wait for the writes.
#[repr(C)]
pub struct Acquire {
    /// Gone once the result was given.
    request: Option<Request>,
    /// The place in the queue, while there is one.
    waiting: Option<Waiting>,
}

#[derive(Debug)]
struct Waiting {
    id: RequestId,
    /// Runs while there is a limit to the wait.
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
    pub(crate) fn new(request: Request) -> Self {
        Self { request: Some(request), waiting: None }
    }

    /// The answer, and `Pending` while there is none.
    #[inline]
    fn poll_answer(&mut self, cx: &mut Context<'_>) -> Answer {
        if self.waiting.is_some() {
            return self.poll_waiting(cx);
        }
        let Some(request) = &self.request else { over() };
        request.owner.home.request(request, cx.waker())
    }

    #[inline(never)]
    fn poll_waiting(&mut self, cx: &mut Context<'_>) -> Answer {
        let (Some(request), Some(waiting)) = (&self.request, &mut self.waiting) else {
            return Answer::Unavailable;
        };
        let home = &request.owner.home;
        let id = waiting.id;
        let mut answer = home.poll_request(id, cx.waker());
        if let (Answer::Pending(_), Some(timer)) = (&answer, &mut waiting.timer) {
            if Pin::new(timer).poll(cx).is_pending() {
                return answer;
            }
            answer = match request.timeout_of() {
                Some(after) if home.time_out(id) => {
                    Answer::Failed(RequestError::TimedOut { after })
                }
                // It was decided just before its time was up, and that counts.
                _ => home.poll_request(id, cx.waker()),
            };
        }
        if !matches!(answer, Answer::Pending(_)) {
            // From here on the guard has the place, or nobody.
            self.waiting = None;
        }
        answer
    }

    /// The lock of a request that was granted. It is given once.
    #[inline]
    fn lock(&mut self, grant: Grant) -> Lock {
        let Some(Request { owner, asked, .. }) = self.request.take() else { over() };
        Lock::new(owner, grant, asked)
    }

    /// What the future gives for any answer.
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

    /// Notes the place in the queue of a request without extras, which waits as long as it takes. False for any other.
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

/// There is nothing more to give.
#[cold]
fn over() -> ! {
    panic!("a lock request was polled after it had given its result")
}

impl Future for Acquire {
    type Output = Result<Lock, RequestError>;

    // Always, like all between the making of a request and here: what is not called by itself is not moved.
    #[inline(always)]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let answer = self.poll_answer(cx);
        // Looked at where it is, and the lock made in one go: every move of theirs costs as much as a part of the request.
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

impl TryAcquire {
    pub(crate) fn new(request: Request) -> Self {
        Self(Acquire::new(request))
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
            request.owner.home.abandon(waiting.id);
        }
    }
}
