//! Scopes: requests for several names. The `waitUntil` and `released` of the older API belong to
//! the surface.

use navlocks_core::{EmptyScope, Mode, Name, Scope, Wait};

use crate::support::{NOTHING, Table, s, units, x};

fn scope(names: &[&'static str]) -> Scope {
    Scope::new(names.iter().copied()).expect("at least one name")
}

fn texts(scope: &Scope) -> Vec<&str> {
    scope.names().iter().filter_map(Name::to_str).collect()
}

#[test]
fn q01_d03_one_name_is_the_scope_of_that_name() {
    assert_eq!(Scope::from("a"), scope(&["a"]));
    assert_eq!(Scope::from(Name::from("a")), scope(&["a"]));
    let mut table = Table::new();
    table.holds("C1", "as a name", x("a"));
    table.waits("C1", "as a scope", x(["a"]));
    assert_eq!(table.release("as a name"), ["granted as a scope"]);
}

#[test]
fn q02_scope_is_a_sorted_set() {
    assert_eq!(texts(&scope(&["b", "a", "b"])), ["a", "b"]);
    assert_eq!(texts(&scope(&["a", "a", "a"])), ["a"]);
    assert_eq!(texts(&scope(&["b", "", "a", "B", "ab", "\0"])), ["", "\0", "B", "a", "ab", "b"]);
    let mut table = Table::new();
    // A repeated name counts once.
    table.holds("C1", "twice", x(["b", "a", "b"]));
    assert_eq!(texts(&table.snapshot().held[0].scope), ["a", "b"]);
    table.waits("C2", "next", x("b"));
    assert_eq!(table.release("twice"), ["granted next"]);
    table.release("next");
    assert_eq!(table.manager.name_count(), 0);
}

#[test]
fn q03_names_sort_by_code_unit() {
    // By code point or UTF-8 byte, the order would be reversed.
    assert_eq!(texts(&scope(&["\u{FF5E}", "\u{10000}"])), ["\u{10000}", "\u{FF5E}"]);
    let lone = [units(&[0xD800]), units(&[0xDC00]), units(&[0xD800, 0x61])];
    let mixed =
        [Name::from("\u{FFFF}"), Name::from("\u{10000}"), Name::from("\u{D7FF}"), Name::from("é")];
    let all = Scope::new(lone.into_iter().chain(mixed)).unwrap();
    let sorted: Vec<Vec<u16>> =
        all.names().iter().map(|name| name.encode_utf16().collect()).collect();
    let expected: [&[u16]; 7] =
        [&[0xE9], &[0xD7FF], &[0xD800], &[0xD800, 0x61], &[0xD800, 0xDC00], &[0xDC00], &[0xFFFF]];
    assert_eq!(sorted, expected);
}

#[test]
fn q04_scope_has_at_least_one_name() {
    // The surface rejects with TypeError.
    assert!(matches!(Scope::new(Vec::<Name>::new()), Err(EmptyScope { .. })));
    // The empty name is a name.
    assert!(Scope::new([""]).is_ok());
}

#[test]
fn q05_t09_conflict_is_intersection_with_exclusive() {
    let mut table = Table::new();
    assert_eq!(x("a").mode, Mode::Exclusive);
    table.holds("C1", "X ab", x(["a", "b"]));
    table.waits("C2", "S bc", s(["b", "c"]));
    // A pending reader wants "c": another reader of it is granted, a writer is not.
    table.holds("C3", "S c", s("c"));
    table.waits("C4", "X c", x("c"));
    assert_eq!(table.release("X ab"), ["granted S bc"]);
    assert_eq!(table.held(), ["S c", "S bc"]);
}

#[test]
fn q05_t09_disjoint_scope_is_granted() {
    // X{c} is disjoint from all held locks. It comes first here; behind the pending S{b,c} it
    // waits, as Q07 shows.
    let mut table = Table::new();
    table.holds("C1", "X ab", x(["a", "b"]));
    table.holds("C3", "X c", x("c"));
    table.waits("C2", "S bc", s(["b", "c"]));
    assert_eq!(table.blockers("S bc").0, ["X ab", "X c"]);
    assert_eq!(table.release("X ab"), NOTHING);
    assert_eq!(table.release("X c"), ["granted S bc"]);
}

#[test]
fn q06_t09_scope_is_held_whole_or_not_at_all() {
    let mut table = Table::new();
    table.holds("C1", "X a", x("a"));
    table.waits("C2", "X ab", x(["a", "b"]));
    let held = table.snapshot().held;
    assert!(!held.iter().any(|info| info.scope.contains(&Name::from("b"))));
    assert_eq!(table.force_release("b"), (0, vec![]));
    assert_eq!(table.release("X a"), ["granted X ab"]);
    // A held scope is one lock on both names, and one release frees it.
    table.waits("C3", "next a", s("a"));
    table.waits("C3", "next b", s("b"));
    assert_eq!(table.release("X ab"), ["granted next a", "granted next b"]);
}

/// Makes the situation of Q07: "b" has no holder, yet a pending scope reserves it.
fn reserved_by_a_waiting_scope() -> Table {
    let mut table = Table::new();
    table.holds("C1", "X a", x("a"));
    table.waits("C2", "X ab", x(["a", "b"]));
    table.waits("C3", "X b", x("b"));
    table.waits("C4", "S b", s("b"));
    table
}

#[test]
fn q07_t09_pending_scope_reserves_its_place_on_all_its_names() {
    let mut table = reserved_by_a_waiting_scope();
    assert_eq!(table.blockers("X b"), (vec![], vec!["X ab".to_owned()]));
    assert_eq!(table.release("X a"), ["granted X ab"]);
    assert_eq!(table.release("X ab"), ["granted X b"]);
    assert_eq!(table.release("X b"), ["granted S b"]);
}

#[test]
fn q08_t09_shared_request_passes_pending_shared_but_no_exclusive() {
    let mut table = Table::new();
    table.holds("C1", "X a", x("a"));
    table.waits("C2", "S ab", s(["a", "b"]));
    table.holds("C3", "S b", s("b"));
    table.waits("C4", "X b", x("b"));
    table.waits("C5", "S b again", s("b"));
    // The writer waits for the reader that holds and for the earlier one.
    assert_eq!(table.blockers("X b"), (vec!["S b".to_owned()], vec!["S ab".to_owned()]));
    assert_eq!(table.release("S b"), NOTHING);
    assert_eq!(table.release("X a"), ["granted S ab"]);
    assert_eq!(table.release("S ab"), ["granted X b"]);
    assert_eq!(table.release("X b"), ["granted S b again"]);
}

#[test]
fn q09_t09_scopes_in_any_order_do_not_deadlock() {
    let mut table = Table::new();
    let mut waiting: Option<String> = None;
    for round in 0..50 {
        for (client, names) in [("C1", ["a", "b"]), ("C2", ["b", "a"])] {
            let label = format!("{client} round {round}");
            // Each requests while the other holds; then the other releases and this one is granted.
            match waiting.replace(label.clone()) {
                None => table.holds(client, &label, x(names)),
                Some(holder) => {
                    table.waits(client, &label, x(names));
                    assert!(table.deadlocked_clients().is_empty());
                    assert_eq!(table.release(&holder), [format!("granted {label}")]);
                }
            }
        }
    }
    assert_eq!(table.held(), ["C2 round 49"]);
}

#[test]
fn q10_abort_of_pending_scope_grants_waiters_behind() {
    let mut table = reserved_by_a_waiting_scope();
    assert_eq!(table.abort("X ab"), ["granted X b"]);
    assert_eq!(table.pending(), ["S b"]);
    assert_eq!(table.release("X b"), ["granted S b"]);
    // "a" still has its holder, and no waiter.
    assert_eq!(table.request("C5", "a", s("a").wait(Wait::IfAvailable)), ["unavailable a"]);
    assert_eq!(table.release("X a"), NOTHING);
}
