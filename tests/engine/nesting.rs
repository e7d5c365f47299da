//! Requests within held ones: certain deadlocks, and those that are only possible.

use crate::support::{NOTHING, Table, s, x};
use navlocks_core::{Mode, Request};

/// Returns the requests of each deadlock.
fn certain(table: &Table) -> Vec<Vec<String>> {
    table.deadlocked_requests()
}

fn limit(name: &str, holders: u32) -> Request {
    x(name).mode(Mode::limited(holders).expect("a limit"))
}

#[test]
fn b01_locks_nested_in_opposite_order_are_a_deadlock() {
    let mut table = Table::new();
    for (client, held, wanted) in [("1", "a", "b"), ("2", "b", "a")] {
        table.holds(client, held, x(held));
        let inner = format!("{wanted} in {held}");
        if client == "1" {
            continue;
        }
        table.waits(client, &inner, x(wanted));
        assert!(table.nest(&inner, held));
    }
    assert!(certain(&table).is_empty());
    table.waits("1", "b in a", x("b"));
    assert!(table.nest("b in a", "a"));
    assert_eq!(certain(&table), [["a", "b", "a in b", "b in a"]]);
    assert!(table.deadlocked_clients().is_empty(), "it is certain, and not shown as possible too");

    assert_eq!(table.abort("b in a"), NOTHING);
    assert!(certain(&table).is_empty());
    assert_eq!(table.release("a"), ["granted a in b"]);
}

#[test]
fn b02_tasks_of_one_client_that_want_one_name_are_no_deadlock() {
    let mut table = Table::new();
    table.holds("server", "first handler", x("key"));
    table.waits("server", "second handler", x("key"));
    table.holds("server", "third handler", x("other"));
    table.waits("server", "in third", x("key"));
    assert!(table.nest("in third", "third handler"));
    assert!(certain(&table).is_empty() && table.deadlocked_clients().is_empty());
}

#[test]
fn b02_cycle_of_clients_whose_waits_belong_to_no_lock_is_only_possible() {
    let mut table = Table::new();
    table.holds("1", "1 has a", x("a"));
    table.holds("2", "2 has b", x("b"));
    table.waits("1", "1 wants b", x("b"));
    table.waits("2", "2 wants a", x("a"));
    assert!(certain(&table).is_empty());
    assert_eq!(table.deadlocked_clients(), [["1", "2"]]);
}

#[test]
fn b03_wait_behind_a_limit_is_in_no_certain_deadlock() {
    let mut table = Table::new();
    table.holds("1", "one of two", limit("a", 2));
    table.holds("2", "two of two", limit("a", 2));
    table.waits("1", "third", limit("a", 2));
    assert!(table.nest("third", "one of two"));
    assert!(certain(&table).is_empty(), "the other holder may end");
    table.waits("1", "alone", x("a"));
    assert!(table.nest("alone", "one of two"));
    assert_eq!(certain(&table), [["one of two", "alone"]]);
}

#[test]
fn b04_request_within_its_own_lock_waits_for_itself() {
    let mut table = Table::new();
    table.holds("1", "outer", x("a"));
    table.holds("1", "between", s("b"));
    assert!(table.nest("between", "outer"));
    table.waits("1", "inner", x("a"));
    assert!(table.nest("inner", "between"));
    assert_eq!(certain(&table), [["outer", "between", "inner"]]);
}

#[test]
fn b05_program_that_waits_for_the_lock_of_its_outer_program_is_a_deadlock() {
    let mut table = Table::new();
    table.holds("parent", "outer", x("a"));
    table.waits("child", "inner", x("a"));
    assert!(certain(&table).is_empty());
    assert!(table.nest("inner", "outer"));
    assert_eq!(certain(&table), [["outer", "inner"]]);
    let through = table.manager.deadlock_through(table.id("inner"), usize::MAX).unwrap();
    assert_eq!(through.requests, [table.id("outer"), table.id("inner")]);
    assert_eq!(table.terminate("child"), NOTHING);
    assert!(certain(&table).is_empty());
}

#[test]
fn b01_lock_that_is_over_or_pending_or_later_is_no_outer_one() {
    let mut table = Table::new();
    table.holds("1", "early", x("a"));
    table.holds("1", "late", x("b"));
    table.waits("2", "waits", x("a"));
    assert!(!table.nest("early", "late") && !table.nest("late", "late"));
    assert!(!table.nest("waits", "waits"));
    table.waits("1", "inner", x("b"));
    assert!(!table.nest("inner", "waits"));
    assert!(table.nest("waits", "late"));
    assert_eq!(table.release("late"), ["granted inner"]);
    assert_eq!(table.manager.outer_of(table.id("waits")), None);
    assert!(!table.nest("waits", "late"));
}
