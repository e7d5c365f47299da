//! Clients that are terminated, suspended and resumed.

use navlocks_core::{Event, RequestError, SuspendPolicy, Wait};

use crate::support::{NOTHING, Table, manager, s, x};

use SuspendPolicy::EvictOnContention;

#[test]
fn f120_s5_p17_q21_terminated_client_loses_locks_and_requests_and_queues_are_processed() {
    let mut table = Table::new();
    table.holds("C1", "held a", x("a"));
    table.holds("C1", "held b", s("b"));
    table.holds("C2", "other c", s("c"));
    table.waits("C1", "pending c", x("c"));
    table.waits("C3", "next c", s("c"));
    table.waits("C3", "next b", x("b"));
    table.waits("C2", "next a", x("a"));
    table.waits("C1", "pending a", x("a"));
    table.waits("C2", "last a", x("a"));
    // One step: all requests that became grantable are granted in queue order.
    assert_eq!(table.terminate("C1"), ["granted next c", "granted next b", "granted next a"]);
    assert_eq!(table.held(), ["other c", "next c", "next b", "next a"]);
    assert_eq!(table.pending(), ["last a"]);
    assert_eq!(table.release("next a"), ["granted last a"]);
}

#[test]
fn f120_s5_p17_q21_terminated_client_is_granted_none_of_its_own_requests() {
    // Its lock and the request behind it leave together: a terminated client gets no grant and no
    // token.
    let mut table = Table::new();
    table.holds("C1", "held", x("a"));
    table.waits("C1", "own next", x("a"));
    table.waits("C2", "next", x("a"));
    let before = table.snapshot().held[0].token.map(|token| token.get());
    assert_eq!(table.terminate("C1"), ["granted next"]);
    let after = table.snapshot().held[0].token.map(|token| token.get());
    assert_eq!(after, before.map(|token| token + 1));
}

#[test]
fn f121_s4_d20_termination_leaves_locks_of_other_clients() {
    let mut table = Table::new();
    // Three frames of one page, as in the public test.
    table.holds("frame 1", "held by 1", x("a"));
    table.holds("frame 2", "held by 2", x("b"));
    table.waits("frame 2", "2 wants a", x("a"));
    table.waits("frame 3", "3 wants b", x("b"));
    table.waits("frame 3", "3 wants a", x("a"));
    assert_eq!(table.terminate("frame 2"), ["granted 3 wants b"]);
    assert_eq!(table.held(), ["held by 1", "3 wants b"]);
    assert_eq!(table.pending(), ["3 wants a"]);
    assert_eq!(table.manager.client_count(), 2);
}

#[test]
fn f123_s6_terminated_client_receives_nothing_of_its_pending_requests() {
    let mut table = Table::new();
    table.holds("C1", "holder", x("a"));
    table.waits("C2", "pending", x("a"));
    assert_eq!(table.terminate("C2"), NOTHING);
    assert_eq!(table.release("holder"), NOTHING);
    for gone in ["pending", "holder"] {
        table.abort_does_nothing(gone);
        table.release_does_nothing(gone);
    }
    assert_eq!(table.refusal("C2", x("a")), RequestError::UnknownClient);
}

#[test]
fn f123_s6_terminated_client_receives_no_earlier_events() {
    let mut manager = manager();
    let (c1, c2) = (manager.add_client(), manager.add_client());
    // A grant and a loss are both not polled when the client ends.
    let (first, _) = manager.request(c2, x("a")).unwrap();
    manager.request(c1, x("a")).unwrap();
    assert!(manager.release(first));
    manager.request(c2, x("a").wait(Wait::Steal)).unwrap();
    assert!(manager.has_events());
    assert!(manager.terminate(c1));
    assert!(manager.poll_event().is_none());
    manager.check_invariants();
}

#[test]
fn f123_s6_client_terminated_while_suspended_receives_nothing() {
    let mut table = Table::new();
    table.holds("C1", "lock", x("a"));
    table.suspend("C1", EvictOnContention);
    assert_eq!(table.request("C2", "next", x("a")), ["evicted C1", "granted next"]);
    assert_eq!(table.terminate("C1"), NOTHING);
    let c1 = table.client("C1");
    assert!(!table.manager.resume(c1));
    assert_eq!(table.settle(), NOTHING);
}

#[test]
fn f124_termination_between_request_and_grant_leaks_nothing() {
    let mut table = Table::new();
    table.holds("C1", "S1", s("a"));
    table.waits("C2", "X", x(["a", "b"]));
    table.waits("C3", "S2", s("a"));
    assert_eq!(table.terminate("C2"), ["granted S2"]);
    assert_eq!(table.release("S1"), NOTHING);
    assert_eq!(table.release("S2"), NOTHING);
    table.holds("C3", "b is free", x("b"));
    table.release("b is free");
    assert_eq!(table.manager.name_count(), 0);
}

#[test]
fn f124_g16_termination_between_grant_and_callback_leaks_nothing() {
    let mut manager = manager();
    let (c1, c2) = (manager.add_client(), manager.add_client());
    manager.request(c1, x("a")).unwrap();
    let next = manager.request(c2, x("a")).unwrap().0;
    // The grant is made, but the client ends before it receives it.
    assert!(manager.terminate(c1));
    assert!(
        matches!(manager.poll_event(), Some(Event::Granted { request, .. }) if request == next)
    );
    assert!(manager.poll_event().is_none());
    assert!(manager.release(next));
    assert_eq!((manager.held_count(), manager.pending_count(), manager.name_count()), (0, 0, 0));
}

/// Makes a table in which C1 is suspended with a lock on "a", without contention.
fn asleep_with_a_lock() -> Table {
    let mut table = Table::new();
    table.holds("C1", "lock", x("a"));
    assert_eq!(table.suspend("C1", EvictOnContention), NOTHING);
    table
}

#[test]
fn f126_suspended_client_keeps_its_lock_without_contention() {
    let mut table = asleep_with_a_lock();
    table.holds("C2", "other name", x("b"));
    assert!(table.is_held("lock"));
    assert_eq!(table.resume("C1"), NOTHING);
    assert!(table.is_held("lock"));
    // Resumed, it is a holder like any other.
    table.waits("C2", "next", x("a"));
    assert_eq!(table.release("lock"), ["granted next"]);
}

#[test]
fn f126_d23_decision_7_request_evicts_suspended_client() {
    let mut table = asleep_with_a_lock();
    assert_eq!(table.request("C2", "next", x("a")), ["evicted C1", "granted next"]);
    assert_eq!(table.held(), ["next"]);
    // The suspended client receives the loss when it is resumed.
    assert_eq!(table.resume("C1"), ["lost lock: evicted"]);
    table.release_does_nothing("lock");
    table.waits("C1", "again", x("a"));
}

#[test]
fn f126_if_available_request_evicts_suspended_client_and_is_granted() {
    let mut table = asleep_with_a_lock();
    let events = table.request("C2", "next", s("a").wait(Wait::IfAvailable));
    assert_eq!(events, ["evicted C1", "granted next"]);
}

#[test]
fn f126_decision_7_query_evicts_suspended_client() {
    let mut table = asleep_with_a_lock();
    assert_eq!(table.query(), ["evicted C1"]);
    assert_eq!(table.held(), NOTHING);
    assert_eq!(table.resume("C1"), ["lost lock: evicted"]);
}

#[test]
fn f126_suspending_a_contended_client_evicts_at_once() {
    let mut table = Table::new();
    table.holds("C1", "lock", x("a"));
    table.waits("C2", "next", x("a"));
    assert_eq!(table.suspend("C1", EvictOnContention), ["evicted C1", "granted next"]);
    assert_eq!(table.resume("C1"), ["lost lock: evicted"]);
}

#[test]
fn f126_evicted_client_loses_everything_in_one_step() {
    let mut table = Table::new();
    table.holds("C1", "held a", x("a"));
    table.holds("C1", "held b", s("b"));
    table.holds("C2", "held c", x("c"));
    table.waits("C1", "pending c", x("c"));
    assert_eq!(table.suspend("C1", EvictOnContention), NOTHING);
    // Contention on one name is enough.
    assert_eq!(table.request("C3", "next a", x("a")), ["evicted C1", "granted next a"]);
    assert_eq!(table.held(), ["held c", "next a"]);
    assert_eq!(table.pending(), NOTHING);
    let told = ["lost held a: evicted", "lost held b: evicted", "aborted pending c: evicted"];
    assert_eq!(table.resume("C1"), told);
}

#[test]
fn f126_suspended_waiter_blocks_no_other_client() {
    let mut table = Table::new();
    table.holds("C2", "S1", s("a"));
    table.waits("C1", "X", x("a"));
    assert_eq!(table.suspend("C1", EvictOnContention), NOTHING);
    // The suspended client holds nothing, but the new request would wait behind it.
    assert_eq!(table.request("C3", "S2", s("a")), ["evicted C1", "granted S2"]);
    assert_eq!(table.resume("C1"), ["aborted X: evicted"]);
}

#[test]
fn f126_sharing_with_suspended_client_is_no_contention() {
    let mut table = Table::new();
    table.holds("C1", "S1", s("a"));
    assert_eq!(table.suspend("C1", EvictOnContention), NOTHING);
    table.holds("C2", "S2", s("a"));
    assert_eq!(table.held(), ["S1", "S2"]);
    assert_eq!(
        table.request("C3", "X", x("a").wait(Wait::IfAvailable)),
        ["evicted C1", "unavailable X"]
    );
    assert_eq!(table.held(), ["S2"]);
}

#[test]
fn f126_steal_from_suspended_client_is_a_theft_and_no_eviction() {
    let mut table = asleep_with_a_lock();
    assert_eq!(table.request("C2", "thief", x("a").wait(Wait::Steal)), ["granted thief"]);
    assert_eq!(table.resume("C1"), ["lost lock: stolen by thief"]);
}

#[test]
fn f127_s2_grant_to_suspended_client_is_delivered_at_resume() {
    let mut table = Table::new();
    table.holds("C1", "holder", x("a"));
    table.waits("C2", "sleeper", x("a"));
    assert_eq!(table.suspend("C2", EvictOnContention), NOTHING);
    assert_eq!(table.release("holder"), NOTHING);
    assert!(table.is_held("sleeper"));
    assert_eq!(table.held(), ["sleeper"]);
    assert_eq!(table.resume("C2"), ["granted sleeper"]);
    assert_eq!(table.release("sleeper"), NOTHING);
}

#[test]
fn f127_s2_grant_and_its_loss_are_delivered_in_that_order() {
    let mut table = Table::new();
    table.holds("C1", "holder", x("a"));
    table.waits("C2", "sleeper", x("a"));
    table.suspend("C2", EvictOnContention);
    assert_eq!(table.release("holder"), NOTHING);
    assert_eq!(table.request("C3", "next", x("a")), ["evicted C2", "granted next"]);
    assert_eq!(table.resume("C2"), ["granted sleeper", "lost sleeper: evicted"]);
}

#[test]
fn f127_s2_events_not_polled_at_suspension_are_delivered_at_resume() {
    let mut manager = manager();
    let client = manager.add_client();
    let (first, _) = manager.request(client, x("a")).unwrap();
    let (request, _) = manager.request(client, x("a")).unwrap();
    assert!(manager.release(first));
    assert!(manager.suspend(client, EvictOnContention));
    assert!(manager.poll_event().is_none());
    assert!(manager.resume(client));
    assert!(
        matches!(manager.poll_event(), Some(Event::Granted { request: granted, .. }) if granted == request)
    );
    assert!(manager.poll_event().is_none());
}

#[test]
fn s4_termination_is_by_client() {
    // Two frames of one page share an agent; one of them ends.
    let mut table = Table::new();
    table.holds("page/frame 1", "held by 1", s("a"));
    table.holds("page/frame 2", "held by 2", s("a"));
    table.waits("page/frame 1", "1 waits", x("a"));
    table.waits("page/frame 2", "2 waits", x("a"));
    assert_eq!(table.terminate("page/frame 1"), NOTHING);
    assert_eq!(table.held(), ["held by 2"]);
    assert_eq!(table.pending(), ["2 waits"]);
}
