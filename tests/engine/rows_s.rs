//! S1, S3, S4, S13, S15: where the standard's text slips, the rule we adopted.

use navlocks_core::{Answer, Wait};

use crate::support::{NOTHING, Table, manager, s, x};

#[test]
fn s1_a_request_that_finds_nothing_available_ends_there() {
    // Read by the letter the request would be queued as well and its callback run twice.
    let mut manager = manager();
    let client = manager.add_client();
    let holder = manager.request(client, x("a")).unwrap().0;
    let (miss, answer) = manager.request(client, x("a").wait(Wait::IfAvailable)).unwrap();
    assert_eq!(answer, Answer::Unavailable);
    assert!(manager.release(holder));
    assert_eq!(manager.poll_event(), None);
    assert_eq!(manager.state(miss), None);
    assert_eq!((manager.held_count(), manager.pending_count()), (0, 0));
}

#[test]
fn s3_no_request_is_skipped_while_the_queue_shrinks() {
    let mut table = Table::new();
    table.holds("C1", "X", x("a"));
    let readers: Vec<String> = (0..7).map(|at| format!("S{at}")).collect();
    for reader in &readers {
        table.waits("C2", reader, s("a"));
    }
    let granted: Vec<String> = readers.iter().map(|reader| format!("granted {reader}")).collect();
    assert_eq!(table.release("X"), granted);
}

#[test]
fn s3_no_holder_is_skipped_while_the_held_locks_shrink() {
    let mut table = Table::new();
    let readers: Vec<String> = (0..7).map(|at| format!("S{at}")).collect();
    for reader in &readers {
        table.holds("C1", reader, s("a"));
    }
    let mut expected: Vec<String> =
        readers.iter().map(|reader| format!("lost {reader}: stolen by thief")).collect();
    expected.push("granted thief".to_owned());
    assert_eq!(table.request("C2", "thief", x("a").wait(Wait::Steal)), expected);
    assert_eq!(table.held(), ["thief"]);
}

#[test]
fn s4_termination_is_by_client() {
    // Two frames of one page share an agent; one of them goes.
    let mut table = Table::new();
    table.holds("page/frame 1", "held by 1", s("a"));
    table.holds("page/frame 2", "held by 2", s("a"));
    table.waits("page/frame 1", "1 waits", x("a"));
    table.waits("page/frame 2", "2 waits", x("a"));
    assert_eq!(table.terminate("page/frame 1"), NOTHING);
    assert_eq!(table.held(), ["held by 2"]);
    assert_eq!(table.pending(), ["2 waits"]);
}

#[test]
fn s13_a_name_nobody_uses_is_forgotten() {
    let mut table = Table::new();
    table.holds("C1", "released", x("a"));
    table.waits("C1", "aborted", x(["a", "b"]));
    assert_eq!(table.manager.name_count(), 2);
    table.abort("aborted");
    assert_eq!(table.manager.name_count(), 1);
    table.release("released");
    assert_eq!(table.manager.name_count(), 0);
    // By every way a request can end.
    table.holds("C1", "forced", x("c"));
    table.force_release("c");
    table.holds("C2", "terminated", x("d"));
    table.terminate("C2");
    table.holds("C1", "holder", x("e"));
    table.request("C1", "missed", s(["e", "f"]).wait(Wait::IfAvailable));
    assert_eq!(table.manager.name_count(), 1);
}

#[test]
fn s15_held_locks_are_listed_in_grant_order_across_names() {
    let mut table = Table::new();
    table.holds("C1", "z", x("z"));
    table.holds("C2", "a", x("a"));
    table.waits("C1", "a next", x("a"));
    table.waits("C2", "z next", x("z"));
    table.holds("C3", "m", s("m"));
    assert_eq!(table.held(), ["z", "a", "m"]);
    table.release("z");
    table.release("a");
    // Asked for the other way round, and before "m".
    assert_eq!(table.held(), ["m", "z next", "a next"]);
}
