//! Memory: names that are no longer used leave nothing behind.

use navlocks_core::{Name, Request, Wait};

use crate::support::{Table, manager, s, x};

#[test]
fn g18_s13_million_names_leave_nothing_behind() {
    // The benchmarks measure the memory; this test checks the counts of the engine.
    let mut manager = manager();
    let client = manager.add_client();
    for at in 0..1_000_000 {
        let name = Name::from(format!("job {at}"));
        let request = manager.request(client, Request::exclusive(name)).unwrap().0;
        assert!(manager.poll_event().is_none());
        assert!(manager.release(request));
        assert_eq!(manager.name_count(), 0);
    }
    assert_eq!((manager.held_count(), manager.pending_count()), (0, 0));
    assert_eq!(manager.client_count(), 1);
    manager.check_invariants();
}

#[test]
fn g18_s13_many_names_at_once_leave_nothing_behind() {
    let mut manager = manager();
    let client = manager.add_client();
    let ask = |at: u32| Request::exclusive(Name::from(format!("job {at}")));
    let mut requests: Vec<_> =
        (0..50_000).map(|at| manager.request(client, ask(at)).unwrap().0).collect();
    assert_eq!(manager.name_count(), 50_000);
    // Waiters keep their name in use, and no longer than they wait.
    let waiting: Vec<_> =
        (0..50_000).map(|at| manager.request(client, ask(at)).unwrap().0).collect();
    while manager.poll_event().is_some() {}
    assert!(waiting.into_iter().all(|request| manager.abort(request)));
    assert_eq!(manager.name_count(), 50_000);
    // The last first: nothing depends on the order of arrival.
    while let Some(request) = requests.pop() {
        assert!(manager.release(request));
        assert_eq!(manager.name_count(), requests.len());
    }
    assert!(manager.poll_event().is_none());
}

#[test]
fn s13_unused_name_is_forgotten() {
    let mut table = Table::new();
    table.holds("C1", "released", x("a"));
    table.waits("C1", "aborted", x(["a", "b"]));
    assert_eq!(table.manager.name_count(), 2);
    table.abort("aborted");
    assert_eq!(table.manager.name_count(), 1);
    table.release("released");
    assert_eq!(table.manager.name_count(), 0);
    // The requests end in every possible way.
    table.holds("C1", "forced", x("c"));
    table.force_release("c");
    table.holds("C2", "terminated", x("d"));
    table.terminate("C2");
    table.holds("C1", "holder", x("e"));
    table.request("C1", "missed", s(["e", "f"]).wait(Wait::IfAvailable));
    assert_eq!(table.manager.name_count(), 1);
}
