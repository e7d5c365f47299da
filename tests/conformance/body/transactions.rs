//! Locks and transactions around each other, and transactions made of locks.

use std::sync::{Arc, Mutex};
use std::thread;

use navlocks::LossCause;

use super::start;
use crate::backend::Backend;
use crate::patience::{Gate, soon};
use crate::transaction::{Aborted, Access::ReadOnly, Access::ReadWrite, Database};
use crate::watch::{caught_up, hold, received, shows, subscribe, words};

/// `lock.waitUntil(tx.complete)`
#[test]
fn x31_lock_around_transaction_is_released_when_it_completes() {
    let arm = start();
    let [locks, other] = arm.clients();
    let database = Database::new("db");
    let commit = Gate::default();
    let lock = soon(locks.request("sync").tag("lock").auto()).unwrap();
    let mut tx = database.transaction(&locks, "tx", ["store"], ReadWrite);
    tx.then(|view| view.put("store", "key", 1));
    let signal = commit.clone();
    tx.wait_until(async move { signal.opened().await });
    let released = lock.wait_until(tx.complete());
    // Both are held as long as the transaction is active.
    shows(&locks, ["lock", "tx"], []);
    let mut events = subscribe(&other);
    thread::scope(|scope| {
        let released = scope.spawn(|| soon(released));
        assert_eq!(database.committed("store", "key"), None);
        commit.open();
        released.join().unwrap().unwrap();
    });
    assert_eq!(database.committed("store", "key"), Some(1));
    assert_eq!(words(&received(&locks, &mut events)), ["tx released", "lock released"]);
}

#[test]
fn x31_lock_around_transaction_is_released_when_it_aborts() {
    let arm = start();
    let [locks, other] = arm.clients();
    let database = Database::new("db");
    let lock = soon(locks.request("sync").tag("lock").auto()).unwrap();
    let mut tx = database.transaction(&locks, "tx", ["store"], ReadWrite);
    tx.then(|view| view.put("store", "key", 1));
    tx.then(|view| view.put("elsewhere", "key", 1));
    let released = lock.wait_until(tx.complete());
    shows(&locks, ["lock", "tx"], []);
    let mut events = subscribe(&other);
    let error = soon(released).unwrap_err();
    assert_eq!(error.to_string(), Aborted::OutOfScope.to_string());
    assert_eq!(words(&received(&locks, &mut events)), ["tx released", "lock released"]);
    assert_eq!(database.committed("store", "key"), None);
}

/// `tx.waitUntil(lock.released)`
#[test]
fn x32_transaction_around_lock_stays_active_until_its_release() {
    let arm = start();
    let [locks, other] = arm.clients();
    let database = Database::new("db");
    let mut tx = database.transaction(&locks, "tx", ["store"], ReadWrite);
    tx.then(|view| view.put("store", "key", 1));
    let lock = soon(locks.request("sync").tag("lock").auto()).unwrap();
    let release = Gate::default();
    let signal = release.clone();
    let released = lock.wait_until(async move {
        signal.opened().await;
        Ok::<(), Aborted>(())
    });
    tx.wait_until(async move { released.await.unwrap() });
    drop(lock);
    shows(&locks, ["tx", "lock"], []);
    let next = database.transaction(&other, "next", ["store"], ReadOnly);
    shows(&other, ["tx", "lock"], ["next"]);
    let mut events = subscribe(&other);
    thread::scope(|scope| {
        let complete = scope.spawn(|| soon(tx.complete()));
        assert_eq!(database.committed("store", "key"), None);
        release.open();
        complete.join().unwrap().unwrap();
    });
    assert_eq!(database.committed("store", "key"), Some(1));
    soon(next.complete()).unwrap();
    let expected = ["lock released", "tx released", "next granted", "next released"];
    assert_eq!(words(&received(&other, &mut events)), expected);
}

#[test]
fn x33_readers_of_a_store_overlap() {
    let arm = start();
    let [one, two] = arm.clients();
    let database = Database::new("db");
    let end = Gate::default();
    let readers = [(&one, "R1"), (&two, "R2")].map(|(locks, tag)| {
        let mut tx = database.transaction(locks, tag, ["store"], ReadOnly);
        let signal = end.clone();
        tx.wait_until(async move { signal.opened().await });
        caught_up(locks);
        tx
    });
    thread::scope(|scope| {
        let readers = readers.map(|tx| scope.spawn(|| soon(tx.complete())));
        // Both are active at once.
        shows(&two, ["R1", "R2"], []);
        end.open();
        for reader in readers {
            reader.join().unwrap().unwrap();
        }
    });
}

#[test]
fn x33_writers_exclude_each_other_on_each_store() {
    let arm = start();
    let [one, two, three] = arm.clients();
    let database = Database::new("db");
    let writing = database.transaction(&one, "writes a", ["a"], ReadWrite);
    caught_up(&one);
    let both = database.transaction(&two, "writes a and b", ["b", "a"], ReadWrite);
    caught_up(&two);
    let other = database.transaction(&three, "writes c", ["c"], ReadWrite);
    let elsewhere = Database::new("other").transaction(&three, "other a", ["a"], ReadWrite);
    shows(&three, ["writes a", "writes c", "other a"], ["writes a and b"]);
    soon(writing.complete()).unwrap();
    shows(&one, ["writes c", "other a", "writes a and b"], []);
    for tx in [other, both, elsewhere] {
        soon(tx.complete()).unwrap();
    }
}

#[test]
fn x33_transactions_run_in_the_order_in_which_they_were_created() {
    let arm = start();
    let [one, two] = arm.clients();
    let database = Database::new("db");
    let read = Arc::new(Mutex::new(Vec::new()));
    let mut transactions = Vec::new();
    for round in 1..=5 {
        let mut writes = database.transaction(&one, "writes", ["store"], ReadWrite);
        writes.then(move |view| {
            let before = view.get("store", "key")?.unwrap_or(0);
            view.put("store", "key", before * 10 + round)
        });
        caught_up(&one);
        let mut reads = database.transaction(&two, "reads", ["store"], ReadOnly);
        let read = read.clone();
        reads.then(move |view| {
            read.lock().unwrap().push(view.get("store", "key")?);
            Ok(())
        });
        caught_up(&two);
        transactions.extend([writes, reads]);
    }
    // Polled in any order: here the last one first.
    thread::scope(|scope| {
        for tx in transactions.into_iter().rev() {
            scope.spawn(|| soon(tx.complete()).unwrap());
        }
    });
    assert_eq!(*read.lock().unwrap(), [1, 12, 123, 1234, 12345].map(Some));
}

#[test]
fn x33_aborted_transaction_releases_at_once_and_stores_nothing() {
    let arm = start();
    let [one, two] = arm.clients();
    let database = Database::new("db");
    let mut dropped = database.transaction(&one, "dropped", ["store"], ReadWrite);
    dropped.then(|view| view.put("store", "key", 1));
    caught_up(&one);
    let mut waiting = database.transaction(&one, "waiting", ["store"], ReadWrite);
    waiting.then(|view| view.put("store", "key", 2));
    caught_up(&one);
    let mut reader = database.transaction(&two, "reader", ["store"], ReadOnly);
    reader.then(|view| {
        assert_eq!(view.get("store", "key")?, None);
        Ok(())
    });
    shows(&two, ["dropped"], ["waiting", "reader"]);
    drop(waiting);
    shows(&one, ["dropped"], ["reader"]);
    drop(dropped);
    shows(&one, ["reader"], []);
    soon(reader.complete()).unwrap();
    shows(&two, [], []);
}

#[test]
fn x33_transaction_that_violates_its_access_aborts() {
    let arm = start();
    let locks = arm.client();
    let database = Database::new("db");
    let mut writes = database.transaction(&locks, "reader", ["store"], ReadOnly);
    writes.then(|view| view.put("store", "key", 1));
    assert_eq!(soon(writes.complete()), Err(Aborted::ReadOnly));
    shows(&locks, [], []);
}

#[test]
fn x33_transaction_whose_lock_is_lost_does_not_commit() {
    let arm = start();
    let [locks, thief] = arm.clients();
    let database = Database::new("db");
    let mut robbed = database.transaction(&locks, "robbed", ["store"], ReadWrite);
    let (runs, go_on) = (Gate::default(), Gate::default());
    let (begun, signal) = (runs.clone(), go_on.clone());
    robbed.then(move |view| {
        begun.open();
        view.put("store", "key", 1)
    });
    robbed.wait_until(async move { signal.opened().await });
    thread::scope(|scope| {
        let outcome = scope.spawn(|| soon(robbed.complete()));
        soon(runs.opened());
        let stolen = hold(thief.request("db/store").steal(), "thief");
        caught_up(&locks);
        go_on.open();
        let loss = LossCause::Stolen { by: stolen.request_id().into() };
        assert_eq!(outcome.join().unwrap(), Err(Aborted::Loss(loss)));
    });
    assert_eq!(database.committed("store", "key"), None);
}
