//! Limits: semaphores by the rule of all locks.

use std::time::Duration;

use navlocks::{BadLimit, DeadlockPolicy, Limit, Lock, Locks, LossCause, Mode, RequestErrorKind};

use super::{Arm, start};
use crate::backend::Backend;
use crate::patience::soon;
use crate::watch::{caught_up, hold, queue, received, shows, subscribe, words};

/// Holds a lock with a limit.
fn hold_limited(locks: &Locks, name: &'static str, holders: u32, tag: &'static str) -> Lock {
    hold(locks.request(name).limit(holders), tag)
}

#[test]
fn l01_as_many_as_the_limit_hold_and_a_release_grants_the_head() {
    let arm = start();
    let [locks, other] = arm.clients();
    let [one, two, three] = ["one", "two", "three"].map(|tag| hold_limited(&locks, "a", 3, tag));
    let four = queue(&other, other.request("a").limit(3), "four");
    let five = queue(&other, other.request("a").limit(3), "five");
    drop(two);
    shows(&locks, ["one", "three", "four"], ["five"]);
    drop(one);
    shows(&locks, ["three", "four", "five"], []);
    drop((three, four.join().unwrap(), five.join().unwrap()));
    shows(&other, [], []);
}

#[test]
fn l03_smaller_limit_waits_until_there_is_one_place_and_is_not_overtaken() {
    let arm = start();
    let [locks, other] = arm.clients();
    let [one, two, three, four] =
        ["one", "two", "three", "four"].map(|tag| hold_limited(&locks, "a", 4, tag));
    let _pair = queue(&other, other.request("a").limit(2), "pair");
    let _behind = queue(&other, other.request("a").limit(4), "behind");
    drop((one, two));
    shows(&locks, ["three", "four"], ["pair", "behind"]);
    drop(three);
    shows(&locks, ["four", "pair"], ["behind"]);
    drop(four);
    shows(&locks, ["pair", "behind"], []);
}

#[test]
fn l04_holder_with_a_limit_keeps_others_out_whatever_their_limits() {
    let arm = start();
    let [locks, other] = arm.clients();
    let pair = hold_limited(&locks, "a", 2, "pair");
    let _reader = hold(locks.request("a").shared(), "reader");
    let _third = queue(&other, other.request("a").shared(), "third");
    let _fourth = queue(&other, other.request("a").limit(9), "fourth");
    drop(pair);
    shows(&locks, ["reader", "third", "fourth"], []);
}

#[test]
fn l05_exclusive_request_between_limited_ones_waits_for_all_and_blocks_all() {
    let arm = start();
    let [locks, other] = arm.clients();
    let [one, two] = ["one", "two"].map(|tag| hold_limited(&locks, "a", 3, tag));
    let writer = queue(&other, other.request("a"), "writer");
    let _behind = queue(&other, other.request("a").limit(3), "behind");
    drop(one);
    shows(&locks, ["two"], ["writer", "behind"]);
    drop(two);
    shows(&locks, ["writer"], ["behind"]);
    drop(writer.join().unwrap());
    shows(&other, ["behind"], []);
}

#[test]
fn l06_scope_with_a_limit_holds_all_names_or_none_and_takes_a_place_on_each() {
    let arm = start();
    let [locks, other] = arm.clients();
    let writer = hold(locks.request("a"), "writer");
    let _both = queue(&other, other.request(["a", "b"]).limit(2), "both");
    let alone = hold_limited(&locks, "b", 2, "alone");
    let _third = queue(&locks, locks.request("b").limit(2), "third");
    drop(writer);
    shows(&locks, ["alone", "both"], ["third"]);
    drop(alone);
    shows(&locks, ["both", "third"], []);
}

#[test]
fn l07_end_in_the_middle_grants_those_that_fit_in_queue_order() {
    let arm = start();
    let [locks, other, ending] = arm.clients();
    let _one = hold_limited(&locks, "a", 3, "one");
    let writer = queue(&other, other.request("a"), "writer");
    let _two = queue(&ending, ending.request("a").limit(3), "two");
    let _three = queue(&locks, locks.request("a").limit(3), "three");
    let _four = queue(&locks, locks.request("a").limit(3), "four");
    let mut events = subscribe(&other);
    drop(writer);
    shows(&other, ["one", "two", "three"], ["four"]);
    let seen = words(&received(&other, &mut events));
    assert_eq!(seen, ["writer withdrawn", "two granted", "three granted"]);
    ending.end_client();
    shows(&locks, ["one", "three", "four"], []);
    let timeout = other.request("a").limit(3).timeout(Duration::from_millis(1));
    let error = soon(timeout).unwrap_err();
    assert!(matches!(error.kind(), RequestErrorKind::TimedOut { .. }));
    assert_eq!(error.holders().len(), 3);
}

#[test]
fn l08_if_available_with_a_limit_is_answered_by_the_rule() {
    let arm = start();
    let [locks, other] = arm.clients();
    let attempt = |holders| soon(other.request("a").limit(holders).if_available()).unwrap();
    let one = attempt(2).expect("it is free");
    let _two = hold_limited(&locks, "a", 3, "two");
    assert!(attempt(3).is_none());
    assert!(soon(other.request("a").if_available().limit(3)).unwrap().is_none());
    drop(one);
    assert!(attempt(2).is_some());
}

#[test]
fn l09_steal_with_a_limit_takes_all_holders_and_the_queue_keeps_its_order() {
    let arm = start();
    let [locks, other, thief] = arm.clients();
    let victims = ["one", "two"].map(|tag| hold_limited(&locks, "a", 2, tag));
    let _three = queue(&other, other.request("a").limit(2), "three");
    let _four = queue(&other, other.request("a").limit(2), "four");
    let stolen = hold(thief.request("a").limit(2).steal(), "thief");
    shows(&thief, ["thief", "three"], ["four"]);
    for victim in victims {
        assert_eq!(soon(victim.lost()), LossCause::Stolen { by: stolen.request_id().into() });
    }
}

#[test]
fn l10_forced_release_takes_all_holders() {
    let arm = start();
    let [locks, other] = arm.clients();
    let _held = ["one", "two"].map(|tag| hold_limited(&locks, "a", 2, tag));
    let _three = queue(&other, other.request("a").limit(2), "three");
    assert_eq!(soon(other.force_release("a")), Ok(2));
    shows(&other, ["three"], []);
}

#[test]
fn l11_query_events_and_lock_show_the_limit() {
    let arm = start();
    let [locks, other] = arm.clients();
    let mut events = subscribe(&other);
    let lock = hold_limited(&locks, "a", 4, "limited");
    let _shared = hold(locks.request("a").shared(), "shared");
    let _writer = queue(&other, other.request("a").limit(1), "writer");
    let four = Mode::limited(4).unwrap();
    assert_eq!((lock.mode(), four.limit()), (four, Some(4)));
    let now = caught_up(&other);
    let modes = |infos: &[navlocks::RequestInfo]| infos.iter().map(|info| info.mode).collect();
    let held: Vec<Mode> = modes(&now.held);
    assert_eq!(held, [four, Mode::Shared]);
    let pending: Vec<Mode> = modes(&now.pending);
    assert_eq!(pending, [Mode::Exclusive]);
    let seen = received(&other, &mut events);
    assert_eq!(seen[0].mode, four);
    assert!(seen[0].to_string().contains("(limit 4 a)"), "{}", seen[0]);
}

#[test]
fn l13_number_that_is_no_limit_is_an_error_of_the_request() {
    let arm = start();
    let locks = arm.client();
    for number in [0, Limit::MAX + 1, u32::MAX] {
        let error = soon(locks.request("a").limit(number).tag("bad")).unwrap_err();
        assert_eq!(error, RequestErrorKind::BadLimit(BadLimit(number)));
        assert_eq!(error.dom_exception_name(), "TypeError");
        let sentence = format!("no lock on 'a': {number} is no limit of a lock: ");
        assert!(error.to_string().starts_with(&sentence), "{error}");
        soon(locks.request("a").if_available().limit(number)).unwrap_err();
    }
    // Of several calls the last one counts.
    drop(soon(locks.request("a").limit(0).shared()).unwrap());
    assert_eq!(hold_limited(&locks, "a", Limit::MAX, "most").mode().limit(), Some(Limit::MAX));
    let overtaking = soon(locks.request("a").limit(2).overtake()).unwrap_err();
    assert_eq!(overtaking, RequestErrorKind::ExclusiveOvertake);
    shows(&locks, [], []);
}

#[test]
fn l15_wait_behind_several_holders_is_no_certain_deadlock() {
    let arm = Arm::start(DeadlockPolicy::Refuse);
    let [one, two, three] = arm.clients();
    let pair = hold_limited(&one, "a", 2, "pair");
    let reader = hold(two.request("a").shared(), "reader");
    let _b = hold(three.request("b"), "b");
    let next = queue(&three, three.request("a").shared(), "next");
    let now = shows(&three, ["pair", "reader", "b"], ["next"]);
    let blockers = soon(three.blockers(now.pending[0].request)).unwrap();
    assert_eq!(blockers.hard, [pair.request_id(), reader.request_id()]);
    // The holder waits for the waiter, but the other holder can end the wait.
    let _crossed = queue(&one, one.request("b"), "crossed");
    assert_eq!(soon(one.deadlocks()).unwrap(), []);
    drop(reader);
    drop(next.join().unwrap());
}
