//! The guard: released once, moved between threads, and notified of a loss.

use std::sync::mpsc;
use std::thread;

use navlocks::{Lock, LossCause};

use super::start;
use crate::backend::Backend;
use crate::patience::{Gate, soon};
use crate::task::Task;
use crate::watch::{caught_up, hold, queue, received, shows, subscribe, words};

#[test]
fn decision_3_x21_release_consumes_the_guard() {
    let _: fn(Lock) -> Result<(), LossCause> = Lock::release;
    let arm = start();
    let [locks, other] = arm.clients();
    let lock = hold(locks.request("a"), "1st");
    let next = queue(&other, other.request("a"), "2nd");
    let mut events = subscribe(&other);
    assert_eq!(lock.release(), Ok(()));
    let next = next.join().unwrap();
    // Dropping the guard released it once, and no later lock.
    assert_eq!(words(&received(&locks, &mut events)), ["1st released", "2nd granted"]);
    shows(&locks, ["2nd"], []);
    drop(next);
}

#[test]
fn decision_3_x21_release_of_lost_lock_returns_the_loss() {
    let arm = start();
    let [locks, admin] = arm.clients();
    let lock = hold(locks.request("a"), "lock");
    assert_eq!(soon(admin.force_release("a")), Ok(1));
    assert_eq!(soon(lock.lost()), LossCause::ForceReleased);
    assert_eq!(lock.release(), Err(LossCause::ForceReleased));
}

#[test]
fn guard_is_released_when_it_is_dropped() {
    let arm = start();
    let [locks, other] = arm.clients();
    let lock = hold(locks.request("a"), "lock");
    let next = queue(&other, other.request("a"), "next");
    drop(lock);
    drop(next.join().unwrap());
}

#[test]
fn guard_outlives_the_handle_it_came_from() {
    let arm = start();
    let [locks, other] = arm.clients();
    let client = locks.client_id();
    let lock = hold(locks.request("a"), "lock");
    drop(locks);
    let now = shows(&other, ["lock"], []);
    assert_eq!(now.held[0].client, client);
    assert_eq!(lock.locks().client_id(), client);
    assert_eq!(lock.release(), Ok(()));
    shows(&other, [], []);
}

#[test]
fn guard_moved_to_another_thread_stays_held() {
    let arm = start();
    let [locks, other] = arm.clients();
    let lock = hold(locks.request("a"), "lock");
    let next = queue(&other, other.request("a"), "next");
    let mut events = subscribe(&other);
    let (id, client) = (lock.request_id(), locks.client_id());
    let handed = thread::spawn(move || {
        let now = shows(&other, ["lock"], ["next"]);
        assert_eq!((now.held[0].request, now.held[0].client), (id, client));
        assert_eq!(words(&received(&other, &mut events)), [""; 0]);
        drop(lock);
        events
    });
    let mut events = handed.join().unwrap();
    let next = next.join().unwrap();
    assert_eq!(words(&received(&locks, &mut events)), ["lock released", "next granted"]);
    drop(next);
}

#[test]
fn tokens_grow_with_every_grant_of_any_name() {
    let arm = start();
    let clients: [_; 3] = arm.clients();
    let mut last = None;
    for round in 0..30 {
        let locks = &clients[round % 3];
        let lock = soon(locks.request(["a", "b", "c", "d"][round % 4])).unwrap();
        assert!(last < Some(lock.fencing_token()));
        last = Some(lock.fencing_token());
        drop(lock);
        caught_up(locks);
    }
}

#[test]
fn loss_wakes_all_watches_of_the_lock() {
    let arm = start();
    let [locks, thief] = arm.clients();
    let lock = hold(locks.request("a"), "lock");
    let mut given_up = Task::start(lock.lost());
    let here = [Task::start(lock.lost()), Task::start(lock.lost())];
    assert!(!given_up.poll());
    drop(given_up);
    let by = thread::scope(|scope| {
        let (lock, gates) = (&lock, [Gate::default(), Gate::default()]);
        let there =
            gates.clone().map(|asleep| scope.spawn(move || soon(asleep.open_asleep(lock.lost()))));
        gates.iter().for_each(|asleep| soon(asleep.opened()));
        let by = soon(thief.request("a").steal()).unwrap().request_id();
        for watcher in there {
            assert_eq!(watcher.join().unwrap(), LossCause::Stolen { by: by.into() });
        }
        by
    });
    for watcher in here {
        assert_eq!(watcher.join(), LossCause::Stolen { by: by.into() });
    }
    // A later call has the same answer, every time.
    assert_eq!(soon(lock.lost()), LossCause::Stolen { by: by.into() });
    assert_eq!(lock.loss(), Some(LossCause::Stolen { by: by.into() }));
    assert_eq!(lock.loss(), Some(LossCause::Stolen { by: by.into() }));
    assert_eq!(lock.release(), Err(LossCause::Stolen { by: by.into() }));
}

#[test]
fn loss_is_received_by_watches_that_outlive_the_guard() {
    let arm = start();
    let [locks, thief] = arm.clients();
    let [lost, released] = ["a", "b"].map(|name| hold(locks.request(name), name));
    let mut watches = [&lost, &lost, &released].map(|lock| Task::start(lock.watch_loss()));
    let unpolled = [&lost, &released].map(|lock| lock.watch_loss());
    assert!(!watches[0].poll());
    let by = soon(thief.request("a").steal()).unwrap().request_id();
    let [first, second, third] = watches;
    assert_eq!(first.join(), Some(LossCause::Stolen { by: by.into() }));
    assert_eq!(second.join(), Some(LossCause::Stolen { by: by.into() }));
    drop((lost, released));
    assert_eq!(third.join(), None);
    for watch in unpolled {
        assert_eq!(soon(watch), None);
    }
}

#[test]
fn loss_is_reported_only_for_its_lock() {
    let arm = start();
    let [locks, admin] = arm.clients();
    let [lost, kept] = ["a", "b"].map(|name| hold(locks.request(name), name));
    let mut waits = Task::start(kept.lost());
    assert_eq!(soon(admin.force_release("a")), Ok(1));
    assert_eq!(soon(lost.lost()), LossCause::ForceReleased);
    assert!(!waits.poll());
    assert_eq!(kept.loss(), None);
    drop(waits);
    assert_eq!(kept.release(), Ok(()));
}

#[test]
fn guarded_work_ends_with_its_result_or_with_the_loss() {
    let arm = start();
    let [locks, admin] = arm.clients();
    let lock = hold(locks.request("a"), "lock");
    assert_eq!(soon(lock.guard(async { 7 })), Ok(7));
    shows(&admin, ["lock"], []);

    let (dropped, is_dropped) = mpsc::channel::<()>();
    let work = async move {
        let _told_when_dropped = dropped;
        std::future::pending::<()>().await;
    };
    let ended = thread::scope(|scope| {
        let ended = scope.spawn(|| soon(lock.guard(work)));
        assert_eq!(soon(admin.force_release("a")), Ok(1));
        ended.join().unwrap()
    });
    assert_eq!(ended, Err(LossCause::ForceReleased));
    assert_eq!(is_dropped.try_recv(), Err(mpsc::TryRecvError::Disconnected));
    // Work that would begin after the loss is not polled.
    assert_eq!(
        soon(lock.guard(async { panic!("it began") })),
        Err::<(), _>(LossCause::ForceReleased)
    );
}
