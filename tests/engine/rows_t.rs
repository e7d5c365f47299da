//! T04–T06: seed 003's timeout. The clock is the caller's: when its timer fires it calls `abort`,
//! and rejects with TimeoutError exactly when that answers true.

use navlocks_core::{Event, Wait};

use crate::support::{NOTHING, Table, manager, s, x};

#[test]
fn t04_a_timeout_leaves_the_queue_and_its_followers_are_evaluated() {
    let mut table = Table::new();
    table.holds("C1", "S1", s("a"));
    table.waits("C2", "X with timeout", x("a"));
    table.waits("C3", "S2", s("a"));
    assert_eq!(table.abort("X with timeout"), ["granted S2"]);
    assert_eq!(table.held(), ["S1", "S2"]);
    assert_eq!(table.pending(), NOTHING);
}

#[test]
fn t05_a_timeout_of_zero_tries_once() {
    let mut table = Table::new();
    table.holds("C1", "free", x("a").wait(Wait::IfAvailable));
    // A miss is the TimeoutError; nothing was queued.
    assert_eq!(table.request("C2", "taken", x("a").wait(Wait::IfAvailable)), ["unavailable taken"]);
    assert_eq!(table.pending(), NOTHING);
}

#[test]
fn t05_a_timer_that_fires_at_once_tells_the_same() {
    // A surface that queues and lets a zero timer abort gets the same two outcomes.
    let mut table = Table::new();
    table.holds("C1", "free", x("a"));
    table.abort_does_nothing("free");
    table.waits("C2", "taken", x("a"));
    assert_eq!(table.abort("taken"), NOTHING);
    assert_eq!(table.held(), ["free"]);
}

#[test]
fn t06_the_timeout_stops_at_the_grant() {
    let mut table = Table::new();
    table.holds("C1", "first", x("a"));
    table.waits("C2", "second", x("a"));
    assert_eq!(table.release("first"), ["granted second"]);
    table.waits("C3", "third", x("a"));
    table.abort_does_nothing("second");
    assert!(table.is_held("second"));
    assert_eq!(table.release("second"), ["granted third"]);
}

#[test]
fn t06_a_grant_not_yet_heard_has_won_already() {
    let mut manager = manager();
    let client = manager.add_client();
    let first = manager.request(client, x("a")).unwrap().0;
    let second = manager.request(client, x("a")).unwrap().0;
    while manager.poll_event().is_some() {}
    assert!(manager.release(first));
    // The timer fires between the grant and its delivery: too late, the grant stands and is heard.
    assert!(!manager.abort(second));
    assert!(
        matches!(manager.poll_event(), Some(Event::Granted { request, .. }) if request == second)
    );
    assert!(manager.release(second));
}
