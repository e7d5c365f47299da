//! The arm in this process, and the promises that only hold without a network.

use std::sync::Barrier;
use std::thread;

use navlocks::EventKind;
use navlocks::{DeadlockPolicy, DowngradeError, Locks, LossCause, Mode};

use crate::backend::Backend;
use crate::patience::soon;
use crate::watch::{caught_up, hold, queue, received, shows, subscribe, words};

#[path = "body/mod.rs"]
mod body;

pub(crate) struct Arm(Locks);

impl Backend for Arm {
    const ROUNDS: usize = 3_000;

    fn start(deadlocks: DeadlockPolicy) -> Self {
        Self(Locks::builder().deadlocks(deadlocks).build())
    }

    fn client(&self) -> Locks {
        self.0.new_client()
    }
}

#[test]
fn decision_3_release_that_races_with_a_steal_returns_the_outcome() {
    let arm = Arm::start(DeadlockPolicy::Ignore);
    let [holder, thief] = arm.clients();
    let together = Barrier::new(2);
    let mut events = subscribe(&holder);
    for _ in 0..Arm::ROUNDS {
        let lock = hold(holder.request("a"), "lock");
        let released = thread::scope(|scope| {
            scope.spawn(|| {
                together.wait();
                drop(soon(thief.request("a").steal()).unwrap());
            });
            together.wait();
            lock.release()
        });
        let seen = received(&holder, &mut events);
        let mut seen = seen.iter().filter(|event| event.tag.is_some());
        let end = seen.next_back().map(|event| event.kind.clone());
        match released {
            Ok(()) => assert_eq!(end, Some(EventKind::Released)),
            Err(loss) => assert_eq!(end, Some(EventKind::Lost(loss))),
        }
        caught_up(&thief);
    }
}

#[test]
fn w01_downgrade_to_shared_keeps_the_token_grants_readers_and_lets_no_writer_between() {
    let arm = Arm::start(DeadlockPolicy::Ignore);
    let [locks, other] = arm.clients();
    let mut lock = hold(locks.request("a"), "lock");
    let reader = queue(&other, other.request("a").shared(), "reader");
    let _writer = queue(&other, other.request("a"), "writer");
    let _behind = queue(&other, other.request("a").shared(), "behind");
    let mut events = subscribe(&other);
    let token = lock.fencing_token();
    soon(lock.downgrade(Mode::Shared)).unwrap();
    assert_eq!((lock.mode(), lock.fencing_token()), (Mode::Shared, token));
    drop(reader.join().unwrap());
    let now = shows(&other, ["lock"], ["writer", "behind"]);
    assert_eq!((now.held[0].mode, now.held[0].token), (Mode::Shared, Some(token)));
    lock.release().unwrap();
    let seen = words(&received(&other, &mut events));
    let downgraded = ["lock downgraded", "reader granted", "reader released"];
    assert_eq!(seen, [&downgraded[..], &["lock released", "writer granted"]].concat());
}

#[test]
fn w02_downgrade_to_a_larger_limit_grants_those_that_fit_and_an_upgrade_is_refused() {
    let arm = Arm::start(DeadlockPolicy::Ignore);
    let [locks, other] = arm.clients();
    let mut lock = hold(locks.request("a"), "lock");
    let _waiters =
        ["one", "two", "three"].map(|tag| queue(&other, other.request("a").limit(4), tag));
    let limited = |holders| Mode::limited(holders).unwrap();
    soon(lock.downgrade(limited(3))).unwrap();
    shows(&locks, ["lock", "one", "two"], ["three"]);
    for stricter in [Mode::Exclusive, limited(2)] {
        assert_eq!(soon(lock.downgrade(stricter)), Err(DowngradeError::Upgrade));
        assert_eq!(lock.mode(), limited(3));
    }
    soon(lock.downgrade(limited(4))).unwrap();
    shows(&locks, ["lock", "one", "two", "three"], []);
}

#[test]
fn w03_downgrade_of_a_lost_lock_is_an_error_with_its_cause() {
    let arm = Arm::start(DeadlockPolicy::Ignore);
    let [locks, other] = arm.clients();
    let mut lock = hold(locks.request("a"), "lock");
    assert_eq!(soon(other.force_release("a")), Ok(1));
    let error = soon(lock.downgrade(Mode::Shared)).unwrap_err();
    assert_eq!(error, DowngradeError::Lost(LossCause::ForceReleased));
    assert_eq!(error.to_string(), "there is nothing to downgrade: the lock was force-released");
    assert_eq!((lock.mode(), lock.loss()), (Mode::Exclusive, Some(LossCause::ForceReleased)));
}

#[test]
fn w05_scope_downgrades_on_all_its_names() {
    let arm = Arm::start(DeadlockPolicy::Ignore);
    let [locks, other] = arm.clients();
    let mut lock = hold(locks.request(["a", "b"]), "lock");
    let _reader = queue(&other, other.request(["a", "b"]).shared(), "reader");
    let _alone = queue(&other, other.request("b").shared(), "alone");
    soon(lock.downgrade(Mode::Shared)).unwrap();
    shows(&locks, ["lock", "reader", "alone"], []);
}
