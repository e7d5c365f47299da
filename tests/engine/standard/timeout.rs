//! Timeouts. The clock belongs to the surface: when its timer fires it calls `abort`, and rejects
//! with TimeoutError exactly when that returns true.

use navlocks_core::{Event, Wait};

use crate::support::{NOTHING, Table, manager, s, x};

#[test]
fn t04_timed_out_request_leaves_the_queue_and_waiters_behind_are_granted() {
    let mut table = Table::new();
    table.holds("C1", "S1", s("a"));
    table.waits("C2", "X with timeout", x("a"));
    table.waits("C3", "S2", s("a"));
    assert_eq!(table.abort("X with timeout"), ["granted S2"]);
    assert_eq!(table.held(), ["S1", "S2"]);
    assert_eq!(table.pending(), NOTHING);
}

#[test]
fn t05_timeout_of_zero_tries_once() {
    let mut table = Table::new();
    table.holds("C1", "free", x("a").wait(Wait::IfAvailable));
    // A miss is the TimeoutError; the request was not queued.
    assert_eq!(table.request("C2", "taken", x("a").wait(Wait::IfAvailable)), ["unavailable taken"]);
    assert_eq!(table.pending(), NOTHING);
}

#[test]
fn t05_timer_of_zero_has_the_same_outcome() {
    // A surface that queues, and aborts by a timer of zero, gets the same two outcomes.
    let mut table = Table::new();
    table.holds("C1", "free", x("a"));
    table.abort_does_nothing("free");
    table.waits("C2", "taken", x("a"));
    assert_eq!(table.abort("taken"), NOTHING);
    assert_eq!(table.held(), ["free"]);
}

#[test]
fn t06_timeout_stops_at_grant() {
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
fn t06_grant_not_yet_polled_wins_over_the_timeout() {
    let mut manager = manager();
    let client = manager.add_client();
    let first = manager.request(client, x("a")).unwrap().0;
    let second = manager.request(client, x("a")).unwrap().0;
    while manager.poll_event().is_some() {}
    assert!(manager.release(first));
    // The timer fires between the grant and its delivery: the grant stands and is delivered.
    assert!(!manager.abort(second));
    assert!(
        matches!(manager.poll_event(), Some(Event::Granted { request, .. }) if request == second)
    );
    assert!(manager.release(second));
}
