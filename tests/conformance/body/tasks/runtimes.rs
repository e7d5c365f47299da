//! Executors: any or none, `Send` types, blocking calls, and moves between threads.

use std::thread;
use std::time::Duration;

use navlocks::blocking::block_on;
use navlocks::{
    Events, Lock, Locks, LossCause, Request, RequestErrorKind, RequestFuture, TryRequest,
    TryRequestFuture,
};

use super::start;
use crate::backend::Backend;
use crate::patience::{Gate, comes_back, soon};
use crate::task::Task;
use crate::watch::{hold, queue, shows};

fn goes_anywhere<T: Send + 'static>(value: T) -> T {
    value
}

fn is_sync<T: Sync>() {}

#[test]
fn public_types_are_send() {
    fn goes<T: Send + 'static>() {}
    goes::<Locks>();
    goes::<Request>();
    goes::<TryRequest>();
    goes::<RequestFuture>();
    goes::<TryRequestFuture>();
    goes::<Lock>();
    goes::<Events>();
    is_sync::<Locks>();
    is_sync::<Lock>();
    let arm = start();
    let locks = arm.client();
    let with = {
        let locks = locks.clone();
        async move { locks.request("a").with(async |lock| lock.fencing_token()).await }
    };
    soon(goes_anywhere(with)).unwrap();
    soon(goes_anywhere(locks.request("a").with(async |_| 1))).unwrap();
    soon(goes_anywhere(locks.request("a").if_available().with(async |_| 1))).unwrap();
    let lock = hold(locks.request("a"), "lock");
    let watching = async move { (lock.is_contended().await, lock.contended().await) };
    drop(goes_anywhere(watching));
    let asking = async move { (locks.query().await, locks.deadlocks().await) };
    soon(goes_anywhere(asking)).0.unwrap();
}

#[test]
fn tasks_of_a_runtime_take_turns() {
    let arm = start();
    let watcher = arm.client();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
    let total = std::sync::Arc::new(std::sync::Mutex::new(0));
    let tasks: Vec<_> = (0..20)
        .map(|_| {
            let (locks, total) = (arm.client(), total.clone());
            runtime.spawn(async move {
                for _ in 0..20 {
                    let work = async |_: &Lock| {
                        // Without the lock two of them would read the same number.
                        let before = *total.lock().unwrap();
                        tokio::task::yield_now().await;
                        *total.lock().unwrap() = before + 1;
                    };
                    locks.request("total").with(work).await.unwrap();
                }
            })
        })
        .collect();
    for task in tasks {
        soon(task).unwrap();
    }
    assert_eq!(*total.lock().unwrap(), 400);
    shows(&watcher, [], []);
}

#[test]
fn aborted_task_releases_its_lock() {
    let arm = start();
    let [locks, other] = arm.clients();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
    let holds = runtime
        .spawn(locks.request("a").tag("holds").with(async |_| std::future::pending::<()>().await));
    shows(&other, ["holds"], []);
    let waits = runtime.spawn(locks.request("a").tag("waits").into_future());
    shows(&other, ["holds"], ["waits"]);
    let next = queue(&other, other.request("a"), "next");
    waits.abort();
    holds.abort();
    drop(next.join().unwrap());
}

#[test]
fn thread_without_runtime_blocks_until_its_grant() {
    comes_back(|| {
        let arm = start();
        let [holder, blocked] = arm.clients();
        let held = hold(holder.request("a"), "holder");
        let thread = thread::spawn(move || blocked.request("a").tag("blocked").lock_blocking());
        shows(&holder, ["holder"], ["blocked"]);
        drop(held);
        let lock = thread.join().unwrap().unwrap();
        shows(&holder, ["blocked"], []);
        drop(lock);
    });
}

#[test]
fn thread_without_runtime_can_use_every_call() {
    comes_back(|| {
        let arm = start();
        let [holder, locks] = arm.clients();
        let held = hold(holder.request("a"), "holder");
        assert!(locks.request("a").if_available().lock_blocking().unwrap().is_none());
        let after = Duration::from_millis(2);
        let error = locks.request("a").timeout(after).lock_blocking().unwrap_err();
        assert_eq!(error, RequestErrorKind::TimedOut { after });
        let stolen = locks.request("a").steal().lock_blocking().unwrap();
        assert_eq!(block_on(held.lost()), LossCause::Stolen { by: stolen.request_id().into() });
        assert_eq!(block_on(locks.request("b").with(async |_| 1)), Ok(1));
    });
}

#[test]
fn many_timeouts_pass_without_a_runtime() {
    let arm = start();
    let [holder, locks] = arm.clients();
    let _held = hold(holder.request("a"), "holder");
    let timeouts = (1..=50).map(Duration::from_millis);
    let requests: Vec<_> =
        timeouts.map(|after| (after, Task::start(locks.request("a").timeout(after)))).collect();
    for (after, request) in requests.into_iter().rev() {
        assert_eq!(request.join().unwrap_err(), RequestErrorKind::TimedOut { after });
    }
    shows(&locks, ["holder"], []);
}

#[test]
fn request_polled_on_one_thread_ends_on_another() {
    let arm = start();
    let [holder, locks] = arm.clients();
    let held = hold(holder.request("a"), "holder");
    let request = queue(&locks, locks.request("a"), "moves");
    let waker_of_this_thread_is_gone = thread::spawn(move || request.join().unwrap());
    drop(held);
    let lock = waker_of_this_thread_is_gone.join().unwrap();
    shows(&locks, ["moves"], []);
    drop(lock);
}

#[test]
fn last_registered_waker_is_woken() {
    let arm = start();
    let [holder, locks] = arm.clients();
    let held = hold(holder.request("a"), "holder");
    let mut request = queue(&locks, locks.request("a"), "request");
    let polled = Gate::default();
    thread::scope(|scope| {
        let polled = &polled;
        // Polled by hand a few times first, with a waker that wakes no task.
        for _ in 0..3 {
            assert!(!request.poll());
        }
        let waits = scope.spawn(move || {
            polled.open();
            request.join().unwrap()
        });
        soon(polled.opened());
        drop(held);
        drop(waits.join().unwrap());
    });
}
