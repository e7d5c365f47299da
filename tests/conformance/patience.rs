//! Bounded waits: a promise that is not kept fails its test instead of hanging it.

use std::fmt::Display;
use std::panic::resume_unwind;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

/// Far more than any step here takes, on any machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// Wakes a parked thread, and records it.
struct Alarm {
    rung: AtomicBool,
    sleeper: Thread,
}

impl Wake for Alarm {
    fn wake(self: Arc<Self>) {
        self.rung.store(true, Ordering::SeqCst);
        self.sleeper.unpark();
    }
}

/// Runs a future to its end on this thread, and panics if it does not end. Unlike
/// `navlocks::blocking::block_on` it never polls without a wakeup, so that a lost wakeup shows.
#[track_caller]
pub(crate) fn soon<T>(future: impl IntoFuture<Output = T>) -> T {
    run(pin!(future.into_future()))
}

/// Runs a future as [`soon`] does, and is compiled once for each output and not for each future.
#[track_caller]
fn run<T>(mut future: Pin<&mut dyn Future<Output = T>>) -> T {
    let alarm = Arc::new(Alarm { rung: AtomicBool::new(false), sleeper: thread::current() });
    let waker = Waker::from(alarm.clone());
    let mut cx = Context::from_waker(&waker);
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut cx) {
            return output;
        }
        while !alarm.rung.swap(false, Ordering::SeqCst) {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                let late = future.as_mut().poll(&mut cx).is_ready();
                let what = if late {
                    "lost wakeup: it came, but no task was woken"
                } else {
                    "nothing came"
                };
                panic!("{what} within {PATIENCE:?}");
            }
            thread::park_timeout(left);
        }
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

/// Runs a function that may block for ever on a thread of its own, and panics if it does.
#[track_caller]
pub(crate) fn comes_back<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let (done, ended) = mpsc::channel();
    let work = thread::spawn(move || done.send(work()).ok());
    match ended.recv_timeout(PATIENCE) {
        Ok(result) => result,
        Err(RecvTimeoutError::Timeout) => panic!("it did not come back within {PATIENCE:?}"),
        Err(RecvTimeoutError::Disconnected) => resume_unwind(work.join().unwrap_err()),
    }
}

/// A gate that a future waits for until a test opens it.
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

    /// Opens once `future` was polled and is pending, and awaits it: a task that passes the gate
    /// knows that it sleeps.
    pub(crate) async fn open_asleep<T>(&self, future: impl IntoFuture<Output = T>) -> T {
        let mut future = pin!(future.into_future());
        std::future::poll_fn(|cx| {
            let poll = future.as_mut().poll(cx);
            if poll.is_pending() {
                self.open();
            }
            poll
        })
        .await
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
