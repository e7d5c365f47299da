//! The scheduling example of the explainer, and its answers.

mod scopes;
mod acquire;
mod evaluation;
mod decisions;

use navlocks_core::Wait;

use crate::support::{NOTHING, Table, s, x};

/// Plays the example up to request 4: #1 and #2 held, #3 shares, #4 waits for both names.
fn up_to_number_four() -> Table {
    let mut table = Table::new();
    table.holds("C1", "#1", x("a"));
    table.holds("C2", "#2", s("b"));
    table.holds("C3", "#3", s("b"));
    table.waits("C4", "#4", x(["a", "b"]));
    table
}

/// Plays the example with all its requests.
fn scheduling_example() -> Table {
    let mut table = up_to_number_four();
    table.waits("C5", "#5", s("b"));
    table.holds("C6", "#6", x("c"));
    table
}

#[test]
fn x01_after_all_requests_three_and_six_are_granted() {
    let table = scheduling_example();
    assert_eq!(table.held(), ["#1", "#2", "#3", "#6"]);
    assert_eq!(table.pending(), ["#4", "#5"]);
}

#[test]
fn x02_releasing_one_grants_nothing() {
    let mut table = scheduling_example();
    assert_eq!(table.release("#1"), NOTHING);
    assert_eq!(table.pending(), ["#4", "#5"]);
}

#[test]
fn x03_releasing_two_grants_nothing_while_three_holds() {
    let mut table = scheduling_example();
    table.release("#1");
    assert_eq!(table.release("#2"), NOTHING);
    assert_eq!(table.blockers("#4"), (vec!["#3".to_owned()], vec![]));
    assert_eq!(table.pending(), ["#4", "#5"]);
}

#[test]
fn x04_releasing_three_grants_four() {
    let mut table = scheduling_example();
    table.release("#1");
    table.release("#2");
    assert_eq!(table.release("#3"), ["granted #4"]);
    assert_eq!(table.pending(), ["#5"]);
}

#[test]
fn x05_releasing_four_grants_five() {
    let mut table = scheduling_example();
    for done in ["#1", "#2", "#3"] {
        table.release(done);
    }
    assert_eq!(table.release("#4"), ["granted #5"]);
    assert_eq!(table.held(), ["#6", "#5"]);
}

#[test]
fn x06_aborting_four_grants_five_at_once() {
    let mut table = scheduling_example();
    assert_eq!(table.abort("#4"), ["granted #5"]);
    assert_eq!(table.pending(), NOTHING);
}

#[test]
fn x07_reader_of_a_waits_for_one_and_for_four() {
    let mut table = scheduling_example();
    table.waits("C7", "#7", s("a"));
    assert_eq!(table.blockers("#7"), (vec!["#1".to_owned()], vec!["#4".to_owned()]));
    assert_eq!(table.release("#1"), NOTHING);
    assert_eq!(table.release("#2"), NOTHING);
    assert_eq!(table.release("#3"), ["granted #4"]);
    assert_eq!(table.release("#4"), ["granted #5", "granted #7"]);
}

#[test]
fn x08_chain_of_scopes_is_granted_one_by_one() {
    let mut table = scheduling_example();
    table.waits("C8", "#8", x(["c", "d"]));
    table.waits("C9", "#9", s("d"));
    assert_eq!(table.blockers("#8"), (vec!["#6".to_owned()], vec![]));
    assert_eq!(table.blockers("#9"), (vec![], vec!["#8".to_owned()]));
    assert_eq!(table.release("#6"), ["granted #8"]);
    assert_eq!(table.release("#8"), ["granted #9"]);
}

#[test]
fn x09_termination_of_client_of_four_grants_as_its_abort() {
    let mut table = scheduling_example();
    assert_eq!(table.terminate("C4"), ["granted #5"]);
    assert_eq!(table.pending(), NOTHING);
}

#[test]
fn x10_four_is_granted_after_third_release_in_any_order() {
    let orders = [[1, 2, 3], [1, 3, 2], [2, 1, 3], [2, 3, 1], [3, 1, 2], [3, 2, 1]];
    for order in orders {
        let [first, second, third] = order.map(|number| format!("#{number}"));
        let mut table = scheduling_example();
        assert_eq!(table.release(&first), NOTHING);
        assert_eq!(table.release(&second), NOTHING);
        assert_eq!(table.release(&third), ["granted #4"], "in the order {order:?}");
    }
}

#[test]
fn x35_reader_waits_behind_queued_writer() {
    let table = scheduling_example();
    // No holder blocks #5; the writer in the queue does.
    assert_eq!(table.blockers("#5"), (vec![], vec!["#4".to_owned()]));
}

#[test]
fn x36_overtaking_is_off_by_default_and_grants_five_if_set() {
    assert_eq!(s("b").wait, Wait::Queue);
    let mut table = up_to_number_four();
    table.holds("C5", "#5", s("b").wait(Wait::Overtake));
    table.holds("C6", "#6", x("c"));
    assert_eq!(table.pending(), ["#4"]);
    // Its lock counts like any other: the writer now waits for it too.
    for done in ["#1", "#2", "#3"] {
        assert_eq!(table.release(done), NOTHING);
    }
    assert_eq!(table.release("#5"), ["granted #4"]);
}

#[test]
fn x36_pending_overtaker_stands_before_queued_requests() {
    let mut table = Table::new();
    table.holds("C1", "holder", x("a"));
    table.waits("C2", "X1", x("a"));
    table.waits("C3", "S1", s("a"));
    table.waits("C4", "overtaker", s("a").wait(Wait::Overtake));
    table.waits("C5", "second overtaker", s("a").wait(Wait::Overtake));
    assert_eq!(table.pending(), ["overtaker", "second overtaker", "X1", "S1"]);
    assert_eq!(table.release("holder"), ["granted overtaker", "granted second overtaker"]);
    assert_eq!(table.release("overtaker"), NOTHING);
    assert_eq!(table.release("second overtaker"), ["granted X1"]);
    assert_eq!(table.release("X1"), ["granted S1"]);
}

#[test]
fn x37_two_sessions_hold_same_name_at_once() {
    let (mut session, mut incognito) = (Table::new(), Table::new());
    session.holds("tab", "lock", x("a"));
    incognito.holds("tab", "lock", x("a"));
    // A query in one session shows nothing of the other, and ending one releases nothing in the
    // other.
    session.waits("other tab", "next", x("a"));
    assert_eq!(incognito.query(), NOTHING);
    assert_eq!((incognito.held(), incognito.pending()), (vec!["lock".to_owned()], vec![]));
    assert_eq!(incognito.force_release("a").0, 1);
    assert_eq!(session.settle(), NOTHING);
    assert!(session.is_held("lock") && session.is_pending("next"));
}
