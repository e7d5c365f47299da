//! A promise and the function that resolves it.

use std::convert::Infallible;
use std::future::Future;
use std::mem;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

/// Opens when it is dropped.
#[derive(Debug)]
pub(super) struct Gate(Arc<Mutex<State>>);

/// Ends when its gate opens.
#[derive(Debug)]
pub(super) struct Opened(Arc<Mutex<State>>);

#[derive(Debug)]
enum State {
    Closed(Option<Waker>),
    Open,
}

impl Gate {
    pub(super) fn new() -> (Self, Opened) {
        let state = Arc::new(Mutex::new(State::Closed(None)));
        (Self(state.clone()), Opened(state))
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Drop for Gate {
    fn drop(&mut self) {
        let before = mem::replace(&mut *lock(&self.0), State::Open);
        if let State::Closed(Some(waker)) = before {
            waker.wake();
        }
    }
}

impl Future for Opened {
    type Output = Result<(), Infallible>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let waker = cx.waker().clone();
        let mut state = lock(&self.0);
        let State::Closed(waiting) = &mut *state else { return Poll::Ready(Ok(())) };
        let _dropped_unlocked = waiting.replace(waker);
        drop(state);
        Poll::Pending
    }
}
