//! Scheduling: which request is granted, and when.

use navlocks_core::{Name, Request, RequestId, Wait};

use crate::support::{NOTHING, Table, manager, s, x};

#[test]
fn f60_exclusive_requests_are_granted_in_order_of_arrival() {
    let mut table = Table::new();
    table.holds("C1", "1", x("a"));
    table.waits("C2", "2", x("a"));
    table.waits("C1", "3", x("a"));
    table.waits("C3", "4", x("a"));
    assert_eq!(table.release("1"), ["granted 2"]);
    assert_eq!(table.release("2"), ["granted 3"]);
    assert_eq!(table.release("3"), ["granted 4"]);
    assert_eq!(table.release("4"), NOTHING);
}

#[test]
fn f61_shared_locks_are_held_together_even_by_one_client() {
    let mut table = Table::new();
    table.holds("C1", "first", s("a"));
    table.holds("C1", "second", s("a"));
    table.holds("C2", "third", s("a"));
    assert_eq!(table.query(), NOTHING);
    assert_eq!(table.held(), ["first", "second", "third"]);
}

#[test]
fn f62_shared_blocks_exclusive_and_exclusive_blocks_both() {
    let mut table = Table::new();
    table.holds("C1", "reader", s("read"));
    table.holds("C1", "writer", x("written"));
    for (name, mode) in [("read", x("read")), ("written", x("written")), ("written", s("written"))]
    {
        let label = format!("{:?} on {name}", mode.mode);
        let events = table.request("C2", &label, mode.wait(Wait::IfAvailable));
        assert_eq!(events, [format!("unavailable {label}")]);
    }
    table.waits("C2", "X behind S", x("read"));
    table.waits("C2", "X behind X", x("written"));
    table.waits("C2", "S behind X", s("written"));
}

#[test]
fn f63_exclusive_request_waits_for_every_shared_holder() {
    let releases = [["S1", "S2", "S3"], ["S3", "S1", "S2"], ["S2", "S3", "S1"]];
    for [first, second, last] in releases {
        let mut table = Table::new();
        table.holds("C1", "S1", s("a"));
        table.holds("C2", "S2", s("a"));
        table.holds("C3", "S3", s("a"));
        table.waits("C4", "X", x("a"));
        assert_eq!(table.release(first), NOTHING);
        assert_eq!(table.release(second), NOTHING);
        assert_eq!(table.release(last), ["granted X"]);
    }
}

#[test]
fn f64_shared_request_waits_behind_pending_exclusive() {
    let mut table = Table::new();
    table.holds("C1", "S1", s("a"));
    table.waits("C2", "X", x("a"));
    table.waits("C3", "S2", s("a"));
    // It conflicts with no holder; only its place in the queue keeps it pending.
    assert_eq!(table.blockers("S2"), (vec![], vec!["X".to_owned()]));
    assert_eq!(table.release("S1"), ["granted X"]);
    assert_eq!(table.pending(), ["S2"]);
    assert_eq!(table.release("X"), ["granted S2"]);
}

#[test]
fn f65_s3_exclusive_release_grants_shared_requests_up_to_the_next_exclusive() {
    let mut table = Table::new();
    table.holds("C1", "X1", x("a"));
    table.waits("C2", "S1", s("a"));
    table.waits("C3", "S2", s("a"));
    table.waits("C4", "X2", x("a"));
    table.waits("C5", "S3", s("a"));
    assert_eq!(table.release("X1"), ["granted S1", "granted S2"]);
    assert_eq!(table.held(), ["S1", "S2"]);
    assert_eq!(table.pending(), ["X2", "S3"]);
}

#[test]
fn f66_distinct_names_are_independent() {
    let mut table = Table::new();
    table.holds("C1", "a1", x("a"));
    table.waits("C1", "a2", x("a"));
    table.holds("C1", "b1", x("b"));
    table.waits("C1", "b2", s("b"));
    assert_eq!(table.release("b1"), ["granted b2"]);
    assert_eq!(table.pending(), ["a2"]);
}

#[test]
fn f67_lock_is_not_reentrant() {
    let mut table = Table::new();
    table.holds("C1", "outer", x("a"));
    let nested = table.request("C1", "nested", x("a").wait(Wait::IfAvailable));
    assert_eq!(nested, ["unavailable nested"]);
    let nested = table.request("C1", "nested shared", s("a").wait(Wait::IfAvailable));
    assert_eq!(nested, ["unavailable nested shared"]);
    // Without ifAvailable it waits for its own client. Another task may release, so that is no
    // deadlock.
    table.waits("C1", "nested for good", x("a"));
    assert!(table.deadlocked_clients().is_empty());
}

#[test]
fn f68_f07_requests_of_all_clients_have_one_order() {
    // Six clients in every rotation: the order of arrival decides, not the client that requests or
    // releases.
    let clients = ["C1", "C2", "C3", "C4", "C5", "C6"];
    for turn in 0..clients.len() {
        let mut table = Table::new();
        for client in clients {
            table.client(client);
        }
        let mut order = clients;
        order.rotate_left(turn);
        table.holds("C1", "gate", x("a"));
        for client in order {
            table.waits(client, client, x("a"));
        }
        assert_eq!(table.pending(), order);
        let mut holder = "gate";
        for next in order {
            assert_eq!(table.release(holder), [format!("granted {next}")]);
            holder = next;
        }
    }
}

/// Plays a few inputs on the names "a" and "b" and returns all events.
fn short_life(table: &mut Table) -> Vec<String> {
    let mut events = Vec::new();
    events.extend(table.request("C1", "1", x("a")));
    events.extend(table.request("C2", "2", s(["a", "b"])));
    events.extend(table.request("C3", "3", x("b")));
    events.extend(table.request("C3", "4", s("a").wait(Wait::IfAvailable)));
    events.extend(table.release("1"));
    events.extend(table.request("C1", "5", x("a").wait(Wait::Steal)));
    events.extend(table.request("C1", "6", s("b")));
    events.extend(table.abort("6"));
    events.extend(table.terminate("C3"));
    events.extend(table.force_release("a").1);
    events
}

#[test]
fn f69_other_names_do_not_change_answers() {
    // Unit tests of the engine count the reads: crates/navlocks-core/src/manager/cost.rs.
    const OTHERS: usize = 100_000;
    let alone = short_life(&mut Table::new());
    assert_eq!(
        alone,
        [
            "granted 1",
            "unavailable 4",
            "granted 2",
            "lost 2: stolen by 5",
            "granted 5",
            "granted 3",
            "lost 5: force-released",
        ]
    );

    let mut crowded = manager();
    let crowd = crowded.add_client();
    let mut ask = |request: Request| crowded.request(crowd, request).unwrap().0;
    let others: Vec<RequestId> = (0..OTHERS)
        .flat_map(|at| {
            let name = Name::from(format!("other {at}"));
            [ask(Request::exclusive(name.clone())), ask(Request::exclusive(name))]
        })
        .collect();
    while crowded.poll_event().is_some() {}

    let mut table = Table::of(crowded);
    assert_eq!(short_life(&mut table), alone);
    assert_eq!(table.manager.held_count(), OTHERS);
    assert_eq!(table.manager.pending_count(), OTHERS);
    let snapshot = table.snapshot();
    let left = snapshot.held.iter().zip(&snapshot.pending).flat_map(|(held, next)| [held, next]);
    assert!(left.map(|info| info.request).eq(others));
}

#[test]
fn g5_waiters_never_overtake_across_clients() {
    let mut table = Table::new();
    table.holds("D", "X0", x("a"));
    table.waits("A", "S1", s("a"));
    table.waits("B", "X2", x("a"));
    table.waits("C", "S3", s("a"));
    assert_eq!(table.release("X0"), ["granted S1"]);
    assert_eq!(table.release("S1"), ["granted X2"]);
    assert_eq!(table.release("X2"), ["granted S3"]);
}

#[test]
fn s3_shrinking_queue_skips_no_request() {
    let mut table = Table::new();
    table.holds("C1", "X", x("a"));
    let readers: Vec<String> = (0..7).map(|at| format!("S{at}")).collect();
    for reader in &readers {
        table.waits("C2", reader, s("a"));
    }
    let granted: Vec<String> = readers.iter().map(|reader| format!("granted {reader}")).collect();
    assert_eq!(table.release("X"), granted);
}
