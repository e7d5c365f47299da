//! A future that a test polls by hand, so that the test decides when its task learns of events.

use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use crate::patience::soon;

/// A future that was polled once when it was made, and since then only by the test.
pub(crate) struct Task<'a, T> {
    future: Pin<Box<dyn Future<Output = T> + Send + 'a>>,
    output: Option<T>,
}

impl<'a, T> Task<'a, T> {
    pub(crate) fn start<F>(future: F) -> Self
    where
        F: IntoFuture<Output = T, IntoFuture: Send + 'a>,
    {
        let mut task = Self { future: Box::pin(future.into_future()), output: None };
        task.poll();
        task
    }

    /// Polls the future. Returns true when it is ready.
    pub(crate) fn poll(&mut self) -> bool {
        self.poll_for(Waker::noop())
    }

    /// Polls the future with this waker.
    pub(crate) fn poll_for(&mut self, waker: &Waker) -> bool {
        if self.output.is_none() {
            let mut cx = Context::from_waker(waker);
            if let Poll::Ready(output) = self.future.as_mut().poll(&mut cx) {
                self.output = Some(output);
            }
        }
        self.output.is_some()
    }

    /// Returns the result, driving the future if necessary.
    #[track_caller]
    pub(crate) fn join(self) -> T {
        soon(self.finish())
    }

    /// Returns the same, as a future.
    pub(crate) async fn finish(self) -> T {
        match self.output {
            Some(output) => output,
            None => self.future.await,
        }
    }
}
