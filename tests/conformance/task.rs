//! A future that a test polls by hand, so that it decides when somebody hears of something.

use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use crate::patience::soon;

/// A future that was polled once when it was made, and since then only when the test says so.
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

    /// Gives the future a turn. True when it has come to its end.
    pub(crate) fn poll(&mut self) -> bool {
        self.poll_for(Waker::noop())
    }

    /// The same, on behalf of somebody who wants to be woken.
    pub(crate) fn poll_for(&mut self, waker: &Waker) -> bool {
        if self.output.is_none() {
            let mut cx = Context::from_waker(waker);
            if let Poll::Ready(output) = self.future.as_mut().poll(&mut cx) {
                self.output = Some(output);
            }
        }
        self.output.is_some()
    }

    /// What the future gave, or will give if it is driven from now on.
    #[track_caller]
    pub(crate) fn join(self) -> T {
        soon(self.finish())
    }

    /// The same, for somebody who can await.
    pub(crate) async fn finish(self) -> T {
        match self.output {
            Some(output) => output,
            None => self.future.await,
        }
    }
}
