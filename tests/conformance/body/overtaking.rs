//! Overtaking: readers that do not wait for pending writers, if they ask for it.

use navlocks::{Lock, Locks, RequestError, RequestErrorKind};

use super::start;
use crate::backend::Backend;
use crate::patience::soon;
use crate::task::Task;
use crate::watch::{hold, queue, shows};

type Waiting = Task<'static, Result<Lock, RequestError>>;

/// Plays the example of the explainer up to its fifth request. Returns the held locks and the
/// waiter.
fn scene(locks: &Locks) -> ([Lock; 3], Waiting) {
    let held = [
        hold(locks.request("a"), "#1 X a"),
        hold(locks.request("b").shared(), "#2 S b"),
        hold(locks.request("b").shared(), "#3 S b"),
    ];
    (held, queue(locks, locks.request(["a", "b"]), "#4 X ab"))
}

#[test]
fn x36_reader_waits_behind_a_pending_writer_by_default() {
    let arm = start();
    let [locks, reader] = arm.clients();
    let _scene = scene(&locks);
    let _waits = queue(&reader, reader.request("b").shared(), "#5 S b");
    shows(&reader, ["#1 X a", "#2 S b", "#3 S b"], ["#4 X ab", "#5 S b"]);
}

#[test]
fn x36_overtaking_reader_is_granted_and_the_writer_waits_for_it() {
    let arm = start();
    let [locks, reader] = arm.clients();
    let (held, writer) = scene(&locks);
    let overtaker = hold(reader.request("b").shared().overtake(), "#5 S b");
    shows(&reader, ["#1 X a", "#2 S b", "#3 S b", "#5 S b"], ["#4 X ab"]);
    drop(held);
    shows(&locks, ["#5 S b"], ["#4 X ab"]);
    drop(overtaker);
    drop(writer.join().unwrap());
}

#[test]
fn x36_overtaking_reader_waits_for_an_exclusive_holder() {
    let arm = start();
    let [holder, waiters, reader] = arm.clients();
    let held = hold(holder.request("a"), "holder");
    let writer = queue(&waiters, waiters.request("a"), "writer");
    let overtaker = queue(&reader, reader.request("a").shared().overtake(), "reader");
    // It waits for the holder, before the writer.
    shows(&reader, ["holder"], ["reader", "writer"]);
    drop(held);
    let overtaker = overtaker.join().unwrap();
    shows(&reader, ["reader"], ["writer"]);
    drop(overtaker);
    drop(writer.join().unwrap());
}

#[test]
fn x36_only_readers_overtake() {
    let arm = start();
    let locks = arm.client();
    let error = soon(locks.request("a").overtake()).unwrap_err();
    assert_eq!(error, RequestErrorKind::ExclusiveOvertake);
    shows(&locks, [], []);
}
