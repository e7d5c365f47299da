//! A request on its way: the future that waits for the lock.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures_timer::Delay;
use navlocks_core::RequestId;

use crate::error::RequestError;
use crate::lock::Lock;
use crate::owner::Owner;
use crate::request::Request;
use crate::space::Answer;

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
pub struct Acquire {
    /// Gone once the result was given.
    request: Option<Request>,
    /// The place in the queue, while there is one.
    waiting: Option<RequestId>,
    /// Runs while there is a place in the queue and a limit to the wait.
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
        Self { request: Some(request), waiting: None, timer: None }
    }

    /// The answer, which is not `Pending` when it is ready.
    #[inline]
    fn poll_answer(&mut self, cx: &mut Context<'_>) -> Poll<Answer> {
        if let Some(id) = self.waiting {
            return self.poll_waiting(id, cx);
        }
        let Some(request) = &mut self.request else {
            panic!("a lock request was polled after it had given its result")
        };
        let tag = request.take_tag();
        let Owner { home, id, part, .. } = &*request.owner;
        match home.request(*id, *part, &request.asked, tag, cx.waker()) {
            Answer::Pending(id) => {
                self.waiting = Some(id);
                self.timer = request.timeout_of().map(|after| Box::new(Delay::new(after)));
                if self.timer.is_some() { self.poll_waiting(id, cx) } else { Poll::Pending }
            }
            answer => Poll::Ready(answer),
        }
    }

    #[inline(never)]
    fn poll_waiting(&mut self, id: RequestId, cx: &mut Context<'_>) -> Poll<Answer> {
        let Some(request) = &self.request else { return Poll::Pending };
        let home = &request.owner.home;
        let mut answer = home.poll_request(id, cx.waker());
        if let (Answer::Pending(_), Some(timer)) = (&answer, &mut self.timer) {
            ready!(Pin::new(timer).poll(cx));
            answer = match request.timeout_of() {
                Some(after) if home.time_out(id) => {
                    Answer::Failed(RequestError::TimedOut { after })
                }
                // It was decided just before its time was up, and that counts.
                _ => home.poll_request(id, cx.waker()),
            };
        }
        if let Answer::Pending(_) = answer {
            return Poll::Pending;
        }
        // From here on the guard has the place, or nobody.
        self.waiting = None;
        self.timer = None;
        Poll::Ready(answer)
    }

    /// What the future gives for an answer, and it gives it once.
    #[inline]
    fn finish(&mut self, answer: Answer) -> Result<Option<Lock>, RequestError> {
        let request = self.request.take();
        match (answer, request) {
            (Answer::Granted(grant), Some(Request { owner, asked, .. })) => {
                Ok(Some(Lock::new(owner, grant, asked)))
            }
            (Answer::Failed(error), _) => Err(error),
            _ => Ok(None),
        }
    }
}

impl Future for Acquire {
    type Output = Result<Lock, RequestError>;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let answer = ready!(self.poll_answer(cx));
        Poll::Ready(match self.finish(answer) {
            Ok(Some(lock)) => Ok(lock),
            // Among requests that may wait, only one that has no time to is ever unavailable.
            Ok(None) => Err(RequestError::TimedOut { after: Duration::ZERO }),
            Err(error) => Err(error),
        })
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
        let answer = ready!(self.0.poll_answer(cx));
        Poll::Ready(self.0.finish(answer))
    }
}

impl Drop for Acquire {
    fn drop(&mut self) {
        if let (Some(id), Some(request)) = (self.waiting, &self.request) {
            request.owner.home.abandon(id);
        }
    }
}
