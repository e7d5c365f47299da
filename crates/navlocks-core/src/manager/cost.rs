//! The cost of each input, counted in reads of entries, which no machine changes.

use alloc::format;
use alloc::vec::Vec;

use super::LockManager;
use crate::{ClientId, HashKey, Mode, Request, RequestId, Wait};

/// Returns how many entries the engine reads while `work` runs, the checks of debug builds aside.
fn reads(manager: &mut LockManager, work: impl FnOnce(&mut LockManager)) -> usize {
    let before = manager.seating.reads();
    work(manager);
    manager.seating.reads() - before
}

/// Requests without the checks that debug builds make after each input.
fn request(manager: &mut LockManager, client: ClientId, request: Request) -> RequestId {
    let owner = manager.clients.find(client).unwrap();
    manager.request_a_lock(owner, &request).0
}

fn release(manager: &mut LockManager, lock: RequestId) {
    let entry = manager.seating.find(lock).unwrap();
    manager.release_the_lock(entry);
}

fn abort(manager: &mut LockManager, pending: RequestId) {
    let entry = manager.seating.find(pending).unwrap();
    manager.abort_the_request(entry);
}

/// Makes a manager in which `others` clients hold one name each, and as many more wait for the
/// first of these names.
fn crowd(others: usize) -> (LockManager, ClientId) {
    let mut manager = LockManager::new(HashKey::from_bytes([1; 16]));
    for number in 0..others {
        let client = manager.add_client();
        request(&mut manager, client, Request::exclusive(format!("other {number}")));
        request(&mut manager, client, Request::shared("other 0"));
    }
    let client = manager.add_client();
    (manager, client)
}

/// Returns the reads of one round of every input, among `others` unrelated clients and with
/// `waiting` requests on the same name.
fn round(others: usize, waiting: usize) -> Vec<(&'static str, usize)> {
    let (mut manager, client) = crowd(others);
    let mut holder = request(&mut manager, client, Request::exclusive("name"));
    let mut next = Vec::new();
    for _ in 0..waiting {
        next.push(request(&mut manager, client, Request::exclusive("name")));
    }
    let mut measured = Vec::new();
    let mut measure = |what, work: &mut dyn FnMut(&mut LockManager)| {
        measured.push((what, reads(&mut manager, |manager| work(manager))));
    };
    let mut last = holder;
    measure("request at the end", &mut |manager| {
        last = request(manager, client, Request::exclusive("name"));
    });
    measure("abort at the end", &mut |manager| abort(manager, last));
    measure("if available", &mut |manager| {
        request(manager, client, Request::shared("name").wait(Wait::IfAvailable));
    });
    measure("hand-over", &mut |manager| release(manager, core::mem::replace(&mut holder, next[0])));
    measure("abort in the middle", &mut |manager| abort(manager, next[next.len() / 2]));
    let mut thief = holder;
    measure("steal of a free name", &mut |manager| {
        thief = request(manager, client, Request::exclusive("free").wait(Wait::Steal));
    });
    measure("steal from one holder", &mut |manager| {
        thief = request(manager, client, Request::exclusive("free").wait(Wait::Steal));
    });
    measure("release of a stolen name", &mut |manager| release(manager, thief));
    let mut scope = holder;
    measure("scope of three", &mut |manager| {
        scope = request(manager, client, Request::exclusive(["x", "y", "z"]));
    });
    measure("release of three", &mut |manager| release(manager, scope));
    measured
}

#[test]
fn f69_input_reads_no_unrelated_entry() {
    let alone = round(0, 10);
    assert_eq!(round(1_000, 10), alone);
    assert_eq!(round(100_000, 10), alone);
}

#[test]
fn f69_input_reads_no_further_entry_of_its_own_queue() {
    let short = round(0, 10);
    assert_eq!(round(0, 1_000), short);
    assert_eq!(round(0, 100_000), short);
}

#[test]
fn f69_terminated_client_costs_reads_of_its_own_entries_only() {
    let terminate = |others| {
        let (mut manager, client) = crowd(others);
        for number in 0..10 {
            request(&mut manager, client, Request::exclusive(format!("{}", number / 2)));
        }
        let index = manager.clients.find(client).unwrap();
        reads(&mut manager, |manager| manager.terminate_remaining_locks_and_requests(&[index]))
    };
    assert_eq!(terminate(0), terminate(10_000));
}

#[test]
fn l14_limited_lock_among_many_costs_the_same_reads() {
    let limited = |holders: u32, waiting| {
        let mut manager = LockManager::new(HashKey::from_bytes([1; 16]));
        let client = manager.add_client();
        let mode = Mode::limited(holders).unwrap();
        let made: Vec<RequestId> = (0..holders + waiting)
            .map(|_| request(&mut manager, client, Request::shared("name").mode(mode)))
            .collect();
        reads(&mut manager, |manager| {
            let middle = |from: u32, count: u32| made[(from + count / 2) as usize];
            abort(manager, middle(holders, waiting));
            release(manager, middle(0, holders));
            request(manager, client, Request::shared("name").mode(mode));
        })
    };
    assert_eq!(limited(3, 3), limited(3, 100_000));
    assert_eq!(limited(3, 3), limited(100_000, 3));
}

#[test]
fn f69_shared_lock_among_many_costs_the_same_reads() {
    let shared = |others| {
        let mut manager = LockManager::new(HashKey::from_bytes([1; 16]));
        let client = manager.add_client();
        let holders: Vec<RequestId> =
            (0..others).map(|_| request(&mut manager, client, Request::shared("name"))).collect();
        let middle = holders[holders.len() / 2];
        reads(&mut manager, |manager| {
            release(manager, middle);
            request(manager, client, Request::shared("name"));
        })
    };
    assert_eq!(shared(3), shared(100_000));
}

/// A waiter of each kind that a service has many of, by its number.
type NextWaiter = fn(&mut LockManager, &[ClientId], usize) -> RequestId;

/// Returns the reads of the deadlock policy for the last of many waiters. Both clients hold a lock
/// that the other does not want, and the first holds `name` and `pair` too.
fn policy_reads(waiters: usize, next: NextWaiter) -> usize {
    let mut manager = LockManager::new(HashKey::from_bytes([1; 16]));
    let clients: Vec<ClientId> = (0..3).map(|_| manager.add_client()).collect();
    for held in ["name", "pair", "own of first"] {
        request(&mut manager, clients[0], Request::exclusive(held));
    }
    for client in [1, 2] {
        request(&mut manager, clients[client], Request::exclusive(format!("own of {client}")));
        // A wait for a lock of each waiter, so that only a search can tell.
        let other = manager.add_client();
        request(&mut manager, other, Request::exclusive(format!("own of {client}")));
    }
    let mut last = None;
    for number in 0..waiters {
        last = Some(next(&mut manager, &clients, number));
    }
    let last = last.expect("there are waiters");
    reads(&mut manager, |manager| {
        assert_eq!(manager.deadlock_closed_by(last, usize::MAX), None);
    })
}

#[test]
fn deadlock_policy_reads_the_same_for_each_of_many_waiters() {
    let kinds: [(&str, NextWaiter); 6] = [
        ("the holder itself", |manager, clients, _| {
            request(manager, clients[0], Request::exclusive("name"))
        }),
        ("one client", |manager, clients, _| {
            request(manager, clients[1], Request::exclusive("name"))
        }),
        ("two clients in turn", |manager, clients, number| {
            request(manager, clients[1 + number % 2], Request::exclusive("name"))
        }),
        ("a client each", |manager, _, _| {
            let client = manager.add_client();
            request(manager, client, Request::exclusive("name"))
        }),
        ("a client each, for a name each of one holder", |manager, clients, number| {
            let name = format!("{number}");
            request(manager, clients[0], Request::exclusive(name.as_str()));
            let client = manager.add_client();
            request(manager, client, Request::exclusive(name.as_str()))
        }),
        ("one client, for several names", |manager, clients, _| {
            request(manager, clients[1], Request::exclusive(["name", "pair"]))
        }),
    ];
    for (kind, next) in kinds {
        assert_eq!(policy_reads(10, next), policy_reads(1_000, next), "{kind}");
    }
}
