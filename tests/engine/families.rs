//! Clients that wait until others end: deadlocks of programs that start each other.

use crate::support::{NOTHING, Table, x};

#[test]
fn child_that_waits_for_its_parents_lock_is_a_deadlock() {
    let mut table = Table::new();
    table.holds("parent", "outer", x("a"));
    table.waits("child", "inner", x("a"));
    assert!(table.deadlocked_clients().is_empty());

    let (parent, child) = (table.client("parent"), table.client("child"));
    assert!(table.manager.add_child(parent, child));
    assert_eq!(table.deadlocked_clients(), [["parent", "child"]]);
    let through =
        table.manager.deadlock_through(table.id("inner"), usize::MAX).expect("it waits in a cycle");
    assert_eq!(through.requests, [table.id("outer"), table.id("inner")]);

    assert_eq!(table.terminate("child"), NOTHING);
    assert!(table.deadlocked_clients().is_empty());
    assert!(!table.manager.add_child(parent, child), "the child has ended");
}

#[test]
fn scripts_that_nest_two_locks_in_opposite_order_are_a_deadlock() {
    let mut table = Table::new();
    table.holds("script 1", "a", x("a"));
    table.holds("script 2", "b", x("b"));
    table.waits("child 1", "then b", x("b"));
    table.waits("child 2", "then a", x("a"));
    for number in [1, 2] {
        let parent = table.client(&format!("script {number}"));
        let child = table.client(&format!("child {number}"));
        assert!(table.manager.add_child(parent, child));
    }
    let mut cycles = table.deadlocked_clients();
    cycles[0].sort();
    assert_eq!(cycles, [["child 1", "child 2", "script 1", "script 2"]]);
    // The first script is killed, and all others are granted in order.
    assert_eq!(table.terminate("script 1"), ["granted then a"]);
    assert!(table.deadlocked_clients().is_empty());
}

#[test]
fn child_that_waits_for_another_client_is_no_deadlock() {
    let mut table = Table::new();
    table.holds("parent", "outer", x("a"));
    table.holds("other", "lock", x("b"));
    table.waits("child", "inner", x("b"));
    let (parent, child) = (table.client("parent"), table.client("child"));
    assert!(table.manager.add_child(parent, child));
    assert!(table.deadlocked_clients().is_empty());
}
