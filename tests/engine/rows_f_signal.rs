//! F81–F83, F87: an abort while waiting. The surface listens to the signal and rejects with its
//! reason; the engine's half is `abort`.

use crate::support::{NOTHING, Table, s, x};

#[test]
fn f81_an_aborted_request_leaves_the_queue() {
    let mut table = Table::new();
    table.holds("C1", "holder", x("a"));
    table.waits("C2", "impatient", x("a"));
    // No event: whoever aborts knows it from the answer.
    assert_eq!(table.abort("impatient"), NOTHING);
    assert!(table.is_gone("impatient"));
    assert_eq!(table.query(), NOTHING);
    assert_eq!(table.pending(), NOTHING);
    // It is granted nothing later, and a second abort is one too many.
    assert_eq!(table.release("holder"), NOTHING);
    table.abort_does_nothing("impatient");
}

#[test]
fn f82_the_next_request_is_processed_after_an_abort() {
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
fn f83_an_abort_in_mid_queue_unblocks_all_that_agree_with_the_holders() {
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
fn f83_an_abort_unblocks_nobody_who_has_another_blocker() {
    let mut table = Table::new();
    table.holds("C1", "X1", x("a"));
    table.waits("C2", "X2", x("a"));
    table.waits("C3", "S1", s("a"));
    assert_eq!(table.abort("X2"), NOTHING);
    assert_eq!(table.release("X1"), ["granted S1"]);
}

#[test]
fn f87_one_signal_on_many_requests_ends_the_pending_and_spares_the_held() {
    let mut table = Table::new();
    table.holds("C1", "held a", x("a"));
    table.holds("C1", "held b", s("b"));
    table.waits("C1", "pending a", x("a"));
    table.waits("C1", "pending b", x("b"));
    table.waits("C2", "behind a", x("a"));
    table.waits("C2", "behind b", s("b"));
    table.waits("C1", "pending both", x(["a", "b"]));

    // The signal runs through its requests in the order they were made.
    table.abort_does_nothing("held a");
    table.abort_does_nothing("held b");
    assert_eq!(table.abort("pending a"), NOTHING);
    assert_eq!(table.abort("pending b"), ["granted behind b"]);
    assert_eq!(table.abort("pending both"), NOTHING);

    assert_eq!(table.held(), ["held a", "held b", "behind b"]);
    assert_eq!(table.pending(), ["behind a"]);
}
