//! Downgrades: a lock gets a mode that allows more holders, in place.

use navlocks::{DowngradeError, LossCause, Mode};

use super::start;
use crate::backend::Backend;
use crate::patience::soon;
use crate::watch::{hold, queue, received, shows, subscribe, words};

#[test]
fn w01_downgrade_to_shared_keeps_the_token_grants_readers_and_lets_no_writer_between() {
    let arm = start();
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
    let arm = start();
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
    let arm = start();
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
    let arm = start();
    let [locks, other] = arm.clients();
    let mut lock = hold(locks.request(["a", "b"]), "lock");
    let _reader = queue(&other, other.request(["a", "b"]).shared(), "reader");
    let _alone = queue(&other, other.request("b").shared(), "alone");
    soon(lock.downgrade(Mode::Shared)).unwrap();
    shows(&locks, ["lock", "reader", "alone"], []);
}
