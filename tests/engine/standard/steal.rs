//! Steal as in the standard: holders lose their locks, and the queue stays.

use navlocks_core::{Event, LockManager, Request, RequestId, Wait};

use crate::support::{NOTHING, Table, manager, s, x};

fn steal(names: &'static str) -> Request {
    x(names).wait(Wait::Steal)
}

#[test]
fn f90_steal_of_free_name_is_granted() {
    let mut table = Table::new();
    table.holds("C1", "thief", steal("a"));
    assert_eq!(table.held(), ["thief"]);
    // The thief's lock is a lock like any other.
    table.waits("C2", "next", x("a"));
    assert_eq!(table.release("thief"), ["granted next"]);
}

#[test]
fn f91_s11_decision_12_victim_receives_the_theft_and_the_thief() {
    let mut table = Table::new();
    table.holds("C1", "victim", x("a"));
    // The victim's event comes first. A surface rejects its promise with AbortError.
    assert_eq!(
        table.request("C2", "thief", steal("a")),
        ["lost victim: stolen by thief", "granted thief"]
    );
    assert_eq!(table.held(), ["thief"]);
    assert!(table.is_gone("victim"));
}

#[test]
fn f92_s3_every_shared_holder_is_a_victim() {
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
fn f93_d06_queue_keeps_its_order_after_the_thief() {
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
fn f94_last_steal_wins() {
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
fn f95_decision_3_late_release_of_victim_is_a_no_op() {
    // The victim's code continues and settles later; the surface then releases a lock that is gone.
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
fn f95_decision_3_old_id_never_names_a_newer_lock() {
    // The engine may reuse the slot of an old request; the old id still names the old one.
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
fn f97_thief_goes_before_all_waiters() {
    let mut table = Table::new();
    table.holds("C1", "victim", s("a"));
    table.waits("C2", "P1", x("a"));
    table.waits("C3", "P2", s("a"));
    table.request("C4", "thief", steal("a"));
    assert_eq!(table.query(), NOTHING);
    assert_eq!(table.held(), ["thief"]);
    assert_eq!(table.pending(), ["P1", "P2"]);
    // A new request does not pass the thief either: it is last.
    table.waits("C5", "P3", x("a"));
    assert_eq!(table.pending(), ["P1", "P2", "P3"]);
}

#[test]
fn f97_second_thief_goes_before_all_waiters() {
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
fn f99_client_may_steal_from_itself() {
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
fn f91_s9_g14_decision_1_grant_not_yet_polled_is_delivered_before_its_loss() {
    // The surface needs both in this order: it decides how the callback sees the loss.
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

#[test]
fn g7_steal_takes_from_several_shared_holders() {
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
    // The three requests are gone for good.
    assert_eq!(table.release("thief"), NOTHING);
    assert_eq!(table.held(), NOTHING);
}

#[test]
fn g8_steal_leaves_other_names_and_their_queues() {
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
fn g9_late_release_of_victim_does_not_release_the_thief() {
    let mut table = Table::new();
    table.holds("A", "victim", x("a"));
    table.request("B", "thief", x("a").wait(Wait::Steal));
    table.release_does_nothing("victim");
    assert_eq!(table.request("A", "try", x("a").wait(Wait::IfAvailable)), ["unavailable try"]);
    assert!(table.is_held("thief"));
}

#[test]
fn g9_termination_of_victim_does_not_release_the_thief() {
    let mut table = Table::new();
    table.holds("A", "victim", x("a"));
    table.request("B", "thief", x("a").wait(Wait::Steal));
    assert_eq!(table.terminate("A"), NOTHING);
    assert!(table.is_held("thief"));
}

#[test]
fn s3_shrinking_held_set_skips_no_holder() {
    let mut table = Table::new();
    let readers: Vec<String> = (0..7).map(|at| format!("S{at}")).collect();
    for reader in &readers {
        table.holds("C1", reader, s("a"));
    }
    let mut expected: Vec<String> =
        readers.iter().map(|reader| format!("lost {reader}: stolen by thief")).collect();
    expected.push("granted thief".to_owned());
    assert_eq!(table.request("C2", "thief", x("a").wait(Wait::Steal)), expected);
    assert_eq!(table.held(), ["thief"]);
}
