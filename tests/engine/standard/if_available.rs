//! `ifAvailable`: a request that is granted at once or not at all.

use navlocks_core::{Answer, Wait};

use crate::support::{NOTHING, Table, manager, s, x};

#[test]
fn f70_if_available_is_granted_or_not_for_every_pair_of_modes() {
    let mut table = Table::new();
    table.holds("C1", "on a free name", x("a").wait(Wait::IfAvailable));
    table.holds("C1", "shared on a free name", s("b").wait(Wait::IfAvailable));

    let unavailable = |label: &str| vec![format!("unavailable {label}")];
    for (label, request) in [("X on X", x("a")), ("S on X", s("a")), ("X on S", x("b"))] {
        let events = table.request("C2", label, request.wait(Wait::IfAvailable));
        assert_eq!(events, unavailable(label));
        assert!(table.is_gone(label));
    }
    table.holds("C2", "S on S", s("b").wait(Wait::IfAvailable));
    table.holds("C2", "on another name", x("c").wait(Wait::IfAvailable));

    assert_eq!(table.release("on a free name"), NOTHING);
    table.holds("C2", "once it is free again", x("a").wait(Wait::IfAvailable));
}

#[test]
fn f72_s1_miss_is_never_queued_and_answered_once() {
    let mut table = Table::new();
    table.holds("C1", "holder", x("a"));
    assert_eq!(table.request("C2", "miss", s("a").wait(Wait::IfAvailable)), ["unavailable miss"]);
    assert_eq!(table.query(), NOTHING);
    assert_eq!(table.pending(), NOTHING);
    // The later release finds no waiter, and the miss left no request.
    assert_eq!(table.release("holder"), NOTHING);
    table.abort_does_nothing("miss");
    table.release_does_nothing("miss");
    assert_eq!(table.manager.name_count(), 0);
}

#[test]
fn f72_s1_if_available_is_answered_at_once_and_causes_no_event() {
    let mut manager = manager();
    let client = manager.add_client();
    let hit = manager.request(client, x("a").wait(Wait::IfAvailable)).unwrap().1;
    let miss = manager.request(client, x("a").wait(Wait::IfAvailable)).unwrap().1;
    assert!(matches!(hit, Answer::Granted(_)));
    assert_eq!(miss, Answer::Unavailable);
    assert!(manager.poll_event().is_none());
}

#[test]
fn f73_queue_makes_lock_unavailable_although_held_modes_are_compatible() {
    let mut table = Table::new();
    table.holds("C1", "S1", s("a"));
    table.waits("C2", "X", x("a"));
    assert_eq!(table.request("C3", "S2", s("a").wait(Wait::IfAvailable)), ["unavailable S2"]);
    // Without the queue, the same request is granted.
    assert_eq!(table.abort("X"), NOTHING);
    table.holds("C3", "S3", s("a").wait(Wait::IfAvailable));
}

#[test]
fn f73_scope_is_unavailable_when_one_of_its_names_is() {
    let mut table = Table::new();
    table.holds("C1", "S1", s("a"));
    table.waits("C2", "X", x(["a", "b"]));
    // "b" has no holder, but a waiter.
    assert_eq!(
        table.request("C3", "S2", s(["b", "c"]).wait(Wait::IfAvailable)),
        ["unavailable S2"]
    );
    table.holds("C3", "S3", s("c").wait(Wait::IfAvailable));
}

#[test]
fn f74_miss_does_not_change_the_queue() {
    let mut table = Table::new();
    table.holds("C1", "S1", s("a"));
    table.waits("C2", "X1", x("a"));
    table.waits("C3", "S2", s("a"));
    table.waits("C4", "X2", x("a"));
    for (at, request) in [x("a"), s("a"), x(["a", "b"]), s(["0", "a"])].into_iter().enumerate() {
        let label = format!("miss {at}");
        let events = table.request("C5", &label, request.wait(Wait::IfAvailable));
        assert_eq!(events, [format!("unavailable {label}")]);
        assert_eq!(table.held(), ["S1"]);
        assert_eq!(table.pending(), ["X1", "S2", "X2"]);
    }
    assert_eq!(table.release("S1"), ["granted X1"]);
    assert_eq!(table.release("X1"), ["granted S2"]);
    assert_eq!(table.release("S2"), ["granted X2"]);
}

#[test]
fn g4_if_available_is_refused_by_the_queue() {
    let mut table = Table::new();
    table.holds("C1", "S1", s("a"));
    table.waits("C1", "X", x("a"));
    assert_eq!(table.request("C1", "S2", s("a").wait(Wait::IfAvailable)), ["unavailable S2"]);
    assert_eq!(table.pending(), ["X"]);
}

#[test]
fn s1_unavailable_request_is_not_queued() {
    // Read literally, the text would also queue the request, and its callback would run twice.
    let mut manager = manager();
    let client = manager.add_client();
    let holder = manager.request(client, x("a")).unwrap().0;
    let (miss, answer) = manager.request(client, x("a").wait(Wait::IfAvailable)).unwrap();
    assert_eq!(answer, Answer::Unavailable);
    assert!(manager.release(holder));
    assert_eq!(manager.poll_event(), None);
    assert_eq!(manager.state(miss), None);
    assert_eq!((manager.held_count(), manager.pending_count()), (0, 0));
}
