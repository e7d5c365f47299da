//! Tasks that are polled by hand, promises that are settled by hand, and queries of a lock space.

use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};

use navlocks::Locks;
use navlocks::blocking::block_on;

/// A future that a test polls by hand, and whether it was woken since.
pub(crate) struct Task<T> {
    future: Pin<Box<dyn Future<Output = T> + Send>>,
    wakes: Arc<Wakes>,
}

#[derive(Default)]
struct Wakes(AtomicUsize);

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

impl<T> Task<T> {
    pub(crate) fn new(future: impl Future<Output = T> + Send + 'static) -> Self {
        Self { future: Box::pin(future), wakes: Arc::default() }
    }

    pub(crate) fn poll(&mut self) -> Poll<T> {
        self.wakes.0.store(0, Ordering::SeqCst);
        let waker = Waker::from(self.wakes.clone());
        self.future.as_mut().poll(&mut Context::from_waker(&waker))
    }

    /// Runs the future to its end on this thread.
    pub(crate) fn finish(self) -> T {
        block_on(self.future)
    }

    /// Returns true if it was woken since it was last polled.
    pub(crate) fn is_woken(&self) -> bool {
        self.wakes.0.load(Ordering::SeqCst) > 0
    }

    /// Polls once, and expects it to be pending.
    #[track_caller]
    pub(crate) fn waits(&mut self) {
        assert!(self.poll().is_pending(), "it should wait, and is done");
    }

    /// Polls once, and expects it to be ready.
    #[track_caller]
    pub(crate) fn ends(&mut self) -> T {
        let Poll::Ready(output) = self.poll() else { panic!("it should be done, and waits") };
        output
    }

    /// Expects that it was woken, polls once, and expects it to be ready.
    #[track_caller]
    pub(crate) fn wakes_and_ends(&mut self) -> T {
        assert!(self.is_woken(), "the task was not woken");
        self.ends()
    }
}

/// The outcome of a promise.
type Settled = Result<(), &'static str>;

/// The function that settles a promise.
pub(crate) struct Settle(Arc<Mutex<Slot>>);

/// Work that ends on demand, and records when it was dropped.
pub(crate) struct Promise(Arc<Mutex<Slot>>);

#[derive(Default)]
struct Slot {
    settled: Option<Settled>,
    waker: Option<Waker>,
    polls: usize,
    is_dropped: bool,
}

pub(crate) fn promise() -> (Settle, Promise) {
    let slot = Arc::new(Mutex::new(Slot::default()));
    (Settle(slot.clone()), Promise(slot))
}

impl Settle {
    pub(crate) fn fulfil(&self) {
        self.settle(Ok(()));
    }

    pub(crate) fn reject(&self, reason: &'static str) {
        self.settle(Err(reason));
    }

    fn settle(&self, settled: Settled) {
        let mut slot = self.0.lock().unwrap();
        slot.settled = Some(settled);
        let waker = slot.waker.take();
        drop(slot);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    pub(crate) fn polls(&self) -> usize {
        self.0.lock().unwrap().polls
    }

    pub(crate) fn is_dropped(&self) -> bool {
        self.0.lock().unwrap().is_dropped
    }
}

impl Future for Promise {
    type Output = Settled;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Settled> {
        let mut slot = self.0.lock().unwrap();
        slot.polls += 1;
        slot.waker = Some(cx.waker().clone());
        slot.settled.map_or(Poll::Pending, Poll::Ready)
    }
}

impl Drop for Promise {
    fn drop(&mut self) {
        self.0.lock().unwrap().is_dropped = true;
    }
}

/// Returns the scopes of all held locks, in the order of their grants.
pub(crate) fn held(locks: &Locks) -> Vec<String> {
    let snapshot = block_on(locks.query()).unwrap();
    snapshot.held.iter().map(|info| info.scope.to_string()).collect()
}

/// Returns the scopes of all pending requests, in queue order.
pub(crate) fn pending(locks: &Locks) -> Vec<String> {
    let snapshot = block_on(locks.query()).unwrap();
    snapshot.pending.iter().map(|info| info.scope.to_string()).collect()
}

/// Asserts that no lock is held and no request pending.
#[track_caller]
pub(crate) fn assert_idle(locks: &Locks) {
    assert_eq!((held(locks), pending(locks)), (vec![], vec![]));
}
