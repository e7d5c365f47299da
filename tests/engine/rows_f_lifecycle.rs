//! F120, F121, F123, F124, F126, F127: clients that die, and clients that sleep.

use navlocks_core::{Event, RequestError, SuspendPolicy, Wait};

use crate::support::{NOTHING, Table, manager, s, x};

use SuspendPolicy::EvictOnContention;

#[test]
fn f120_a_dead_clients_locks_and_requests_go_and_the_queues_go_on() {
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
    // One step: whoever is free to go now is granted in queue order.
    assert_eq!(table.terminate("C1"), ["granted next c", "granted next b", "granted next a"]);
    assert_eq!(table.held(), ["other c", "next c", "next b", "next a"]);
    assert_eq!(table.pending(), ["last a"]);
    assert_eq!(table.release("next a"), ["granted last a"]);
}

#[test]
fn f120_a_dead_clients_own_requests_are_not_granted_on_the_way() {
    // Its lock and the request behind it leave together: no grant to a dead client, no token spent
    // on it.
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
fn f121_only_the_dead_clients_locks_go() {
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
fn f123_a_dead_client_hears_nothing_of_what_was_pending() {
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
fn f123_a_dead_client_hears_nothing_of_what_had_already_happened() {
    let mut manager = manager();
    let (c1, c2) = (manager.add_client(), manager.add_client());
    // Granted and lost, both not polled when it ends.
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
fn f123_a_client_that_dies_in_its_sleep_hears_nothing() {
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
fn f124_death_between_request_and_grant_leaks_nothing() {
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
fn f124_death_between_grant_and_callback_leaks_nothing() {
    let mut manager = manager();
    let (c1, c2) = (manager.add_client(), manager.add_client());
    manager.request(c1, x("a")).unwrap();
    let next = manager.request(c2, x("a")).unwrap().0;
    // The grant is made but the client dies before it hears of it.
    assert!(manager.terminate(c1));
    assert!(
        matches!(manager.poll_event(), Some(Event::Granted { request, .. }) if request == next)
    );
    assert!(manager.poll_event().is_none());
    assert!(manager.release(next));
    assert_eq!((manager.held_count(), manager.pending_count(), manager.name_count()), (0, 0, 0));
}

/// A table where C1 sleeps with a lock on "a" and nobody minds.
fn asleep_with_a_lock() -> Table {
    let mut table = Table::new();
    table.holds("C1", "lock", x("a"));
    assert_eq!(table.suspend("C1", EvictOnContention), NOTHING);
    table
}

#[test]
fn f126_a_sleeper_keeps_its_lock_while_nobody_contends() {
    let mut table = asleep_with_a_lock();
    table.holds("C2", "other name", x("b"));
    assert!(table.is_held("lock"));
    assert_eq!(table.resume("C1"), NOTHING);
    assert!(table.is_held("lock"));
    // Awake it is a holder like any other.
    table.waits("C2", "next", x("a"));
    assert_eq!(table.release("lock"), ["granted next"]);
}

#[test]
fn f126_a_request_evicts_the_sleeper() {
    let mut table = asleep_with_a_lock();
    assert_eq!(table.request("C2", "next", x("a")), ["evicted C1", "granted next"]);
    assert_eq!(table.held(), ["next"]);
    // The sleeper learns of it when it wakes.
    assert_eq!(table.resume("C1"), ["lost lock: evicted"]);
    table.release_does_nothing("lock");
    table.waits("C1", "again", x("a"));
}

#[test]
fn f126_an_if_available_request_evicts_the_sleeper_and_gets_the_lock() {
    let mut table = asleep_with_a_lock();
    let events = table.request("C2", "next", s("a").wait(Wait::IfAvailable));
    assert_eq!(events, ["evicted C1", "granted next"]);
}

#[test]
fn f126_a_query_evicts_the_sleeper() {
    let mut table = asleep_with_a_lock();
    assert_eq!(table.query(), ["evicted C1"]);
    assert_eq!(table.held(), NOTHING);
    assert_eq!(table.resume("C1"), ["lost lock: evicted"]);
}

#[test]
fn f126_falling_asleep_before_a_waiting_client_evicts_at_once() {
    let mut table = Table::new();
    table.holds("C1", "lock", x("a"));
    table.waits("C2", "next", x("a"));
    assert_eq!(table.suspend("C1", EvictOnContention), ["evicted C1", "granted next"]);
    assert_eq!(table.resume("C1"), ["lost lock: evicted"]);
}

#[test]
fn f126_an_evicted_client_loses_everything_in_one_step() {
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
fn f126_a_sleepers_place_in_the_queue_holds_nobody_up() {
    let mut table = Table::new();
    table.holds("C2", "S1", s("a"));
    table.waits("C1", "X", x("a"));
    assert_eq!(table.suspend("C1", EvictOnContention), NOTHING);
    // The sleeper holds nothing, but the newcomer would have to wait behind it.
    assert_eq!(table.request("C3", "S2", s("a")), ["evicted C1", "granted S2"]);
    assert_eq!(table.resume("C1"), ["aborted X: evicted"]);
}

#[test]
fn f126_sharing_with_a_sleeper_is_no_contention() {
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
fn f126_stealing_from_a_sleeper_is_a_theft_and_no_eviction() {
    let mut table = asleep_with_a_lock();
    assert_eq!(table.request("C2", "thief", x("a").wait(Wait::Steal)), ["granted thief"]);
    assert_eq!(table.resume("C1"), ["lost lock: stolen by thief"]);
}

#[test]
fn f127_a_grant_to_a_sleeper_is_delivered_when_it_wakes() {
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
fn f127_a_grant_and_its_loss_are_delivered_in_that_order() {
    let mut table = Table::new();
    table.holds("C1", "holder", x("a"));
    table.waits("C2", "sleeper", x("a"));
    table.suspend("C2", EvictOnContention);
    assert_eq!(table.release("holder"), NOTHING);
    assert_eq!(table.request("C3", "next", x("a")), ["evicted C2", "granted next"]);
    assert_eq!(table.resume("C2"), ["granted sleeper", "lost sleeper: evicted"]);
}

#[test]
fn f127_what_was_unheard_when_it_fell_asleep_waits_too() {
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
