//! F70, F72–F74: only if available. What the callback makes of its null is the surface's.

use navlocks_core::{Answer, Wait};

use crate::support::{NOTHING, Table, manager, s, x};

#[test]
fn f70_available_unavailable_and_every_pair_of_modes() {
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
fn f72_a_miss_is_never_queued_and_answered_once() {
    let mut table = Table::new();
    table.holds("C1", "holder", x("a"));
    assert_eq!(table.request("C2", "miss", s("a").wait(Wait::IfAvailable)), ["unavailable miss"]);
    assert_eq!(table.query(), NOTHING);
    assert_eq!(table.pending(), NOTHING);
    // The later release finds nobody waiting, and the miss is no handle to anything.
    assert_eq!(table.release("holder"), NOTHING);
    table.abort_does_nothing("miss");
    table.release_does_nothing("miss");
    assert_eq!(table.manager.name_count(), 0);
}

#[test]
fn f72_if_available_is_answered_at_once_and_causes_no_event() {
    let mut manager = manager();
    let client = manager.add_client();
    let hit = manager.request(client, x("a").wait(Wait::IfAvailable)).unwrap().1;
    let miss = manager.request(client, x("a").wait(Wait::IfAvailable)).unwrap().1;
    assert!(matches!(hit, Answer::Granted(_)));
    assert_eq!(miss, Answer::Unavailable);
    assert!(manager.poll_event().is_none());
}

#[test]
fn f73_a_queue_makes_it_unavailable_although_the_held_modes_agree() {
    let mut table = Table::new();
    table.holds("C1", "S1", s("a"));
    table.waits("C2", "X", x("a"));
    assert_eq!(table.request("C3", "S2", s("a").wait(Wait::IfAvailable)), ["unavailable S2"]);
    // With the queue gone the same question has the other answer.
    assert_eq!(table.abort("X"), NOTHING);
    table.holds("C3", "S3", s("a").wait(Wait::IfAvailable));
}

#[test]
fn f73_a_scope_is_unavailable_when_one_of_its_names_is() {
    let mut table = Table::new();
    table.holds("C1", "S1", s("a"));
    table.waits("C2", "X", x(["a", "b"]));
    // "b" is held by nobody, but spoken for.
    assert_eq!(
        table.request("C3", "S2", s(["b", "c"]).wait(Wait::IfAvailable)),
        ["unavailable S2"]
    );
    table.holds("C3", "S3", s("c").wait(Wait::IfAvailable));
}

#[test]
fn f74_a_miss_does_not_disturb_the_queue() {
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
