//! F90–F97, F99: steal as the standard has it: holders lose, the queue stays.

use navlocks_core::{Event, LockManager, Request, RequestId, Wait};

use crate::support::{NOTHING, Table, manager, s, x};

fn steal(names: &'static str) -> Request {
    x(names).wait(Wait::Steal)
}

#[test]
fn f90_a_steal_of_a_free_name_is_granted() {
    let mut table = Table::new();
    table.holds("C1", "thief", steal("a"));
    assert_eq!(table.held(), ["thief"]);
    // It is a lock like any other.
    table.waits("C2", "next", x("a"));
    assert_eq!(table.release("thief"), ["granted next"]);
}

#[test]
fn f91_the_victim_is_told_that_its_lock_was_stolen_and_by_whom() {
    let mut table = Table::new();
    table.holds("C1", "victim", x("a"));
    // The victim hears first. The surface rejects its promise with AbortError.
    assert_eq!(
        table.request("C2", "thief", steal("a")),
        ["lost victim: stolen by thief", "granted thief"]
    );
    assert_eq!(table.held(), ["thief"]);
    assert!(table.is_gone("victim"));
}

#[test]
fn f92_every_shared_holder_is_a_victim() {
    let mut table = Table::new();
    table.holds("C1", "S1", s("a"));
    table.holds("C1", "S2", s("a"));
    table.holds("C2", "S3", s("a"));
    table.waits("C3", "X", x("a"));
    assert_eq!(
        table.request("C2", "thief", steal("a")),
        [
            "lost S1: stolen by thief",
            "lost S2: stolen by thief",
            "lost S3: stolen by thief",
            "granted thief"
        ]
    );
    assert_eq!(table.held(), ["thief"]);
    assert_eq!(table.pending(), ["X"]);
}

#[test]
fn f93_the_queue_keeps_its_order_and_goes_on_after_the_thief() {
    let mut table = Table::new();
    table.holds("C1", "victim", x("a"));
    table.waits("C2", "P1", x("a"));
    table.waits("C3", "P2", s("a"));
    table.waits("C4", "P3", s("a"));
    table.waits("C1", "P4", x("a"));
    let events = table.request("C5", "thief", steal("a"));
    assert_eq!(events, ["lost victim: stolen by thief", "granted thief"]);
    assert_eq!(table.pending(), ["P1", "P2", "P3", "P4"]);
    assert_eq!(table.release("thief"), ["granted P1"]);
    assert_eq!(table.release("P1"), ["granted P2", "granted P3"]);
    assert_eq!(table.release("P3"), NOTHING);
    assert_eq!(table.release("P2"), ["granted P4"]);
}

#[test]
fn f94_the_last_steal_wins() {
    let mut table = Table::new();
    table.holds("C1", "victim", x("a"));
    assert_eq!(
        table.request("C2", "first", steal("a")),
        ["lost victim: stolen by first", "granted first"]
    );
    assert_eq!(
        table.request("C3", "second", steal("a")),
        ["lost first: stolen by second", "granted second"]
    );
    assert_eq!(
        table.request("C2", "third", steal("a")),
        ["lost second: stolen by third", "granted third"]
    );
    assert_eq!(table.held(), ["third"]);
}

#[test]
fn f95_a_victims_late_release_is_a_no_op() {
    // The victim's code runs on and settles some time; the surface then releases a lock that is no
    // longer there.
    let mut table = Table::new();
    table.holds("C1", "victim", x("a"));
    table.waits("C3", "next", x("a"));
    table.request("C2", "thief", steal("a"));
    table.release_does_nothing("victim");
    assert_eq!(table.release("thief"), ["granted next"]);
    table.release_does_nothing("victim");
    table.release_does_nothing("thief");
    assert!(table.is_held("next"));
}

#[test]
fn f95_an_old_handle_never_reaches_a_newer_lock() {
    // The engine may keep a newer request where an older one was; the old id still names the old
    // one.
    let mut table = Table::new();
    table.holds("C1", "victim", x("a"));
    table.request("C2", "thief", steal("a"));
    for at in 0..100 {
        let label = format!("newer {at}");
        table.holds("C1", &label, x(label.as_str()));
        table.release_does_nothing("victim");
        table.abort_does_nothing("victim");
        assert!(table.is_gone("victim"));
        assert_eq!(table.release(&label), NOTHING);
        table.release_does_nothing(&label);
    }
}

#[test]
fn f96_other_names_are_untouched() {
    let mut table = Table::new();
    table.holds("C1", "a held", x("a"));
    table.holds("C1", "b held", x("b"));
    table.waits("C2", "a pending", x("a"));
    table.waits("C2", "b pending", s("b"));
    table.holds("C2", "c held", s("c"));
    assert_eq!(
        table.request("C3", "thief", steal("a")),
        ["lost a held: stolen by thief", "granted thief"]
    );
    assert_eq!(table.held(), ["b held", "c held", "thief"]);
    assert_eq!(table.pending(), ["a pending", "b pending"]);
    assert_eq!(table.release("b held"), ["granted b pending"]);
}

#[test]
fn f97_the_thief_goes_before_all_that_wait() {
    let mut table = Table::new();
    table.holds("C1", "victim", s("a"));
    table.waits("C2", "P1", x("a"));
    table.waits("C3", "P2", s("a"));
    table.request("C4", "thief", steal("a"));
    assert_eq!(table.query(), NOTHING);
    assert_eq!(table.held(), ["thief"]);
    assert_eq!(table.pending(), ["P1", "P2"]);
    // Nor does the thief become someone to overtake: a newcomer is last as ever.
    table.waits("C5", "P3", x("a"));
    assert_eq!(table.pending(), ["P1", "P2", "P3"]);
}

#[test]
fn f97_a_second_thief_goes_before_them_too() {
    let mut table = Table::new();
    table.holds("C1", "victim", x("a"));
    table.waits("C2", "P1", x("a"));
    table.request("C3", "thief", steal("a"));
    table.waits("C4", "P2", x("a"));
    table.request("C5", "second thief", steal("a"));
    assert_eq!(table.held(), ["second thief"]);
    assert_eq!(table.pending(), ["P1", "P2"]);
}

#[test]
fn f99_a_client_may_steal_from_itself() {
    let mut table = Table::new();
    table.holds("C1", "mine", x("a"));
    table.waits("C1", "mine too", x("a"));
    assert_eq!(
        table.request("C1", "taken", steal("a")),
        ["lost mine: stolen by taken", "granted taken"]
    );
    assert_eq!(table.held(), ["taken"]);
    table.release_does_nothing("mine");
    assert_eq!(table.release("taken"), ["granted mine too"]);
}

#[test]
fn f91_a_grant_that_was_not_yet_heard_is_delivered_before_its_loss() {
    // Decision 1 needs both in this order: the surface decides what the callback sees.
    let mut manager = manager();
    let first = ask(&mut manager, x("a"));
    let victim = ask(&mut manager, x("a"));
    assert!(manager.release(first));
    ask(&mut manager, steal("a"));
    let heard: Vec<(&str, RequestId)> = std::iter::from_fn(|| manager.poll_event())
        .map(|event| match event {
            Event::Granted { request, .. } => ("granted", request),
            Event::Lost { request, .. } => ("lost", request),
            other => panic!("unexpected {other:?}"),
        })
        .collect();
    assert_eq!(heard, [("granted", victim), ("lost", victim)]);
}

fn ask(manager: &mut LockManager, request: Request) -> RequestId {
    let client = manager.add_client();
    manager.request(client, request).expect("the client is new").0
}
