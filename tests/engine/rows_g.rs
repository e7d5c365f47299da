//! G2–G5, G7–G9, G17, G18: what shipped implementations get wrong and the public tests do not
//! catch.

use navlocks_core::{Name, Request, Wait};

use crate::support::{NOTHING, Table, manager, s, x};

#[test]
fn g2_abort_of_a_middle_request_wakes_those_behind() {
    let mut table = Table::new();
    table.holds("C1", "S1", s("a"));
    table.waits("C1", "X", x("a"));
    table.waits("C1", "S2", s("a"));
    assert_eq!(table.abort("X"), ["granted S2"]);
}

#[test]
fn g3_an_aborted_request_is_in_no_snapshot() {
    let mut table = Table::new();
    table.holds("C1", "holder", x("a"));
    table.waits("C2", "first", x("a"));
    table.waits("C2", "aborted", s("a"));
    table.waits("C2", "last", x("a"));
    table.abort("aborted");
    // At once, not when its turn would have come.
    assert_eq!(table.query(), NOTHING);
    assert_eq!(table.pending(), ["first", "last"]);
    assert_eq!(table.manager.pending_count(), 2);
}

#[test]
fn g4_if_available_asks_the_queue_too() {
    let mut table = Table::new();
    table.holds("C1", "S1", s("a"));
    table.waits("C1", "X", x("a"));
    assert_eq!(table.request("C1", "S2", s("a").wait(Wait::IfAvailable)), ["unavailable S2"]);
    assert_eq!(table.pending(), ["X"]);
}

#[test]
fn g5_no_overtaking_across_clients() {
    let mut table = Table::new();
    table.holds("D", "X0", x("a"));
    table.waits("A", "S1", s("a"));
    table.waits("B", "X2", x("a"));
    table.waits("C", "S3", s("a"));
    assert_eq!(table.release("X0"), ["granted S1"]);
    assert_eq!(table.release("S1"), ["granted X2"]);
    assert_eq!(table.release("X2"), ["granted S3"]);
}

#[test]
fn g7_a_steal_takes_from_several_shared_holders() {
    let mut table = Table::new();
    for holder in ["S1", "S2", "S3"] {
        table.holds(holder, holder, s("a"));
    }
    let events = table.request("C4", "thief", x("a").wait(Wait::Steal));
    assert_eq!(
        events,
        [
            "lost S1: stolen by thief",
            "lost S2: stolen by thief",
            "lost S3: stolen by thief",
            "granted thief"
        ]
    );
    // Three are gone for good, not waiting to come back.
    assert_eq!(table.release("thief"), NOTHING);
    assert_eq!(table.held(), NOTHING);
}

#[test]
fn g8_a_steal_leaves_other_names_and_their_queues() {
    let mut table = Table::new();
    table.holds("C1", "a", x("a"));
    table.holds("C1", "b", x("b"));
    table.waits("C2", "b next", x("b"));
    assert_eq!(
        table.request("C2", "thief", x("a").wait(Wait::Steal)),
        ["lost a: stolen by thief", "granted thief"]
    );
    assert!(table.is_held("b") && table.is_pending("b next"));
    assert_eq!(table.release("b"), ["granted b next"]);
}

#[test]
fn g9_a_victims_late_settle_does_not_release_the_thief() {
    let mut table = Table::new();
    table.holds("A", "victim", x("a"));
    table.request("B", "thief", x("a").wait(Wait::Steal));
    table.release_does_nothing("victim");
    assert_eq!(table.request("A", "try", x("a").wait(Wait::IfAvailable)), ["unavailable try"]);
    assert!(table.is_held("thief"));
}

#[test]
fn g9_nor_does_the_victims_death() {
    let mut table = Table::new();
    table.holds("A", "victim", x("a"));
    table.request("B", "thief", x("a").wait(Wait::Steal));
    assert_eq!(table.terminate("A"), NOTHING);
    assert!(table.is_held("thief"));
}

#[test]
fn g17_names_that_look_alike_are_distinct() {
    let alike = [["\u{E9}", "e\u{301}"], ["A", "a"], ["\u{212B}", "\u{C5}"], ["\u{DF}", "ss"]];
    for [held, other] in alike {
        let mut table = Table::new();
        table.holds("C1", "held", x(held));
        table.holds("C2", "other", x(other).wait(Wait::IfAvailable));
        // And the same name is the same, from either side.
        assert_eq!(
            table.request("C2", "same", x(held).wait(Wait::IfAvailable)),
            ["unavailable same"]
        );
    }
}

#[test]
fn g18_a_million_names_leave_nothing_behind() {
    // What memory that is, the benchmarks measure; here the engine's own books are empty.
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
fn g18_many_names_at_once_leave_nothing_behind() {
    let mut manager = manager();
    let client = manager.add_client();
    let ask = |at: u32| Request::exclusive(Name::from(format!("job {at}")));
    let mut requests: Vec<_> =
        (0..50_000).map(|at| manager.request(client, ask(at)).unwrap().0).collect();
    assert_eq!(manager.name_count(), 50_000);
    // Waiters keep their name alive, and no longer than they wait.
    let waiting: Vec<_> =
        (0..50_000).map(|at| manager.request(client, ask(at)).unwrap().0).collect();
    while manager.poll_event().is_some() {}
    assert!(waiting.into_iter().all(|request| manager.abort(request)));
    assert_eq!(manager.name_count(), 50_000);
    // The last first: nothing depends on the order they came in.
    while let Some(request) = requests.pop() {
        assert!(manager.release(request));
        assert_eq!(manager.name_count(), requests.len());
    }
    assert!(manager.poll_event().is_none());
}
