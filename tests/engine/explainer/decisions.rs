//! The decisions about points that the sources leave open, as far as an engine shows them.

use navlocks_core::{Request, RequestError, SuspendPolicy, Wait};

use crate::support::{NOTHING, Table, s, x};

use SuspendPolicy::{EvictOnContention, ReleaseAtOnce};

#[test]
fn decision_3_x21_second_release_returns_false() {
    let mut table = Table::new();
    table.holds("C1", "lock", x("a"));
    table.waits("C2", "next", x("a"));
    // A pending request cannot be released either.
    table.release_does_nothing("next");
    assert_eq!(table.release("lock"), ["granted next"]);
    table.release_does_nothing("lock");
    assert!(table.is_held("next"));
}

#[test]
fn decision_4_force_release_takes_every_lock_whose_scope_has_name() {
    let mut table = Table::new();
    table.holds("C1", "S ab", s(["a", "b"]));
    table.holds("C2", "S a", s("a"));
    table.holds("C3", "S bc", s(["b", "c"]));
    table.waits("C4", "X a", x("a"));
    table.waits("C4", "X b", x("b"));
    table.waits("C4", "S c", s(["a", "c"]));
    let (count, events) = table.force_release("a");
    // Pending requests stay, whatever their scope; "b" is still held by another client.
    assert_eq!(count, 2);
    assert_eq!(events, ["lost S ab: force-released", "lost S a: force-released", "granted X a"]);
    assert_eq!(table.pending(), ["X b", "S c"]);
    assert_eq!(table.force_release("b").1, ["lost S bc: force-released", "granted X b"]);
}

#[test]
fn decision_5_steal_with_scope_takes_every_lock_that_intersects() {
    let mut table = Table::new();
    table.holds("C1", "S ab", s(["a", "b"]));
    table.holds("C2", "X c", x("c"));
    table.holds("C3", "X d", x("d"));
    table.waits("C4", "X b", x("b"));
    table.waits("C5", "X ac", x(["a", "c"]));
    let events = table.request("C6", "thief", x(["a", "c"]).wait(Wait::Steal));
    // The victims in grant order, then the thief, then the request that a victim's other name
    // blocked.
    assert_eq!(
        events,
        ["lost S ab: stolen by thief", "lost X c: stolen by thief", "granted thief", "granted X b"]
    );
    assert_eq!(table.held(), ["X d", "thief", "X b"]);
    assert_eq!(table.pending(), ["X ac"]);
}

#[test]
fn decision_5_thief_goes_before_all_waiters_on_every_name() {
    let mut table = Table::new();
    table.holds("C1", "X a", x("a"));
    table.waits("C2", "X ab", x(["a", "b"]));
    // "b" has no holder, only a waiter: the thief goes first there too.
    table.holds("C3", "thief", x("b").wait(Wait::Steal));
    assert_eq!(table.pending(), ["X ab"]);
    assert_eq!(table.release("X a"), NOTHING);
    assert_eq!(table.release("thief"), ["granted X ab"]);
}

#[test]
fn decision_5_shared_steal_takes_from_shared_holders_too() {
    let mut table = Table::new();
    table.holds("C1", "S1", s("a"));
    let events = table.request("C2", "thief", s("a").wait(Wait::Steal));
    assert_eq!(events, ["lost S1: stolen by thief", "granted thief"]);
}

#[test]
fn decision_7_evict_on_contention_keeps_locks_until_contention() {
    let mut table = Table::new();
    table.holds("C1", "lock", x("a"));
    assert_eq!(table.suspend("C1", EvictOnContention), NOTHING);
    assert_eq!(table.held(), ["lock"]);
    assert_eq!(table.request("C2", "next", s("a")), ["evicted C1", "granted next"]);
    // The evicted client is still suspended and known, and receives nothing.
    assert_eq!(table.refusal("C1", x("b")), RequestError::ClientSuspended);
    assert_eq!(table.resume("C1"), ["lost lock: evicted"]);
    table.holds("C1", "awake", x("b"));
}

#[test]
fn decision_7_several_suspended_blockers_are_evicted_together() {
    let mut table = Table::new();
    for client in ["C1", "C2", "C3"] {
        table.client(client);
    }
    table.holds("C2", "S2", s("a"));
    table.holds("C1", "S1", s("a"));
    table.holds("C3", "S3", s("b"));
    for client in ["C3", "C2", "C1"] {
        assert_eq!(table.suspend(client, EvictOnContention), NOTHING);
    }
    assert_eq!(table.request("C4", "X", x("a")), ["evicted C1", "evicted C2", "granted X"]);
    assert_eq!(table.held(), ["S3", "X"]);
    assert_eq!(table.query(), ["evicted C3"]);
    // No lock is left to evict.
    assert_eq!(table.query(), NOTHING);
}

#[test]
fn decision_7_x30_d23_release_at_once_releases_locks_at_suspension() {
    let mut table = Table::new();
    table.holds("C1", "a", x("a"));
    table.holds("C1", "b", s("b"));
    table.waits("C2", "a next", x("a"));
    assert_eq!(table.suspend("C1", ReleaseAtOnce), ["granted a next"]);
    assert_eq!(table.held(), ["a next"]);
    table.holds("C2", "b next", x("b"));
    assert_eq!(table.resume("C1"), ["lost a: suspended", "lost b: suspended"]);
}

#[test]
fn decision_7_release_at_once_keeps_requests_queued_and_skips_them() {
    let mut table = Table::new();
    table.holds("C1", "holder", x("a"));
    table.waits("C2", "sleeper", x("a"));
    table.waits("C3", "next", x("a"));
    assert_eq!(table.suspend("C2", ReleaseAtOnce), NOTHING);
    assert_eq!(table.pending(), ["sleeper", "next"]);
    // Under this policy, contention and queries evict no client.
    table.waits("C4", "last", x("a"));
    assert_eq!(table.query(), NOTHING);
    // Its turn comes while it is suspended: it never holds, and the queue is processed.
    assert_eq!(table.release("holder"), ["granted next"]);
    assert_eq!(table.resume("C2"), ["lost sleeper: suspended"]);
    assert!(table.is_gone("sleeper"));
}

#[test]
fn decision_7_release_at_once_grants_request_whose_turn_comes_after_resume() {
    let mut table = Table::new();
    table.holds("C1", "holder", x("a"));
    table.waits("C2", "sleeper", x("a"));
    assert_eq!(table.suspend("C2", ReleaseAtOnce), NOTHING);
    assert_eq!(table.resume("C2"), NOTHING);
    assert_eq!(table.release("holder"), ["granted sleeper"]);
}

#[test]
fn decision_7_second_suspend_or_resume_returns_false() {
    let mut table = Table::new();
    let client = table.client("C1");
    assert!(!table.manager.resume(client));
    assert!(table.manager.suspend(client, ReleaseAtOnce));
    assert!(!table.manager.suspend(client, EvictOnContention));
    assert!(table.manager.resume(client));
    assert_eq!(table.terminate("C1"), NOTHING);
    assert!(!table.manager.suspend(client, ReleaseAtOnce));
}

#[test]
fn decision_10_d05_request_without_steal_takes_nothing() {
    assert_eq!(Request::exclusive("a").wait, Wait::Queue);
    assert_eq!(Request::shared("a").wait, Wait::Queue);
    let mut table = Table::new();
    table.holds("C1", "lock", x("a"));
    table.waits("C2", "plain", x("a"));
    assert!(table.is_held("lock"));
}

#[test]
fn f32_request_refused_by_engine_leaves_no_trace() {
    let mut table = Table::new();
    table.holds("C1", "lock", x("a"));

    let overtaker = x("a").wait(Wait::Overtake);
    assert_eq!(table.refusal("C2", overtaker), RequestError::ExclusiveOvertake);

    assert_eq!(table.suspend("asleep", EvictOnContention), NOTHING);
    assert_eq!(table.refusal("asleep", s("b")), RequestError::ClientSuspended);

    assert_eq!(table.terminate("dead"), NOTHING);
    assert_eq!(table.refusal("dead", s("b")), RequestError::UnknownClient);

    assert_eq!(table.manager.name_count(), 1);
}
