//! Aborts of pending requests. A surface observes the signal and rejects with its reason; the
//! engine has `abort`.

use crate::support::{NOTHING, Table, s, x};

#[test]
fn f81_d09_aborted_request_leaves_queue() {
    let mut table = Table::new();
    table.holds("C1", "holder", x("a"));
    table.waits("C2", "impatient", x("a"));
    // No event: the return value tells the client.
    assert_eq!(table.abort("impatient"), NOTHING);
    assert!(table.is_gone("impatient"));
    assert_eq!(table.query(), NOTHING);
    assert_eq!(table.pending(), NOTHING);
    // It is granted nothing later, and a second abort does nothing.
    assert_eq!(table.release("holder"), NOTHING);
    table.abort_does_nothing("impatient");
}

#[test]
fn f82_next_request_is_granted_after_abort() {
    let mut table = Table::new();
    table.holds("C1", "holder", x("a"));
    table.waits("C2", "impatient", x("a"));
    table.waits("C3", "patient", x("a"));
    assert_eq!(table.abort("impatient"), NOTHING);
    assert_eq!(table.release("holder"), ["granted patient"]);
    assert_eq!(table.release("patient"), NOTHING);
    table.holds("C2", "later", x("a"));
}

#[test]
fn f83_abort_in_mid_queue_grants_all_compatible_waiters() {
    let mut table = Table::new();
    table.holds("C1", "S1", s("a"));
    table.waits("C2", "X1", x("a"));
    table.waits("C3", "S2", s("a"));
    table.waits("C4", "S3", s("a"));
    table.waits("C5", "X2", x("a"));
    table.waits("C6", "S4", s("a"));
    assert_eq!(table.abort("X1"), ["granted S2", "granted S3"]);
    assert_eq!(table.pending(), ["X2", "S4"]);
    assert_eq!(table.abort("X2"), ["granted S4"]);
}

#[test]
fn f83_abort_grants_no_waiter_with_another_blocker() {
    let mut table = Table::new();
    table.holds("C1", "X1", x("a"));
    table.waits("C2", "X2", x("a"));
    table.waits("C3", "S1", s("a"));
    assert_eq!(table.abort("X2"), NOTHING);
    assert_eq!(table.release("X1"), ["granted S1"]);
}

#[test]
fn f87_f85_q20_d12_abort_of_many_requests_ends_pending_and_spares_held() {
    let mut table = Table::new();
    table.holds("C1", "held a", x("a"));
    table.holds("C1", "held b", s("b"));
    table.waits("C1", "pending a", x("a"));
    table.waits("C1", "pending b", x("b"));
    table.waits("C2", "behind a", x("a"));
    table.waits("C2", "behind b", s("b"));
    table.waits("C1", "pending both", x(["a", "b"]));

    // The signal aborts its requests in the order they were made.
    table.abort_does_nothing("held a");
    table.abort_does_nothing("held b");
    assert_eq!(table.abort("pending a"), NOTHING);
    assert_eq!(table.abort("pending b"), ["granted behind b"]);
    assert_eq!(table.abort("pending both"), NOTHING);

    assert_eq!(table.held(), ["held a", "held b", "behind b"]);
    assert_eq!(table.pending(), ["behind a"]);
}

#[test]
fn g2_abort_of_middle_request_grants_waiters_behind() {
    let mut table = Table::new();
    table.holds("C1", "S1", s("a"));
    table.waits("C1", "X", x("a"));
    table.waits("C1", "S2", s("a"));
    assert_eq!(table.abort("X"), ["granted S2"]);
}

#[test]
fn g3_aborted_request_is_in_no_snapshot() {
    let mut table = Table::new();
    table.holds("C1", "holder", x("a"));
    table.waits("C2", "first", x("a"));
    table.waits("C2", "aborted", s("a"));
    table.waits("C2", "last", x("a"));
    table.abort("aborted");
    // The request is gone at once, not when its turn would have come.
    assert_eq!(table.query(), NOTHING);
    assert_eq!(table.pending(), ["first", "last"]);
    assert_eq!(table.manager.pending_count(), 2);
}
