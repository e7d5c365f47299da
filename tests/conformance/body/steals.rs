//! Steals and forced releases: locks that are taken away.

use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier, Mutex};
use std::task::{Context, Wake, Waker};
use std::thread;

use futures_core::Stream;
use navlocks::{FencingToken, Lock, Locks, LossCause, RequestError, RequestErrorKind, RequestId};

use super::{Arm, start};
use crate::backend::Backend;
use crate::patience::{Gate, eventually, soon};
use crate::task::Task;
use crate::watch::{caught_up, hold, queue, received, shows, subscribe, words};

#[test]
fn f99_client_can_steal_from_itself() {
    let arm = start();
    let locks = arm.client();
    let first = hold(locks.request("a"), "first");
    let second = hold(locks.request("a").steal(), "second");
    assert_eq!(soon(first.lost()), LossCause::Stolen { by: second.request_id().into() });
    assert_eq!(second.loss(), None);
    shows(&locks, ["second"], []);
}

#[test]
fn f99_work_of_the_victim_continues_beside_the_thief() {
    let arm = start();
    let locks = arm.client();
    let result = soon(locks.request("a").with(async |lock| {
        let thief = locks.request("a").steal().await.unwrap();
        assert_eq!(lock.lost().await, LossCause::Stolen { by: thief.request_id().into() });
        (lock.fencing_token(), thief.fencing_token())
    }));
    let (robbed, thief) = result.unwrap();
    assert!(robbed < thief);
    shows(&locks, [], []);
}

#[test]
fn g9_late_release_of_victim_does_not_release_the_thief() {
    let arm = start();
    let [victim, thief, other] = arm.clients();
    let robbed = hold(victim.request("a"), "victim");
    let dropped = hold(victim.request("b"), "victim too");
    let stolen = hold(thief.request(["a", "b"]).steal(), "thief");
    let loss = LossCause::Stolen { by: stolen.request_id().into() };
    assert_eq!(soon(robbed.lost()), loss);
    assert_eq!(robbed.release(), Err(loss));
    drop(dropped);
    shows(&victim, ["thief"], []);
    assert!(soon(other.request("a").if_available()).unwrap().is_none());
    assert!(soon(other.request("b").if_available()).unwrap().is_none());
    caught_up(&thief);
    assert_eq!(stolen.release(), Ok(()));
}

#[test]
fn g9_end_of_victims_work_does_not_release_the_thief() {
    let arm = start();
    let [victim, thief, other] = arm.clients();
    let stolen = soon(victim.request("a").with(async |lock| {
        let stolen = thief.request("a").steal().tag("thief").await.unwrap();
        lock.lost().await;
        stolen
    }));
    shows(&victim, ["thief"], []);
    assert!(soon(other.request("a").if_available()).unwrap().is_none());
    drop(stolen);
}

/// The facts about a thief that has released its lock.
struct Theft {
    by: RequestId,
    token: FencingToken,
}

/// Steals and releases at once, so that no request waits for the thief.
fn steal(thief: &Locks) -> Theft {
    let stolen = soon(thief.request("a").steal()).unwrap();
    Theft { by: stolen.request_id(), token: stolen.fencing_token() }
}

/// Checks the outcome of a victim whose grant raced with a theft. Tokens show which came first.
fn check_race(victim: &Locks, answer: Result<Lock, RequestError>, theft: &Theft) {
    let Theft { by, token } = *theft;
    match answer {
        Err(error) => assert_eq!(error, RequestErrorKind::Stolen { by: by.into() }),
        Ok(lock) if lock.fencing_token() < token => {
            assert_eq!(soon(lock.lost()), LossCause::Stolen { by: by.into() });
            assert_eq!(lock.loss(), Some(LossCause::Stolen { by: by.into() }));
            assert_eq!(lock.release(), Err(LossCause::Stolen { by: by.into() }));
        }
        Ok(lock) => {
            caught_up(victim);
            assert_eq!(lock.loss(), None);
            assert_eq!(lock.release(), Ok(()));
        }
    }
}

#[test]
fn g14_steal_that_races_with_an_immediate_grant_is_received() {
    let arm = start();
    let [victim, thief] = arm.clients();
    let together = Barrier::new(2);
    for _ in 0..Arm::ROUNDS {
        thread::scope(|scope| {
            let theft = scope.spawn(|| {
                together.wait();
                steal(&thief)
            });
            together.wait();
            let answer = soon(victim.request("a"));
            check_race(&victim, answer, &theft.join().unwrap());
        });
    }
    shows(&victim, [], []);
}

#[test]
fn g14_steal_that_races_with_a_later_grant_is_received() {
    let arm = start();
    let [holder, victim, thief] = arm.clients();
    let together = Barrier::new(3);
    for _ in 0..Arm::ROUNDS / 3 {
        let held = hold(holder.request("a"), "holder");
        let waiting = queue(&victim, victim.request("a"), "victim");
        thread::scope(|scope| {
            let theft = scope.spawn(|| {
                together.wait();
                steal(&thief)
            });
            scope.spawn(|| {
                together.wait();
                drop(held);
            });
            together.wait();
            let answer = waiting.join();
            check_race(&victim, answer, &theft.join().unwrap());
        });
        caught_up(&holder);
    }
    shows(&victim, [], []);
}

/// A task that steals as soon as it is woken, on the waking thread.
struct WokenThief {
    locks: Locks,
    theft: Mutex<Option<Task<'static, Result<Lock, RequestError>>>>,
}

impl Wake for WokenThief {
    fn wake(self: Arc<Self>) {
        let mut theft = self.theft.lock().unwrap();
        theft.get_or_insert_with(|| Task::start(self.locks.request("a").steal()));
    }
}

#[test]
fn g14_steal_by_the_task_that_the_grant_wakes_is_received() {
    let arm = start();
    let [victim, locks] = arm.clients();
    let mut events = subscribe(&locks);
    let thief = Arc::new(WokenThief { locks, theft: Mutex::default() });
    let waker = Waker::from(thief.clone());
    let next = Pin::new(&mut events).poll_next(&mut Context::from_waker(&waker));
    assert!(next.is_pending());
    let answer = soon(victim.request("a"));
    let theft = eventually(|| thief.theft.lock().unwrap().take().ok_or("no task was woken"));
    let stolen = theft.join().unwrap();
    check_race(&victim, answer, &Theft { by: stolen.request_id(), token: stolen.fencing_token() });
}

#[test]
fn g14_g15_blocked_victim_is_woken_on_its_thread() {
    let arm = start();
    let [victim, thief] = arm.clients();
    for _ in 0..Arm::ROUNDS / 10 {
        let robbed = &hold(victim.request("a"), "victim");
        thread::scope(|scope| {
            let asleep = Gate::default();
            let opens = asleep.clone();
            let hears = scope.spawn(move || soon(opens.open_asleep(robbed.lost())));
            soon(asleep.opened());
            let theft = steal(&thief);
            assert_eq!(hears.join().unwrap(), LossCause::Stolen { by: theft.by.into() });
        });
        caught_up(&thief);
    }
}

#[test]
fn decision_1_lock_stolen_before_the_poll_is_an_error_and_never_a_guard() {
    let arm = start();
    let [holder, victim, thief] = arm.clients();
    let held = hold(holder.request("a"), "holder");
    let waiting = queue(&victim, victim.request("a"), "victim");
    drop(held);
    shows(&holder, ["victim"], []);
    let stolen = hold(thief.request("a").steal(), "thief");
    caught_up(&victim);
    let error = waiting.join().unwrap_err();
    assert_eq!(error, RequestErrorKind::Stolen { by: stolen.request_id().into() });
    assert_eq!(error.dom_exception_name(), "AbortError");
    shows(&victim, ["thief"], []);
}

#[test]
fn decision_1_work_of_lock_stolen_before_the_poll_does_not_begin() {
    let arm = start();
    let [holder, victim, thief] = arm.clients();
    let held = hold(holder.request("a"), "holder");
    let begun = AtomicBool::new(false);
    let work = async |_: &Lock| begun.store(true, Ordering::Relaxed);
    let waiting = Task::start(victim.request("a").tag("victim").with(work));
    shows(&victim, ["holder"], ["victim"]);
    drop(held);
    shows(&holder, ["victim"], []);
    let by = hold(thief.request("a").steal(), "thief").request_id();
    caught_up(&victim);
    assert_eq!(waiting.join().unwrap_err(), RequestErrorKind::Stolen { by: by.into() });
    assert!(!begun.load(Ordering::Relaxed));
}

#[test]
fn decision_1_lock_force_released_before_the_poll_is_an_error() {
    let arm = start();
    let [holder, victim, admin] = arm.clients();
    let held = hold(holder.request("a"), "holder");
    let waiting = queue(&victim, victim.request("a"), "victim");
    drop(held);
    shows(&holder, ["victim"], []);
    assert_eq!(soon(admin.force_release("a")), Ok(1));
    caught_up(&victim);
    assert_eq!(waiting.join().unwrap_err(), RequestErrorKind::ForceReleased);
}

#[test]
fn decision_4_force_release_takes_every_lock_that_has_the_name_in_one_step() {
    let arm = start();
    let [one, two, three, admin] = arm.clients();
    let wide = hold(one.request(["a", "b"]).shared(), "S ab");
    let narrow = hold(two.request("a").shared(), "S a");
    let apart = hold(two.request("c"), "X c");
    let next = queue(&three, three.request("a"), "X a");
    let other = queue(&three, three.request(["a", "c"]), "X ac");
    let mut events = subscribe(&admin);
    assert_eq!(soon(admin.force_release("a")), Ok(2));
    assert_eq!(soon(wide.lost()), LossCause::ForceReleased);
    assert_eq!(soon(narrow.lost()), LossCause::ForceReleased);
    assert_eq!(LossCause::ForceReleased.dom_exception_name(), "AbortError");
    // The queue is processed from the state after the whole step.
    assert_eq!(words(&received(&admin, &mut events)), ["S ab lost", "S a lost", "X a granted"]);
    shows(&admin, ["X c", "X a"], ["X ac"]);
    assert_eq!(wide.release(), Err(LossCause::ForceReleased));
    drop(next.join().unwrap());
    assert_eq!(apart.release(), Ok(()));
    drop(other.join().unwrap());
}

#[test]
fn decision_4_force_release_reaches_all_of_many_holders() {
    let arm = start();
    let [holders, admin] = arm.clients();
    let crowd: Vec<Lock> =
        (0..2_000).map(|_| soon(holders.request("a").shared()).unwrap()).collect();
    assert_eq!(soon(admin.force_release("a")), Ok(crowd.len()));
    for lock in crowd {
        assert_eq!(soon(lock.lost()), LossCause::ForceReleased);
    }
    shows(&admin, [], []);
}

#[test]
fn decision_4_force_release_of_free_name_does_nothing() {
    let arm = start();
    let [holder, admin] = arm.clients();
    let held = hold(holder.request("a"), "holder");
    assert_eq!(soon(admin.force_release("b")), Ok(0));
    shows(&admin, ["holder"], []);
    caught_up(&holder);
    assert_eq!(held.loss(), None);
}

#[test]
fn decision_5_steal_with_a_scope_takes_every_lock_that_intersects() {
    let arm = start();
    let [one, two, three, four, thief] = arm.clients();
    let both = hold(one.request(["a", "b"]).shared(), "S ab");
    let single = hold(two.request("c"), "X c");
    let apart = hold(three.request("d"), "X d");
    let let_go = queue(&four, four.request("b"), "X b");
    let behind = queue(&four, four.request(["a", "c"]), "X ac");
    let mut events = subscribe(&thief);
    let stolen = hold(thief.request(["a", "c"]).steal(), "thief");
    let expected = ["thief requested", "S ab lost", "X c lost", "thief granted", "X b granted"];
    assert_eq!(words(&received(&thief, &mut events)), expected);
    let loss = LossCause::Stolen { by: stolen.request_id().into() };
    assert_eq!(soon(both.lost()), loss);
    assert_eq!(soon(single.lost()), loss);
    caught_up(&three);
    assert_eq!(apart.loss(), None);
    shows(&thief, ["X d", "thief", "X b"], ["X ac"]);
    drop(let_go.join().unwrap());
    drop(stolen);
    drop(behind.join().unwrap());
}

#[test]
fn decision_5_steal_reaches_all_of_many_holders() {
    let arm = start();
    let [holders, thief] = arm.clients();
    let crowd: Vec<Lock> =
        (0..2_000).map(|_| soon(holders.request("a").shared()).unwrap()).collect();
    let stolen = hold(thief.request("a").steal(), "thief");
    for lock in crowd {
        assert_eq!(soon(lock.lost()), LossCause::Stolen { by: stolen.request_id().into() });
    }
    shows(&thief, ["thief"], []);
}

#[test]
fn decision_5_thief_goes_before_all_waiters_which_keep_their_order() {
    let arm = start();
    let [holder, waiters, thief] = arm.clients();
    let _held = hold(holder.request("a"), "holder");
    let first = queue(&waiters, waiters.request("a"), "1st");
    let second = queue(&waiters, waiters.request("a"), "2nd");
    let stolen = hold(thief.request("a").steal(), "thief");
    shows(&thief, ["thief"], ["1st", "2nd"]);
    drop(stolen);
    let first = first.join().unwrap();
    shows(&waiters, ["1st"], ["2nd"]);
    drop(first);
    drop(second.join().unwrap());
}
