//! Clients and partitions: the end of a client, and the independence of partitions.

use std::panic::resume_unwind;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::thread;

use navlocks::{LossCause, QueryError, RequestErrorKind};

use super::{Arm, start};
use crate::backend::Backend;
use crate::patience::{Gate, soon};
use crate::watch::{caught_up, hold, queue, received, shows, subscribe, words};

#[test]
fn g16_client_ended_between_grant_and_poll_grants_the_next_request() {
    let arm = start();
    let [holder, ended, next] = arm.clients();
    let held = hold(holder.request("a"), "holder");
    let unheard = queue(&ended, ended.request("a"), "unheard");
    let next_up = queue(&next, next.request("a"), "next");
    drop(held);
    shows(&holder, ["unheard"], ["next"]);
    ended.end_client();
    drop(next_up.join().unwrap());
    assert_eq!(unheard.join().unwrap_err(), RequestErrorKind::ClientEnded);
    shows(&next, [], []);
}

#[test]
fn g16_client_dropped_between_grant_and_poll_grants_the_next_request() {
    let arm = start();
    let [holder, gone, next] = arm.clients();
    let held = hold(holder.request("a"), "holder");
    let unheard = queue(&gone, gone.request("a"), "unheard");
    let next_up = queue(&next, next.request("a"), "next");
    drop(held);
    shows(&holder, ["unheard"], ["next"]);
    drop((gone, unheard));
    drop(next_up.join().unwrap());
    shows(&next, [], []);
}

#[test]
fn x38_closed_tab_makes_the_next_one_active() {
    let arm = start();
    let [closed, next] = arm.clients();
    let active = hold(closed.request("document"), "closed");
    let waiting = queue(&next, next.request("document"), "next");
    closed.end_client();
    let lock = waiting.join().unwrap();
    shows(&next, ["next"], []);
    // The closed client receives the loss, if a handle is left, and disturbs no other client.
    assert_eq!(soon(active.lost()), LossCause::ClientEnded);
    drop(active);
    shows(&next, ["next"], []);
    drop(lock);
}

#[test]
fn x38_navigated_tab_makes_the_next_one_active() {
    let arm = start();
    let [leaving, next] = arm.clients();
    let active = hold(leaving.request("document"), "leaving");
    let waiting = queue(&next, next.request("document"), "next");
    drop((active, leaving));
    drop(waiting.join().unwrap());
}

#[test]
fn x38_crashed_tab_makes_the_next_one_active() {
    let arm = start();
    let [crashing, next] = arm.clients();
    let crash = Gate::default();
    let signal = crash.clone();
    let tab = thread::spawn(move || {
        soon(crashing.request("document").tag("crashing").with(async |_| {
            signal.opened().await;
            resume_unwind(Box::new("crashed"))
        }))
    });
    shows(&next, ["crashing"], []);
    let waiting = queue(&next, next.request("document"), "next");
    crash.open();
    drop(waiting.join().unwrap());
    assert!(tab.join().is_err());
}

#[test]
fn x38_tabs_become_active_in_the_order_they_were_opened() {
    let arm = start();
    let tabs: [_; 4] = arm.clients();
    let watcher = arm.client();
    let mut events = subscribe(&watcher);
    let mut active = hold(tabs[0].request("document"), "tab 0");
    let waiting = [(1, "tab 1"), (2, "tab 2"), (3, "tab 3")]
        .map(|(tab, tag)| (&tabs[tab], queue(&tabs[tab], tabs[tab].request("document"), tag)));
    let mut last = &tabs[0];
    for (tab, turn) in waiting {
        last.end_client();
        active = turn.join().unwrap();
        last = tab;
    }
    drop(active);
    caught_up(last);
    let seen = words(&received(&watcher, &mut events));
    let granted: Vec<&str> = seen.iter().filter_map(|word| word.strip_suffix(" granted")).collect();
    assert_eq!(granted, ["tab 0", "tab 1", "tab 2", "tab 3"]);
}

#[test]
fn clone_is_the_same_client_and_a_new_one_is_another() {
    let arm = start();
    let locks = arm.client();
    let clone = locks.clone();
    let other = locks.new_client();
    assert_eq!(clone.client_id(), locks.client_id());
    assert_ne!(other.client_id(), locks.client_id());
    // Both share one lock space.
    let _lock = hold(clone.request("a"), "clone's");
    assert!(soon(other.request("a").if_available()).unwrap().is_none());
    assert_eq!(shows(&other, ["clone's"], []).held[0].client, locks.client_id());
}

#[test]
fn ended_client_loses_its_locks_and_no_other_client_does() {
    let arm = start();
    let [ended, other] = arm.clients();
    let own = hold(ended.request("a"), "own");
    let kept = hold(other.request("b"), "kept");
    let waiting = queue(&ended, ended.request("b"), "waiting");
    let clone = ended.clone();
    let lost = thread::scope(|scope| {
        let lost = scope.spawn(|| soon(own.lost()));
        clone.end_client();
        lost.join().unwrap()
    });
    assert_eq!(lost, LossCause::ClientEnded);
    assert_eq!(waiting.join().unwrap_err(), RequestErrorKind::ClientEnded);
    shows(&other, ["kept"], []);
    assert_eq!(kept.loss(), None);
    assert_eq!(own.release(), Err(LossCause::ClientEnded));
}

#[test]
fn blocked_request_is_woken_by_the_end_of_its_client() {
    let arm = start();
    let holder = arm.client();
    let _held = hold(holder.request("a"), "held");
    for _ in 0..Arm::ROUNDS / 30 {
        let ended = arm.client();
        thread::scope(|scope| {
            let request = scope.spawn(|| soon(ended.request("a").tag("asleep")).map(drop));
            shows(&holder, ["held"], ["asleep"]);
            ended.end_client();
            assert_eq!(request.join().unwrap().unwrap_err(), RequestErrorKind::ClientEnded);
        });
    }
}

#[test]
fn ended_client_with_many_locks_loses_every_one() {
    let arm = start();
    let [ended, other] = arm.clients();
    let crowd: Vec<_> =
        (0..2_000).map(|number| soon(ended.request(format!("{number}"))).unwrap()).collect();
    ended.end_client();
    for lock in crowd {
        assert_eq!(soon(lock.lost()), LossCause::ClientEnded);
    }
    shows(&other, [], []);
}

#[test]
fn ended_client_is_refused() {
    let arm = start();
    let [ended, other] = arm.clients();
    ended.end_client();
    ended.end_client();
    let error = RequestErrorKind::ClientEnded;
    assert_eq!(soon(ended.request("a")).unwrap_err(), error);
    assert_eq!(soon(ended.request("a").if_available()).unwrap_err(), error);
    assert_eq!(soon(ended.request("a").steal()).unwrap_err(), error);
    assert_eq!(soon(ended.query()).unwrap_err(), QueryError::ClientEnded);
    assert_eq!(soon(ended.force_release("a")).unwrap_err(), QueryError::ClientEnded);
    assert_eq!(soon(ended.deadlocks()).unwrap_err(), QueryError::ClientEnded);
    let lock = hold(other.request("a"), "other's");
    let blockers = soon(ended.blockers(lock.request_id()));
    assert_eq!(blockers.unwrap_err(), QueryError::ClientEnded);
    // Another client of the same space can.
    let heir = other.new_client();
    shows(&heir, ["other's"], []);
}

#[test]
fn dropped_client_leaves_nothing() {
    let arm = start();
    let [locks, other] = arm.clients();
    let clone = locks.clone();
    let held = hold(other.request("b"), "held");
    let request = queue(&locks, locks.request("b"), "waiting");
    drop((locks, clone));
    // The request itself still waits.
    shows(&other, ["held"], ["waiting"]);
    drop(request);
    shows(&other, ["held"], []);
    drop(held);
}

#[test]
fn partitions_are_independent() {
    let arm = start();
    let locks = arm.client();
    let [work, play] = ["work", "play"].map(|name| locks.partition(name));
    let mut events = subscribe(&play);
    let _here = hold(locks.request("a"), "here");
    let lock = hold(work.request("a"), "at work");
    shows(&locks, ["here"], []);
    shows(&work, ["at work"], []);
    shows(&play, [], []);
    assert_eq!(words(&received(&play, &mut events)), [""; 0]);
    // A steal and a forced release stay within the partition.
    drop(soon(play.request("a").steal()).unwrap());
    assert_eq!(soon(play.force_release("a")), Ok(0));
    caught_up(&work);
    assert_eq!(lock.loss(), None);
}

#[test]
fn partitions_of_one_name_share_locks() {
    let arm = start();
    let [locks, other] = arm.clients();
    let here = locks.partition("office");
    let lock = hold(here.request("a"), "at work");
    let ways = [
        locks.partition("office"),
        locks.new_client().partition("office"),
        other.partition("office"),
        here.new_client(),
        here.partition("office"),
        locks.partition("garden").partition("office"),
    ];
    for there in &ways {
        shows(there, ["at work"], []);
        assert_ne!(there.client_id(), here.client_id());
    }
    let next = queue(&ways[2], ways[2].request("a"), "next");
    drop(lock);
    drop(next.join().unwrap());
}

#[test]
fn partition_can_be_opened_again() {
    let arm = start();
    let locks = arm.client();
    for _ in 0..3 {
        let work = locks.partition("shed");
        shows(&work, [], []);
        let _lock = hold(work.request("a"), "at work");
        shows(&work, ["at work"], []);
    }
}

#[test]
fn draining_client_refuses_requests_and_waits_for_its_last_lock() {
    let arm = start();
    let [locks, other] = arm.clients();
    let held = hold(locks.request("a"), "held");
    let blocker = hold(other.request("b"), "blocker");
    let waiting = queue(&locks, locks.request("b"), "waiting");
    let mut draining = pin!(locks.drain());
    let mut is_pending = || {
        let poll = draining.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        assert_eq!(poll, Poll::Pending);
    };
    is_pending();
    let refused = soon(locks.clone().request("c")).unwrap_err();
    assert_eq!(refused, RequestErrorKind::ClientDraining);
    let refused = soon(locks.request("a").steal()).unwrap_err();
    assert_eq!(refused, RequestErrorKind::ClientDraining);
    assert_eq!(held.loss(), None);
    // A request that was pending before is granted, and its lock is waited for.
    drop(blocker);
    let granted = waiting.join().unwrap();
    assert_eq!(held.release(), Ok(()));
    is_pending();
    thread::scope(|scope| {
        let drained = scope.spawn(|| soon(draining));
        drop(granted);
        drained.join().unwrap();
    });
    soon(locks.drain());
    shows(&other, [], []);
    drop(soon(other.request("a")).unwrap());
}

#[test]
fn request_that_is_dropped_ends_the_drain() {
    let arm = start();
    let [locks, other] = arm.clients();
    let _held = hold(other.request("a"), "held");
    let mut waiting = Box::pin(locks.request("a").into_future());
    let poll = waiting.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    assert!(poll.is_pending());
    thread::scope(|scope| {
        let drained = scope.spawn(|| soon(locks.drain()));
        drop(waiting);
        drained.join().unwrap();
    });
}
