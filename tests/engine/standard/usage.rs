//! The promises of the standard's usage and security sections: deadlocks, primary tabs, partitions.

use navlocks_core::{ClientId, Deadlock, LockManager, Request, RequestId, Scope, State, Wait};

use crate::support::{Dice, NOTHING, Table, manager, s, x};

/// Plays the two scripts of the standard's example, each holding one name and waiting for the
/// other.
fn deadlock_example() -> Table {
    let mut table = Table::new();
    table.holds("script 1", "1 has A", x("A"));
    table.holds("script 2", "2 has B", x("B"));
    table.waits("script 1", "1 wants B", x("B"));
    table.waits("script 2", "2 wants A", x("A"));
    table
}

#[test]
fn f130_deadlock_is_reported_with_its_clients() {
    let mut table = deadlock_example();
    assert_eq!(table.deadlocked_clients(), [["script 1", "script 2"]]);
    // The held requests are part of the cycle, too.
    let circle = ["1 has A", "2 has B", "1 wants B", "2 wants A"];
    let requests = circle.map(|request| table.id(request)).to_vec();
    let clients = vec![table.client("script 1"), table.client("script 2")];
    let [possible] = &table.manager.possible_deadlocks()[..] else { panic!("there is one") };
    assert_eq!((&possible.clients, &possible.requests), (&clients, &requests));
    // Once it is known which lock waits, it is certain.
    assert!(table.nest("1 wants B", "1 has A") && table.nest("2 wants A", "2 has B"));
    assert!(table.manager.possible_deadlocks().is_empty());
    for request in circle {
        let through = table.manager.deadlock_through(table.id(request), usize::MAX).unwrap();
        assert_eq!((&through.clients, &through.requests), (&clients, &requests));
    }
}

#[test]
fn f130_deadlock_blocks_only_its_own_names() {
    let mut table = deadlock_example();
    table.holds("script 3", "C", x("C"));
    table.waits("script 1", "C next", x("C"));
    table.holds("script 2", "D", s("D"));
    assert_eq!(table.release("C"), ["granted C next"]);
    assert_eq!(table.release("C next"), NOTHING);
    // A request that waits behind a deadlock is not part of it.
    table.waits("script 3", "3 wants A", x("A"));
    assert_eq!(table.deadlocked_clients(), [["script 1", "script 2"]]);
}

#[test]
fn f130_client_that_waits_for_itself_is_no_deadlock_and_joins_none() {
    let mut table = Table::new();
    table.holds("server", "first request", x("key"));
    table.waits("other", "of another client", x("key"));
    table.waits("server", "second request", x("key"));
    table.waits("server", "both", Request::exclusive(["key", "more"]));
    assert!(table.deadlocked_clients().is_empty());

    let mut table = deadlock_example();
    table.waits("script 1", "1 wants A again", x("A"));
    let found = table.manager.possible_deadlocks();
    assert_eq!(found.len(), 1);
    let again = table.id("1 wants A again");
    assert!(!found[0].requests.contains(&again), "it waits for its own client alone");
}

#[test]
fn f130_deadlock_ends_when_one_request_is_aborted() {
    let mut table = deadlock_example();
    assert_eq!(table.abort("2 wants A"), NOTHING);
    assert_eq!(table.deadlocked_clients(), Vec::<Vec<String>>::new());
    assert_eq!(table.release("2 has B"), ["granted 1 wants B"]);

    let mut table = deadlock_example();
    assert_eq!(table.terminate("script 1"), ["granted 2 wants A"]);
    assert_eq!(table.deadlocked_clients(), Vec::<Vec<String>>::new());
}

/// The steps of a job for a pair of names, each requested when the one before is granted.
type Plan = fn([&'static str; 2]) -> Vec<Scope>;

/// A client that requests its locks one after another, works, and releases in reverse, as nested
/// callbacks do.
struct Worker {
    client: ClientId,
    jobs: Vec<Vec<Scope>>,
    to_request: Vec<Scope>,
    locks: Vec<RequestId>,
}

impl Worker {
    fn can_act(&self, manager: &LockManager) -> bool {
        match self.locks.last() {
            Some(&lock) => matches!(manager.state(lock), Some(State::Held(_))),
            None => !self.jobs.is_empty(),
        }
    }

    /// Takes the next step. Returns true if that finishes a job.
    fn act(&mut self, manager: &mut LockManager) -> bool {
        if self.locks.is_empty() {
            self.to_request =
                self.jobs.pop().expect("a worker without locks acts only for a new job");
            self.to_request.reverse();
        }
        if let Some(scope) = self.to_request.pop() {
            self.locks.push(
                manager
                    .request(self.client, Request::exclusive(scope))
                    .expect("the worker lives")
                    .0,
            );
        } else {
            let lock = self.locks.pop().expect("a job holds a lock at its end");
            assert!(manager.release(lock));
        }
        self.locks.is_empty()
    }
}

/// Runs a thousand jobs of five clients on random pairs of six names, interleaved at random.
/// Returns how many jobs finish, and the deadlocks that remain.
fn thousand_random_pairs(plan: Plan) -> (usize, Vec<Deadlock>) {
    const NAMES: [&str; 6] = ["a", "b", "c", "d", "e", "f"];
    let mut dice = Dice::new(131);
    let mut manager = manager();
    let mut random_job = || {
        let first = dice.roll(6);
        let second = (first + 1 + dice.roll(5)) % 6;
        plan([NAMES[first], NAMES[second]])
    };
    let mut workers: Vec<Worker> = (0..5)
        .map(|_| Worker {
            client: manager.add_client(),
            jobs: (0..200).map(|_| random_job()).collect(),
            to_request: Vec::new(),
            locks: Vec::new(),
        })
        .collect();

    let mut done = 0;
    loop {
        let mut ready: Vec<&mut Worker> =
            workers.iter_mut().filter(|worker| worker.can_act(&manager)).collect();
        if ready.is_empty() {
            return (done, manager.possible_deadlocks());
        }
        let turn = dice.roll(ready.len());
        done += usize::from(ready[turn].act(&mut manager));
        manager.check_invariants();
        while manager.poll_event().is_some() {}
    }
}

#[test]
fn f131_nested_requests_in_sorted_order_finish() {
    let (done, deadlocks) = thousand_random_pairs(|[first, second]| {
        vec![Scope::from(first.min(second)), Scope::from(first.max(second))]
    });
    assert_eq!((done, deadlocks.len()), (1000, 0));
}

#[test]
fn f131_one_request_for_both_names_finishes_in_any_order() {
    let (done, deadlocks) =
        thousand_random_pairs(|pair| vec![Scope::new(pair).expect("two names")]);
    assert_eq!((done, deadlocks.len()), (1000, 0));
}

#[test]
fn f131_nested_requests_without_sorting_deadlock() {
    // The other two tests prove something only because this one deadlocks.
    let (done, deadlocks) = thousand_random_pairs(|pair| pair.map(Scope::from).into());
    assert!(done < 1000);
    assert!(!deadlocks.is_empty(), "no client can act, so there is a deadlock");
}

#[test]
fn f132_x38_next_tab_is_granted_when_the_primary_ends() {
    let mut table = Table::new();
    table.holds("C1", "primary", x("primary_tab"));
    table.waits("C2", "first in line", x("primary_tab"));
    table.waits("C3", "second in line", x("primary_tab"));
    assert_eq!(table.terminate("C1"), ["granted first in line"]);
    assert_eq!(table.terminate("C2"), ["granted second in line"]);
    assert_eq!(table.terminate("C3"), NOTHING);
    assert_eq!((table.manager.client_count(), table.manager.name_count()), (0, 0));
}

#[test]
fn f133_s8_f08_partitions_share_nothing() {
    // One manager is one partition: an origin, a private session, a bucket.
    let (mut normal, mut private) = (Table::new(), Table::new());
    normal.holds("tab", "lock", x("a"));
    private.holds("tab", "lock", x("a"));
    normal.waits("other tab", "next", x("a"));
    let stolen = private.request("other tab", "thief", x("a").wait(Wait::Steal));
    assert_eq!(stolen, ["lost lock: stolen by thief", "granted thief"]);
    assert_eq!(private.terminate("tab"), NOTHING);
    assert_eq!(normal.settle(), NOTHING);
    assert_eq!(normal.held(), ["lock"]);
    assert_eq!(normal.release("lock"), ["granted next"]);
}
