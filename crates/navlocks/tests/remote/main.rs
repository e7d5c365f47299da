//! `Locks::connect` against a scripted peer: it answers late, in pieces, wrongly or not at all, and
//! breaks off in the middle. Each test lists step by step the messages that are sent and received.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed, and says where")]

mod peer;
mod client;

mod answers;
mod streams;
mod leases;
mod resuming;
mod connection;
mod stealing;
mod dropping;
mod leaving;
mod runtimes;

use std::future::Future;
use std::panic::resume_unwind;
use std::pin::Pin;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use tokio::runtime::Builder;

/// Far above the duration of any test, so that a hang fails the test.
const PATIENCE: Duration = Duration::from_secs(30);

/// Runs a test with its client and its peer on one thread, so that nothing happens between two
/// steps.
fn run(test: impl Future<Output = ()> + Send + 'static) {
    // In a box, so that the runtime is compiled once and not for each test.
    let test: Pin<Box<dyn Future<Output = ()> + Send>> = Box::pin(test);
    bounded(|| {
        Builder::new_current_thread().enable_all().build().expect("a runtime").block_on(test)
    });
}

/// Runs a test that must end.
fn bounded(test: impl FnOnce() + Send + 'static) {
    let (ended, end) = mpsc::channel::<()>();
    let thread = thread::spawn(move || {
        let _ended = ended;
        test();
    });
    assert_ne!(end.recv_timeout(PATIENCE), Err(mpsc::RecvTimeoutError::Timeout), "it hangs");
    if let Err(panic) = thread.join() {
        resume_unwind(panic);
    }
}
