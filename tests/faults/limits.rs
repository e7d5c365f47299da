//! Limits over the end of a service: never more holders than the smallest limit, in queue order.

use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use navlocks::blocking::block_on;
use navlocks::{Lock, Locks, Mode};
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
