//! Waiting that ends: a promise that is not kept fails its test instead of hanging it.

use std::fmt::Display;
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

/// Far more than anything here takes, on any machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Runs a future to its end on this thread, as `navlocks::block_on` does, and panics if that end does not come.
#[track_caller]
pub(crate) fn soon<T>(future: impl IntoFuture<Output = T>) -> T {
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut cx = Context::from_waker(&waker);
    let mut future = pin!(future.into_future());
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut cx) {
            return output;
        }
        let left = deadline.saturating_duration_since(Instant::now());
        assert!(!left.is_zero(), "nothing came within {PATIENCE:?}");
        thread::park_timeout(left);
    }
}

/// Repeats an attempt until it succeeds, and panics with its last failure if it never does.
#[track_caller]
pub(crate) fn eventually<T, E: Display>(mut attempt: impl FnMut() -> Result<T, E>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        match attempt() {
            Ok(success) => return success,
            Err(failure) => assert!(Instant::now() < deadline, "after {PATIENCE:?}: {failure}"),
        }
        thread::yield_now();
    }
}

/// What a future waits for until a test opens it.
#[derive(Clone, Default)]
pub(crate) struct Gate(Arc<Mutex<Latch>>);

#[derive(Default)]
struct Latch {
    open: bool,
    wakers: Vec<Waker>,
}

impl Gate {
    pub(crate) fn open(&self) {
        let mut latch = self.0.lock().unwrap();
        latch.open = true;
        let wakers = std::mem::take(&mut latch.wakers);
        drop(latch);
        wakers.into_iter().for_each(Waker::wake);
    }

    pub(crate) async fn opened(&self) {
        std::future::poll_fn(|cx| {
            let mut latch = self.0.lock().unwrap();
            if latch.open {
                return Poll::Ready(());
            }
            latch.wakers.push(cx.waker().clone());
            Poll::Pending
        })
        .await;
    }
}
