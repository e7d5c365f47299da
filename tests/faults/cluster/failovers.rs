//! The faults of a cluster of real processes, one by one: what becomes of locks and of waiters.

use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use navlocks::blocking::block_on;
use navlocks::{Lock, Locks, LossCause, RequestError};
use rustix::process::Signal;

use super::nodes::{NODE_LEASE, Nodes, PATIENCE};

/// Longer than a test is patient: nothing here waits for the end of a lease.
const LONG_LEASE: Duration = Duration::from_secs(180);

pub(crate) const PARTITION: &str = "p";

pub(crate) fn client(nodes: &Nodes) -> Locks {
    let connect = Locks::connect(nodes.url()).partition(PARTITION).unreachable_after(None).retry();
    let connect = connect.lease(LONG_LEASE).timeout(PATIENCE);
    block_on(connect.into_future()).expect("a node answers")
}

fn request(locks: &Locks, name: &str) -> Result<Lock, RequestError> {
    block_on(locks.request(name).timeout(PATIENCE).into_future())
}

/// A holder, and two waiters behind it.
pub(crate) struct Queue {
    locks: Locks,
    holder: Lock,
    waiters: [JoinHandle<Lock>; 2],
}

impl Queue {
    pub(crate) fn new(nodes: &Nodes) -> Self {
        let locks = client(nodes);
        let holder = request(&locks, "x").expect("it is free");
        let waiters = [1, 2].map(|count| {
            let waiter = client(nodes);
            let waiter = thread::spawn(move || request(&waiter, "x").expect("its turn comes"));
            await_pending(&locks, count);
            waiter
        });
        Self { locks, holder, waiters }
    }

    /// Asserts that the lock is still held and the waiters are in order. It waits for the end of
    /// grace, which is sooner than that of any lease.
    pub(crate) fn assert_unharmed(self, nodes: &Nodes) {
        let Self { locks, holder, waiters } = self;
        await_pending(&locks, 2);
        assert_eq!(holder.loss(), None, "{}", logs(nodes));
        let mut token = holder.fencing_token();
        holder.release().expect("it was not lost");
        let mut left = waiters.len();
        for waiter in waiters {
            let lock = waiter.join().expect("no panic");
            left -= 1;
            await_pending(&locks, left);
            assert!(lock.fencing_token() > token, "tokens shrank");
            token = lock.fencing_token();
            lock.release().expect("it was not lost");
        }
    }
}

fn logs(nodes: &Nodes) -> String {
    let log = |number| format!("n{number}:\n{}", nodes.log(number));
    (0..nodes.count()).map(log).collect()
}

/// Waits until so many requests are pending. The answer waits for the end of grace.
fn await_pending(locks: &Locks, count: usize) {
    let begin = Instant::now();
    loop {
        let snapshot = block_on(locks.query());
        if snapshot.as_ref().is_ok_and(|snapshot| snapshot.pending.len() == count) {
            return;
        }
        assert!(begin.elapsed() < PATIENCE, "{count} requests should be pending: {snapshot:?}");
        thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn killed_owner_costs_no_lock_and_no_place() {
    let mut nodes = Nodes::start("killed-owner", 3, 1);
    // The second owner may be the third node, or the first one again.
    for _ in 0..2 {
        let queue = Queue::new(&nodes);
        let owner = nodes.owner(PARTITION);
        nodes.kill(owner);
        queue.assert_unharmed(&nodes);
        nodes.run(owner);
        nodes.await_balance(3);
    }
}

#[test]
fn owner_killed_during_grace_costs_no_lock_and_no_place() {
    let mut nodes = Nodes::start("second-kill-of-owners", 3, 1);
    let queue = Queue::new(&nodes);
    let first = nodes.owner(PARTITION);
    nodes.kill(first);
    let second = await_other_owner(&nodes, first);
    nodes.kill(second);
    queue.assert_unharmed(&nodes);
}

/// A deadline that began anew would leave the whole time. It passes also while the slot has no
/// owner, and the client itself ends the lock then.
#[test]
fn h04_longest_hold_goes_on_over_a_fail_over() {
    const LONG: Duration = Duration::from_secs(1000);
    let mut nodes = Nodes::start("longest-hold", 3, 1);
    let (locks, other) = (client(&nodes), client(&nodes));
    let held = block_on(locks.request("x").max_hold(LONG).timeout(PATIENCE).into_future());
    let held = held.expect("it is free");
    let granted = Instant::now();
    let first = nodes.owner(PARTITION);
    nodes.kill(first);
    let second = await_other_owner(&nodes, first);
    await_pending(&locks, 0);
    let before = granted.elapsed();
    let now = block_on(locks.query()).expect("an answer");
    let left = now.held[0].left.expect("a longest hold");
    assert!(left + before / 2 <= LONG, "{left:?} after {before:?}");
    assert_eq!(held.loss(), None, "{}", logs(&nodes));
    let brief = block_on(locks.request("y").max_hold(Duration::from_secs(1)).into_future());
    let brief = brief.expect("it is free");
    nodes.kill(second);
    assert_eq!(block_on(brief.lost()), LossCause::HeldTooLong);
    drop(request(&other, "y").expect("its time is over"));
    assert_eq!(brief.release(), Err(LossCause::HeldTooLong));
}

#[test]
fn client_that_leaves_during_a_fail_over_lets_no_other_wait_for_its_lease() {
    let mut nodes = Nodes::start("leaves-in-fail-over", 2, 1);
    let (leaving, other) = (client(&nodes), client(&nodes));
    let lock = request(&leaving, "x").expect("it is free");
    nodes.kill(nodes.owner(PARTITION));
    let left = thread::spawn(move || {
        drop(lock);
        block_on(leaving.disconnect());
    });
    drop(request(&other, "x").expect("no lease is waited for"));
    left.join().expect("no panic");
}

pub(crate) fn await_other_owner(nodes: &Nodes, than: usize) -> usize {
    let begin = Instant::now();
    loop {
        let owner = nodes.owner(PARTITION);
        if owner != than {
            return owner;
        }
        assert!(begin.elapsed() < PATIENCE, "no node takes the slot: {}", logs(nodes));
        thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn stopped_owner_that_wakes_up_is_no_owner_any_more() {
    let nodes = Nodes::start("stopped-owner", 2, 1);
    let connect = Locks::connect(nodes.url()).partition(PARTITION).unreachable_after(None);
    let locks = block_on(connect.into_future()).expect("a node answers");
    let lock = request(&locks, "x").expect("it is free");
    let owner = nodes.owner(PARTITION);
    nodes.signal(owner, Signal::STOP);
    await_other_owner(&nodes, owner);
    // The session goes on there, within its lease.
    await_pending(&locks, 0);
    nodes.signal(owner, Signal::CONT);
    // A client that knows the former owner alone is sent on.
    let connect = Locks::connect(nodes.url_of(&[owner])).partition(PARTITION).retry();
    let late = block_on(connect.timeout(PATIENCE).into_future()).expect("a node answers");
    let refused = block_on(late.request("x").if_available()).expect("an answer");
    assert!(refused.is_none(), "two holders");
    assert_eq!(lock.loss(), None, "{}", logs(&nodes));
    // It joins again, and may get the slot back by a planned move.
    let has_ended = nodes.log(owner).contains("this node is no part of the cluster any more");
    assert!(has_ended, "{}", logs(&nodes));
}

#[test]
fn owner_that_ends_in_good_order_and_one_that_joins_move_locks_unharmed() {
    let mut nodes = Nodes::start("planned-move", 3, 1);
    let queue = Queue::new(&nodes);
    let owner = nodes.owner(PARTITION);
    nodes.terminate(owner);
    assert_ne!(await_other_owner(&nodes, owner), owner);
    await_pending(&queue.locks, 2);
    nodes.run(owner);
    nodes.await_balance(3);
    assert_eq!(nodes.owner(PARTITION), owner);
    queue.assert_unharmed(&nodes);
}

#[test]
fn owner_whose_key_is_deleted_by_hand_joins_again_and_no_lock_is_lost() {
    let nodes = Nodes::start("deleted-key", 2, 1);
    let queue = Queue::new(&nodes);
    let before = nodes.view().expect("etcd answers");
    nodes.in_etcd(async |mut etcd| {
        let options = etcd_client::DeleteOptions::new().with_prefix();
        etcd.delete("/navlocks/nodes/", Some(options)).await.expect("it is deleted");
    });
    let begin = Instant::now();
    while nodes.view().is_none_or(|view| {
        view.nodes.len() < 2 || view.nodes.iter().any(|node| before.nodes.contains(node))
    }) {
        assert!(begin.elapsed() < PATIENCE, "{}", logs(&nodes));
        thread::sleep(Duration::from_millis(5));
    }
    queue.assert_unharmed(&nodes);
}

#[test]
fn history_compacted_under_a_watch_hides_no_fail_over() {
    let mut nodes = Nodes::start("compacted", 2, 1);
    let queue = Queue::new(&nodes);
    let owner = nodes.owner(PARTITION);
    nodes.signal(1 - owner, Signal::STOP);
    nodes.in_etcd(async |mut etcd| {
        for _ in 0..3 {
            let put = etcd.put("/other", "", None).await.expect("it is written");
            let revision = put.header().expect("a header").revision();
            etcd.compact(revision, None).await.expect("it is compacted");
        }
    });
    nodes.signal(1 - owner, Signal::CONT);
    nodes.kill(owner);
    queue.assert_unharmed(&nodes);
}

#[test]
fn etcd_without_its_leader_and_then_without_a_member_costs_no_lock() {
    let mut nodes = Nodes::start("etcd-leader", 2, 3);
    let queue = Queue::new(&nodes);
    let leader = leader(&nodes);
    nodes.etcd.pause(leader);
    thread::sleep(NODE_LEASE);
    nodes.etcd.resume(leader);
    nodes.etcd.kill(leader);
    let owner = nodes.owner(PARTITION);
    nodes.kill(owner);
    await_other_owner(&nodes, owner);
    nodes.etcd.restart(leader).expect("it starts");
    queue.assert_unharmed(&nodes);
}

/// The member that leads.
pub(crate) fn leader(nodes: &Nodes) -> usize {
    let addresses = nodes.etcd.addresses();
    let is_leader = |address: &String| {
        nodes.in_etcd(async |_| {
            let client = etcd_client::Client::connect([address], None).await;
            let status = client.expect("a member").status().await.expect("its status");
            status.leader() == status.header().expect("a header").member_id()
        })
    };
    addresses.iter().position(is_leader).expect("one leads")
}
