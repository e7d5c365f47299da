//! `acquire` and `forceRelease`, as far as a Rust API can show them.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;

use navlocks::blocking::block_on;
use navlocks::lineage::{AcquireOptions, acquire, force_release};
use navlocks::{Lock, Locks, LossCause, Mode, RequestError, RequestErrorKind};

use crate::support::{Promise, Settle, Task, assert_idle, held, pending, promise};

const WAITS: AcquireOptions =
    AcquireOptions { mode: Mode::Exclusive, if_available: false, steal: false };
const SHARED: AcquireOptions = AcquireOptions { mode: Mode::Shared, ..WAITS };
const STEALS: AcquireOptions = AcquireOptions { steal: true, ..WAITS };

/// Acquires `a` for work that ends on demand, and returns whether it had the lock.
fn task(locks: &Locks, options: AcquireOptions) -> (Settle, Task<Result<bool, RequestError>>) {
    let (settle, promise) = promise();
    let locks = locks.clone();
    let work = async |lock: Option<&Lock>| {
        promise.await.unwrap();
        lock.is_some()
    };
    (settle, Task::new(async move { acquire(&locks, "a", options, work).await }))
}

fn holds(locks: &Locks, options: AcquireOptions) -> (Settle, Task<Result<bool, RequestError>>) {
    let (settle, mut task) = task(locks, options);
    task.waits();
    assert!(settle.polls() > 0, "it should hold the lock");
    (settle, task)
}

fn waits(locks: &Locks, options: AcquireOptions) -> (Settle, Task<Result<bool, RequestError>>) {
    let (settle, mut task) = task(locks, options);
    task.waits();
    assert_eq!(settle.polls(), 0, "it should wait for the lock");
    (settle, task)
}

#[test]
fn p01_acquire_returns_the_result_of_the_work() {
    let locks = Locks::new();
    let defaults = AcquireOptions::default();
    let name = async |lock: Option<&Lock>| lock.map(|lock| lock.scope().to_string());
    assert_eq!(block_on(acquire(&locks, "a", defaults, name)), Ok(Some("a".to_owned())));
    let mode = async |lock: Option<&Lock>| lock.map(Lock::mode);
    assert_eq!(block_on(acquire(&locks, "a", SHARED, mode)), Ok(Some(Mode::Shared)));
    let fails = async |_: Option<&Lock>| Err::<(), &str>("its own failure");
    assert_eq!(block_on(acquire(&locks, "a", defaults, fails)), Ok(Err("its own failure")));
    assert_idle(&locks);
}

#[test]
fn p01_acquire_holds_lock_while_work_runs() {
    let locks = Locks::new();
    let (settle, mut first) = holds(&locks, WAITS);
    let (second_settles, mut second) = waits(&locks, WAITS);
    settle.fulfil();
    assert_eq!(first.wakes_and_ends(), Ok(true));
    second_settles.fulfil();
    assert_eq!(second.wakes_and_ends(), Ok(true));
    assert_idle(&locks);
}

#[test]
fn p09_acquire_by_default_steals_nothing() {
    let locks = Locks::new();
    let (settle, mut first) = holds(&locks, AcquireOptions::default());
    let _second = waits(&locks, AcquireOptions::default());
    settle.fulfil();
    assert_eq!(first.wakes_and_ends(), Ok(true));
}

#[test]
fn p11_d06_steal_aborts_all_pending_requests() {
    let locks = Locks::new();
    let robbed = block_on(locks.request("a").into_future()).unwrap();
    let (_, mut one) = waits(&locks, WAITS);
    let (_, mut two) = waits(&locks, SHARED);
    let (settle, mut thief) = holds(&locks, STEALS);
    let Some(LossCause::Stolen { by }) = robbed.loss() else { panic!("it was not stolen") };
    for loser in [&mut one, &mut two] {
        assert_eq!(
            loser.wakes_and_ends().unwrap_err(),
            RequestErrorKind::Stolen { by: by.clone() }
        );
    }
    assert_eq!((held(&locks), pending(&locks)), (vec!["a".to_owned()], vec![]));
    settle.fulfil();
    assert_eq!(thief.wakes_and_ends(), Ok(true));
    drop(robbed);
    assert_idle(&locks);
}

#[test]
fn p13_options_do_not_exclude_each_other() {
    let locks = Locks::new();
    let readers = [0, 1].map(|_| block_on(locks.request("a").shared().into_future()).unwrap());
    let all = AcquireOptions { mode: Mode::Shared, if_available: true, steal: true };
    let (settle, mut thief) = holds(&locks, all);
    assert!(readers.iter().all(|reader| reader.loss().is_some()));
    // The lock that it got is shared.
    drop(block_on(locks.request("a").shared().into_future()).unwrap());
    settle.fulfil();
    assert_eq!(thief.wakes_and_ends(), Ok(true));
}

#[test]
fn p14_unavailable_request_runs_its_work_without_the_lock() {
    let locks = Locks::new();
    let _holder = block_on(locks.request("a").into_future()).unwrap();
    let (settle, mut without) =
        task(&locks, AcquireOptions { if_available: true, ..AcquireOptions::default() });
    without.waits();
    assert_eq!((settle.polls(), pending(&locks)), (1, vec![]));
    settle.fulfil();
    assert_eq!(without.wakes_and_ends(), Ok(false));
}

#[test]
fn p15_abort_of_pending_request_leaves_queue() {
    let locks = Locks::new();
    let reader = block_on(locks.request("a").shared().into_future()).unwrap();
    let (settle, aborted) = waits(&locks, WAITS);
    let (_, mut behind) = waits(&locks, SHARED);
    drop(aborted);
    assert!(settle.is_dropped() && settle.polls() == 0);
    assert!(behind.is_woken());
    behind.waits();
    assert_eq!(held(&locks), ["a", "a"]);
    drop((reader, behind));
    assert_idle(&locks);
}

#[test]
fn acquire_dropped_after_grant_ends_work_and_releases_lock() {
    // Cancellation in Rust, which the draft does not have: its abort leaves the work running.
    let locks = Locks::new();
    let (settle, dropped) = holds(&locks, WAITS);
    let (_, next) = waits(&locks, WAITS);
    drop(dropped);
    assert!(settle.is_dropped());
    assert!(next.is_woken());
}

#[test]
fn p15_abort_after_grant_rejects_and_leaves_lock_held() {
    // The draft's signal after the grant: the caller gets the error, and the callback continues
    // under the lock.
    let locks = Locks::new();
    let (settle, goes_on) = promise();
    let own = locks.clone();
    let mut acquiring =
        Box::pin(async move { acquire(&own, "a", WAITS, async |_| goes_on.await.unwrap()).await });
    let (abort, mut signal) = promise();
    let mut caller = Task::new(async move {
        race(&mut acquiring, &mut signal).await.map_err(|aborted| (aborted, acquiring))
    });
    caller.waits();
    assert_eq!(held(&locks), ["a"]);
    abort.fulfil();
    let Err((aborted, acquiring)) = caller.wakes_and_ends() else { panic!("it was aborted") };
    assert_eq!((aborted, held(&locks)), ("aborted", vec!["a".to_owned()]));
    // A Rust caller keeps the future, and can await its end.
    settle.fulfil();
    assert_eq!(block_on(acquiring), Ok(()));
    assert_idle(&locks);
}

/// Returns the first result, unless the signal comes before.
async fn race<F: Future + Unpin>(
    first: &mut F,
    signal: &mut Promise,
) -> Result<F::Output, &'static str> {
    poll_fn(|cx| match Pin::new(&mut *first).poll(cx) {
        Poll::Ready(output) => Poll::Ready(Ok(output)),
        Poll::Pending => Pin::new(&mut *signal).poll(cx).map(|_| Err("aborted")),
    })
    .await
}

#[test]
fn p16_d07_decision_4_force_release_takes_all_locks_of_name_at_once() {
    let locks = Locks::new();
    let readers = [0, 1].map(|_| block_on(locks.request("a").shared().into_future()).unwrap());
    let both = block_on(locks.request(["b", "c"]).into_future()).unwrap();
    let (settle, mut writer) = waits(&locks, WAITS);
    assert_eq!(block_on(force_release(&locks, "a")), Ok(2));
    assert_eq!(readers.map(|reader| reader.loss()), [const { Some(LossCause::ForceReleased) }; 2]);
    settle.fulfil();
    assert_eq!(writer.wakes_and_ends(), Ok(true));
    assert_eq!((both.loss(), held(&locks)), (None, vec!["{b, c}".to_owned()]));
    assert_eq!(block_on(force_release(&locks, "a")), Ok(0));
}

#[test]
fn p17_end_of_client_releases_its_acquired_locks() {
    let locks = Locks::new();
    let ends = locks.new_client();
    let own = ends.clone();
    // The work learns of the loss, and must stop itself.
    let until_lost = async |lock: Option<&Lock>| lock.unwrap().lost().await;
    let mut working = Task::new(async move { acquire(&own, "a", WAITS, until_lost).await });
    working.waits();
    let (never, mut pending) = waits(&ends, WAITS);
    let (settle, mut next) = waits(&locks, WAITS);
    ends.end_client();
    settle.fulfil();
    assert_eq!(next.wakes_and_ends(), Ok(true));
    assert_eq!(working.wakes_and_ends(), Ok(LossCause::ClientEnded));
    assert_eq!(pending.wakes_and_ends().unwrap_err(), RequestErrorKind::ClientEnded);
    assert_eq!(never.polls(), 0);
    assert_idle(&locks);
}

#[test]
fn p18_d17_names_with_hyphen_are_not_reserved() {
    let locks = Locks::new();
    for name in ["-a", "-", ""] {
        let granted = acquire(&locks, name, WAITS, async |lock| lock.is_some());
        assert_eq!(block_on(granted), Ok(true));
    }
}
