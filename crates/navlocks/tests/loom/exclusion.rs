//! Exclusion and wakeups.

use std::future::IntoFuture;
use std::rc::Rc;

use loom::cell::UnsafeCell;
use loom::future::block_on;
use loom::thread;
use navlocks::{DeadlockPolicy, Locks, RequestError, RequestErrorKind};

use crate::{assert_nothing_left, begin_to_wait, hold, model};

/// A resource that the lock protects. Its accesses must exclude each other, and be visible to each
/// other.
#[derive(Clone)]
struct Resource(Rc<UnsafeCell<()>>);

impl Resource {
    fn new() -> Self {
        Self(Rc::new(UnsafeCell::new(())))
    }

    fn read(&self) {
        self.0.with(|_| ());
    }

    fn write(&self) {
        self.0.with_mut(|_| ());
    }
}

#[test]
fn exclusive_locks_exclude_each_other() {
    model(|| {
        let locks = Locks::new();
        let resource = Resource::new();
        let work = |locks: Locks, resource: Resource| {
            move || {
                for _ in 0..2 {
                    let lock = hold(locks.request("a"));
                    resource.write();
                    drop(lock);
                }
            }
        };
        let other = thread::spawn(work(locks.clone(), resource.clone()));
        work(locks.clone(), resource)();
        other.join().unwrap();
        assert_nothing_left(&locks, "a");
    });
}

#[test]
fn writer_excludes_readers() {
    model(|| {
        let locks = Locks::new();
        let resource = Resource::new();
        let read = |locks: Locks, resource: Resource| {
            move || {
                let lock = hold(locks.request("a").shared());
                resource.read();
                lock.release().unwrap();
            }
        };
        let first = thread::spawn(read(locks.clone(), resource.clone()));
        let second = thread::spawn(read(locks.clone(), resource.clone()));
        let lock = hold(locks.request("a"));
        resource.write();
        lock.release().unwrap();
        first.join().unwrap();
        second.join().unwrap();
        assert_nothing_left(&locks, "a");
    });
}

#[test]
fn scopes_exclude_each_other_where_they_intersect() {
    model(|| {
        let locks = Locks::new();
        let resource = Resource::new();
        let work = |locks: Locks, resource: Resource, scope: [&'static str; 2]| {
            move || {
                let lock = hold(locks.request(scope));
                resource.write();
                drop(lock);
            }
        };
        let first = thread::spawn(work(locks.clone(), resource.clone(), ["a", "b"]));
        work(locks.clone(), resource, ["c", "b"])();
        first.join().unwrap();
        assert_nothing_left(&locks, "b");
    });
}

/// A request that was polled by one task and then by another wakes the latter.
#[test]
fn pending_request_moves_to_another_thread() {
    model(|| {
        let locks = Locks::new();
        let first = hold(locks.request("a"));
        let waiting = begin_to_wait(locks.request("a"));
        let other = thread::spawn(|| block_on(waiting).unwrap().release().unwrap());
        first.release().unwrap();
        other.join().unwrap();
        assert_nothing_left(&locks, "a");
    });
}

#[test]
fn lock_moves_to_another_thread() {
    model(|| {
        let locks = Locks::new();
        let resource = Resource::new();
        let lock = hold(locks.request("a"));
        resource.write();
        let other = thread::spawn({
            let resource = resource.clone();
            move || {
                resource.write();
                drop(lock);
            }
        });
        let lock = hold(locks.request("a"));
        resource.write();
        drop(lock);
        other.join().unwrap();
        assert_nothing_left(&locks, "a");
    });
}

/// Two clients request each other's lock: one of them is refused, and the other is granted.
#[test]
fn deadlock_of_two_clients_refuses_one() {
    model(|| {
        let locks = Locks::builder().deadlocks(DeadlockPolicy::Refuse).build();
        let work = |client: Locks, first: &'static str, second: &'static str| {
            move || {
                let first = hold(client.request(first));
                block_on(first.request(second).into_future()).map(drop)
            }
        };
        let other = thread::spawn(work(locks.new_client(), "a", "b"));
        let one = work(locks.new_client(), "b", "a")();
        let results = [one, other.join().unwrap()];
        let refused = |result: &Result<(), RequestError>| match result {
            Ok(()) => false,
            Err(error) => {
                matches!(error.kind(), RequestErrorKind::Deadlock(_)) || panic!("{error}")
            }
        };
        assert!(!results.iter().all(refused), "{results:?}");
        assert_nothing_left(&locks, "a");
        assert_nothing_left(&locks, "b");
    });
}
