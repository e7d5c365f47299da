//! The cost of what a space adds to its engine, counted in reads of entries, which no machine
//! changes.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::{Embedder, Notes, Notice, Sink, Space};
use crate::{ClientId, DeadlockPolicy, HashKey, LockManager, Request, RequestId, Wait};

struct Plain;

impl Embedder for Plain {
    type Note = ();
    type Time = ();
    type Tag = ();
}

/// Counts the holders that were notified of contention.
#[derive(Default)]
struct Told(usize);

impl Sink<Plain> for Told {
    fn now(&self) {}

    fn notify(&mut self, _: RequestId, _: &mut Notes<Plain>, notice: &Notice<'_, ()>) {
        self.0 += usize::from(matches!(notice, Notice::Contended));
    }
}

fn space() -> (Space<Plain>, ClientId) {
    let manager = LockManager::new(HashKey::from_bytes([1; 16]));
    let mut space = Space::new(manager, DeadlockPolicy::Ignore);
    let client = space.add_client();
    (space, client)
}

fn request(space: &mut Space<Plain>, client: ClientId, request: &Request) -> RequestId {
    let made = space.request(client, request, ((), None), &mut Told::default());
    made.expect("the request is taken").0
}

fn within(
    space: &mut Space<Plain>,
    outer: RequestId,
    client: ClientId,
    request: &Request,
) -> RequestId {
    let told = &mut Told::default();
    let made = space.request_within(Some(outer), client, request, ((), None), told);
    made.expect("the request is taken").0
}

/// Returns how many entries the engine reads while `work` runs.
fn reads(space: &mut Space<Plain>, work: impl FnOnce(&mut Space<Plain>)) -> usize {
    let before = space.manager().reads();
    work(space);
    space.manager().reads() - before
}

#[test]
fn contention_of_many_watchers_reads_each_a_few_times() {
    const WATCHERS: usize = 200_000;
    let (mut space, client) = space();
    for _ in 0..WATCHERS {
        let lock = request(&mut space, client, &Request::shared("name"));
        space.watch_contention(lock, &mut Told::default());
    }
    let mut told = Told::default();
    let count = reads(&mut space, |space| {
        let exclusive = Request::exclusive("name");
        let made = space.request(client, &exclusive, ((), None), &mut told);
        made.expect("the request is taken");
    });
    assert_eq!(told.0, WATCHERS);
    // Debug builds check the engine now and then, which reads all entries.
    assert!(count < 40 * WATCHERS, "{count} reads");
}

/// Asserts that four times as many inputs cost about four times as many reads, with the checks that
/// debug builds make now and then.
fn assert_linear(reads_of: impl Fn(usize) -> usize) {
    let (few, many) = (reads_of(4_000), reads_of(16_000));
    assert!(few > 0 && many < 5 * few, "{few} and {many} reads");
}

#[test]
fn steals_of_many_free_names_read_each_a_few_times() {
    assert_linear(|steals| {
        let (mut space, client) = space();
        reads(&mut space, |space| {
            for number in 0..steals {
                let steal = Request::exclusive(format!("{number}")).wait(Wait::Steal);
                request(space, client, &steal);
            }
        })
    });
}

#[test]
fn many_waiters_under_a_policy_that_reports_read_a_few_entries_each() {
    assert_linear(|waiters| {
        let manager = LockManager::new(HashKey::from_bytes([1; 16]));
        let mut space = Space::<Plain>::new(manager, DeadlockPolicy::Report);
        let holders = [space.add_client(), space.add_client()];
        let [first, second] = ["first", "second"].map(Request::exclusive);
        let outer = request(&mut space, holders[0], &first);
        request(&mut space, holders[1], &second);
        // Each search has a wait of the holder to follow.
        within(&mut space, outer, holders[0], &second);
        let one = space.add_client();
        let own = request(&mut space, one, &Request::exclusive("own"));
        reads(&mut space, |space| {
            for number in 0..waiters {
                match number % 2 {
                    0 => within(space, own, one, &first),
                    _ => request(space, one, &first),
                };
            }
        })
    });
}

#[test]
fn description_that_ends_and_begins_again_reads_no_entry() {
    let (mut space, client) = space();
    for number in 0..1000 {
        request(&mut space, client, &Request::exclusive(format!("{number}")));
    }
    assert!(reads(&mut space, Space::describe) >= 1000);
    let again = reads(&mut space, |space| {
        for _ in 0..100 {
            space.stop_describing();
            space.describe();
        }
    });
    assert_eq!(again, 0);
}

#[test]
fn unused_description_is_dropped_after_as_many_requests_have_ended() {
    let (mut space, client) = space();
    let locks: Vec<RequestId> = (0..10)
        .map(|number| request(&mut space, client, &Request::exclusive(format!("{number}"))))
        .collect();
    space.describe();
    space.stop_describing();
    for lock in locks {
        assert!(space.release(lock, &mut Told::default()));
    }
    request(&mut space, client, &Request::exclusive("later"));
    assert!(reads(&mut space, Space::describe) > 0, "it was made anew");
}

#[test]
fn deadlock_search_stops_at_its_limit() {
    let (mut space, client) = space();
    let names: Vec<_> = (0..100).map(|number| format!("{number}")).collect();
    let scope = || crate::Scope::new(names.iter().map(String::as_str)).expect("names");
    let other = space.add_client();
    let first = request(&mut space, client, &Request::exclusive("0"));
    let second = request(&mut space, other, &Request::exclusive("of another"));
    within(&mut space, first, client, &Request::exclusive("of another"));
    for _ in 0..300 {
        request(&mut space, client, &Request::shared(scope()));
    }
    let waiter = within(&mut space, second, other, &Request::exclusive(scope()));
    let count = reads(&mut space, |space| {
        assert_eq!(space.manager().deadlocks_within(1000), None);
        assert_eq!(space.manager().possible_deadlocks_within(1000), None);
    });
    assert!(count < 10_000, "{count} reads");
    let count = reads(&mut space, |space| {
        assert_eq!(space.manager().deadlock_through(waiter, 1000), None);
    });
    assert!(count < 10_000, "{count} reads");
    assert!(space.manager().deadlock_through(waiter, 100_000).is_some());
    let count = reads(&mut space, |space| {
        assert_eq!(space.manager().blockers_within(waiter, 1000), None);
    });
    assert!(count < 10_000, "{count} reads");
    let found = space.manager().deadlocks_within(100_000);
    assert_eq!(found, Some(space.manager().deadlocks()));
}
