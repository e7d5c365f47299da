//! Limits over the end of a service: never more holders than the smallest limit, in queue order.

use std::process::Command;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use navlocks::blocking::block_on;
use navlocks::{Lock, Locks, LossCause, Mode, Request};
use navlocks_tests::chaos::Service as _;

use crate::cluster::failovers;
use crate::cluster::nodes::{Nodes, PATIENCE};
use crate::folder::Folder;
use crate::serve::Served;

const LIMIT: u32 = 3;

/// As many holders as their limit, and two waiters behind them, each a client of its own.
struct Semaphore {
    holders: Vec<Lock>,
    waiters: [JoinHandle<Lock>; 2],
    other: Locks,
}

impl Semaphore {
    fn new(client: impl Fn() -> Locks) -> Self {
        let request = |locks: &Locks| locks.request("x").limit(LIMIT).timeout(PATIENCE);
        let other = client();
        let hold = |_| block_on(request(&client()).into_future()).expect("there is a place");
        let holders = (0..LIMIT).map(hold).collect();
        let waiters = [1, 2].map(|count| {
            let request = request(&client());
            let waiter = thread::spawn(move || block_on(request).expect("its turn comes"));
            await_queue(&other, LIMIT as usize, count);
            waiter
        });
        Self { holders, waiters, other }
    }

    /// Asserts that the holders are the same, and that each release grants one waiter in order.
    fn assert_unharmed(self) {
        let Self { mut holders, waiters, other } = self;
        let attempt =
            || block_on(other.request("x").limit(LIMIT).if_available()).expect("answered");
        assert!(attempt().is_none(), "more holders than their limit");
        let mut left = waiters.len();
        await_queue(&other, holders.len(), left);
        for waiter in waiters {
            let released = holders.remove(0);
            assert_eq!(released.loss(), None);
            released.release().expect("it was not lost");
            left -= 1;
            // If the other waiter were granted, this one would not end.
            let next = waiter.join().expect("no panic");
            assert_eq!(next.mode(), Mode::limited(LIMIT).expect("a limit"));
            holders.push(next);
            await_queue(&other, holders.len(), left);
            assert!(attempt().is_none(), "more holders than their limit");
        }
    }
}

/// Waits until so many requests hold and wait; there are never more holders than their limit.
fn await_queue(locks: &Locks, held: usize, pending: usize) {
    let begin = Instant::now();
    loop {
        let snapshot = block_on(locks.query());
        if let Ok(now) = &snapshot {
            assert!(now.held.len() <= LIMIT as usize, "more holders than their limit: {now:?}");
            if (now.held.len(), now.pending.len()) == (held, pending) {
                return;
            }
        }
        assert!(begin.elapsed() < PATIENCE, "expected {held} and {pending}: {snapshot:?}");
        thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn l12_limits_survive_services_that_are_killed() {
    for unix in [true, false] {
        let folder = Folder::new(if unix { "limits" } else { "limits-tcp" });
        let mut served = match unix {
            true => Served::unix(folder.path()),
            false => Served::tcp(folder.path()).expect("a port"),
        };
        let mut service = served.run();
        let connect = || Locks::connect(served.url()).unreachable_after(None).into_future();
        let semaphore = Semaphore::new(|| block_on(connect()).expect("the service answers"));
        for _ in 0..2 {
            service.kill();
            service = served.run();
        }
        semaphore.assert_unharmed();
    }
}

#[test]
fn l12_limits_survive_a_fail_over_and_a_planned_move() {
    let mut nodes = Nodes::start("limits-moved", 3, 1);
    let semaphore = Semaphore::new(|| failovers::client(&nodes));
    let killed = nodes.owner(failovers::PARTITION);
    nodes.kill(killed);
    let owner = failovers::await_other_owner(&nodes, killed);
    await_queue(&semaphore.other, LIMIT as usize, 2);
    nodes.terminate(owner);
    semaphore.assert_unharmed();
}

fn connect(served: &Served) -> Locks {
    block_on(Locks::connect(served.url()).unreachable_after(None).into_future())
        .expect("the service answers")
}

fn wait_on_a_thread(request: Request) -> JoinHandle<Lock> {
    let request = request.timeout(PATIENCE);
    thread::spawn(move || block_on(request).expect("its turn comes"))
}

#[test]
fn w04_downgrade_survives_services_that_are_killed_and_is_taken_by_the_next_one() {
    for unix in [true, false] {
        let folder = Folder::new(if unix { "downgrade" } else { "downgrade-tcp" });
        let mut served = match unix {
            true => Served::unix(folder.path()),
            false => Served::tcp(folder.path()).expect("a port"),
        };
        let service = served.run();
        let (first, other) = (connect(&served), connect(&served));
        let mut lock = block_on(first.request("x")).expect("it is free");
        let mut late = block_on(first.request("y")).expect("it is free");
        let (token, late_token) = (lock.fencing_token(), late.fencing_token());
        let writer = wait_on_a_thread(other.request("x"));
        await_queue(&other, 2, 1);
        block_on(lock.downgrade(Mode::Shared)).expect("it is held");
        service.kill();
        // The service is gone when this downgrade is made.
        let late = thread::spawn(move || {
            block_on(late.downgrade(Mode::Shared)).expect("it is held");
            late
        });
        let _service = served.run();
        let late = late.join().expect("no panic");
        let beside = |name| other.request(name).shared().overtake().timeout(PATIENCE);
        let readers =
            ["x", "y"].map(|name| block_on(beside(name).into_future()).expect("they are shared"));
        assert!(!writer.is_finished(), "a writer came between");
        assert_eq!((lock.fencing_token(), late.fencing_token()), (token, late_token));
        assert_eq!((lock.loss(), late.loss()), (None, None));
        drop((lock, late, readers));
        drop(writer.join().expect("no panic"));
    }
}

/// A machine cannot be put to sleep here. To a service that starts where the clock of the machine
/// is ahead, it has slept since the last one.
#[test]
fn h04_longest_hold_passes_while_the_machine_sleeps() {
    const HOUR: Duration = Duration::from_secs(3600);
    let later = ["unshare", "--time", "--boottime", "3600"];
    let works = Command::new(later[0]).args(&later[1..]).arg("true").status();
    if !works.is_ok_and(|status| status.success()) {
        return servers::skip("this user cannot make a time namespace");
    }
    let folder = Folder::new("longest-hold-asleep");
    let mut served = Served::unix(folder.path());
    let service = served.run();
    let (first, other) = (connect(&served), connect(&served));
    let brief = block_on(first.request("x").max_hold(HOUR / 2).into_future()).expect("it is free");
    let long = block_on(first.request("y").max_hold(HOUR * 2).into_future()).expect("it is free");
    let waiter = wait_on_a_thread(other.request("x"));
    await_queue(&other, 2, 1);
    service.kill();
    served.started_by(&later);
    let _service = served.run();
    assert_eq!(block_on(brief.lost()), LossCause::HeldTooLong);
    drop(waiter.join().expect("no panic"));
    assert_eq!(long.loss(), None);
}
