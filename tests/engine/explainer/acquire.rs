//! The older API `acquire` and `forceRelease`, with a steal that empties the queue.

use navlocks_core::{Event, Name, Request, Scope, Wait};

use crate::support::{NOTHING, Table, manager, s, units, x};

fn steal_all(scope: impl Into<Scope>) -> Request {
    x(scope).wait(Wait::StealAll)
}

#[test]
fn p03_s16_next_request_is_granted_within_the_release() {
    // `release` returns after the queue is processed; a surface resolves the old promise after
    // that.
    let mut manager = manager();
    let client = manager.add_client();
    let old = manager.request(client, x("a")).unwrap().0;
    let next = manager.request(client, x("a")).unwrap().0;
    while manager.poll_event().is_some() {}
    assert!(manager.release(old));
    assert_eq!(manager.snapshot().held[0].request, next);
    assert!(
        matches!(manager.poll_event(), Some(Event::Granted { request, .. }) if request == next)
    );
    assert!(manager.poll_event().is_none());
}

#[test]
fn p04_exclusive_needs_no_holder_and_no_earlier_request_of_its_name() {
    let mut table = Table::new();
    table.holds("C1", "free", x("a"));
    table.waits("C1", "behind a holder", x("a"));
    table.waits("C1", "behind a request", s("a"));
    table.waits("C1", "behind both", x("a"));
    assert_eq!(table.release("free"), ["granted behind a holder"]);
    assert_eq!(table.release("behind a holder"), ["granted behind a request"]);
    assert_eq!(table.pending(), ["behind both"]);
    assert_eq!(table.release("behind a request"), ["granted behind both"]);
}

#[test]
fn p05_shared_needs_no_exclusive_holder_and_no_earlier_exclusive_request() {
    let mut table = Table::new();
    table.holds("C1", "X", x("a"));
    table.waits("C1", "S1", s("a"));
    table.waits("C1", "S2", s("a"));
    // An earlier shared request does not block it: only the holder does.
    assert_eq!(table.blockers("S2"), (vec!["X".to_owned()], vec![]));
    assert_eq!(table.release("X"), ["granted S1", "granted S2"]);
    table.holds("C1", "S3", s("a"));
    table.waits("C1", "X2", x("a"));
    table.waits("C1", "S4", s("a"));
    assert_eq!(table.blockers("S4"), (vec![], vec!["X2".to_owned()]));
}

#[test]
fn p06_unrelated_names_are_granted_in_order_of_arrival() {
    let mut table = Table::new();
    table.holds("C1", "gate", x(["b", "c"]));
    table.holds("C1", "a1", x("a"));
    table.waits("C2", "a2", x("a"));
    table.waits("C2", "c", x("c"));
    table.waits("C2", "b", x("b"));
    // One release frees both names; the blocked request on "a" before them is skipped.
    assert_eq!(table.release("gate"), ["granted c", "granted b"]);
    assert_eq!(table.pending(), ["a2"]);
}

#[test]
fn p07_s15_d25_query_lists_held_locks_in_grant_order() {
    // The surface of that API shows name and mode only, and no client.
    let mut table = Table::new();
    table.holds("C1", "z", x("z"));
    table.waits("C2", "z later", x("z"));
    table.holds("C1", "m", s("m"));
    table.holds("C1", "a", x("a"));
    assert_eq!(table.query(), NOTHING);
    assert_eq!(table.held(), ["z", "m", "a"]);
    // Requested second, granted last.
    table.release("z");
    assert_eq!(table.held(), ["m", "a", "z later"]);
}

#[test]
fn p10_steal_takes_the_lock_of_all_holders() {
    let mut table = Table::new();
    table.holds("C1", "S1", s("a"));
    table.holds("C2", "S2", s("a"));
    table.holds("C2", "bystander", x("b"));
    assert_eq!(
        table.request("C3", "thief", steal_all("a")),
        ["lost S1: stolen by thief", "lost S2: stolen by thief", "granted thief"]
    );
    assert_eq!(table.held(), ["bystander", "thief"]);
}

#[test]
fn p11_d06_steal_empties_the_queue_of_the_name() {
    let mut table = Table::new();
    table.holds("C1", "victim", x("a"));
    table.holds("C1", "bystander", x("b"));
    table.waits("C2", "P1", x("a"));
    table.waits("C2", "unrelated", s("b"));
    table.waits("C3", "P2", s("a"));
    assert_eq!(
        table.request("C4", "thief", steal_all("a")),
        [
            "lost victim: stolen by thief",
            "aborted P1: stolen by thief",
            "aborted P2: stolen by thief",
            "granted thief"
        ]
    );
    assert_eq!(table.held(), ["bystander", "thief"]);
    assert_eq!(table.pending(), ["unrelated"]);
    assert_eq!(table.release("thief"), NOTHING);
    table.abort_does_nothing("P1");
}

#[test]
fn p11_d06_steal_aborts_a_pending_scope_on_all_its_names() {
    let mut table = Table::new();
    table.holds("C1", "victim", x("a"));
    table.waits("C2", "P1", x(["a", "b"]));
    table.waits("C3", "P2", x("b"));
    assert_eq!(
        table.request("C4", "thief", steal_all("a")),
        [
            "lost victim: stolen by thief",
            "aborted P1: stolen by thief",
            "granted thief",
            "granted P2"
        ]
    );
}

#[test]
fn p12_thief_holds_at_once() {
    let mut table = Table::new();
    table.holds("C1", "on a free name", steal_all("a"));
    table.waits("C2", "P", s(["a", "b"]));
    let events = table.request("C3", "again", steal_all(["a", "b"]));
    assert_eq!(events.last().map(String::as_str), Some("granted again"));
    assert_eq!(table.held(), ["again"]);
    assert_eq!(table.pending(), NOTHING);
}

#[test]
fn p13_steal_may_be_shared() {
    let mut table = Table::new();
    table.holds("C1", "S1", s("a"));
    table.holds("C2", "S2", s("a"));
    table.waits("C1", "P", x("a"));
    // All holders lose their locks, also those whose mode would be compatible.
    assert_eq!(
        table.request("C3", "thief", s("a").wait(Wait::StealAll)),
        [
            "lost S1: stolen by thief",
            "lost S2: stolen by thief",
            "aborted P: stolen by thief",
            "granted thief"
        ]
    );
    table.holds("C1", "beside the thief", s("a"));
}

#[test]
fn p13_steal_never_misses_so_if_available_adds_nothing() {
    // The surface ignores ifAvailable, because a steal never misses, and an abort, which comes too
    // late.
    let mut table = Table::new();
    for (at, wait) in [Wait::Steal, Wait::StealAll].into_iter().enumerate() {
        for (mode, request) in [("X", x("a")), ("S", s("a"))] {
            table.request("C1", &format!("{mode} in the way {at}"), x("a"));
            let label = format!("{mode} thief {at}");
            table.request("C2", &label, request.wait(wait));
            assert!(table.is_held(&label));
            table.abort_does_nothing(&label);
        }
    }
}

#[test]
fn p14_unavailable_request_is_answered_once_and_not_queued() {
    let mut table = Table::new();
    table.holds("C1", "holder", x("a"));
    assert_eq!(table.request("C2", "miss", x("a").wait(Wait::IfAvailable)), ["unavailable miss"]);
    assert_eq!(table.pending(), NOTHING);
    assert_eq!(table.release("holder"), NOTHING);
    assert_eq!(table.held(), NOTHING);
}

#[test]
fn p16_d07_decision_4_force_release_takes_all_locks_in_one_step_and_grants_the_next() {
    let mut table = Table::new();
    table.holds("C1", "S1", s("a"));
    table.holds("C2", "S2", s("a"));
    table.holds("C2", "bystander", x("b"));
    table.waits("C3", "X", x("a"));
    table.waits("C3", "S3", s("a"));
    let (count, events) = table.force_release("a");
    assert_eq!(count, 2);
    assert_eq!(events, ["lost S1: force-released", "lost S2: force-released", "granted X"]);
    assert_eq!(table.held(), ["bystander", "X"]);
    assert_eq!(table.pending(), ["S3"]);
    table.release_does_nothing("S1");
}

#[test]
fn p16_d07_decision_4_force_release_of_free_name_does_nothing() {
    let mut table = Table::new();
    table.holds("C1", "lock", x("a"));
    assert_eq!(table.force_release("b"), (0, vec![]));
    assert_eq!(table.held(), ["lock"]);
}

#[test]
fn p18_d17_engine_reserves_no_names() {
    let mut table = Table::new();
    for name in ["-", "-a", "--"] {
        table.holds("C1", name, x(name));
    }
    table.holds("C1", "wide", x(units(&[0x2D, 0xD800])));
    assert_eq!(table.force_release("-a").0, 1);
    assert!(Name::from("-a").starts_with_hyphen());
}
