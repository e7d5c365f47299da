//! Queries and snapshots.

use std::collections::HashMap;

use navlocks_core::{
    ClientId, LockManager, Mode, Name, Request, RequestId, RequestInfo, Scope, Snapshot,
    SuspendPolicy, Wait,
};

use crate::support::{Dice, NOTHING, Table, manager, s, x};

#[test]
fn f110_idle_manager_has_an_empty_snapshot() {
    let mut manager = manager();
    let client = manager.add_client();
    for _ in 0..2 {
        let snapshot = manager.query();
        assert!(snapshot.held.is_empty() && snapshot.pending.is_empty());
        // The same after a request came and went.
        let request = manager.request(client, x("a")).unwrap().0;
        assert!(manager.release(request));
    }
}

#[test]
fn f111_s14_f114_d16_snapshot_entry_has_name_mode_and_client() {
    // The JavaScript surface makes these plain objects {name, mode, clientId}.
    let mut table = Table::new();
    table.holds("C1", "held", s("a"));
    table.waits("C2", "pending", x(["b", "a"]));
    let Snapshot { held, pending, .. } = table.manager.query();
    let (held, pending) = (&held[0], &pending[0]);

    assert_eq!(held.request, table.id("held"));
    assert_eq!(held.client, table.client("C1"));
    assert_eq!(held.scope, Scope::from("a"));
    assert_eq!(held.mode, Mode::Shared);
    assert!(held.token.is_some());

    assert_eq!(pending.request, table.id("pending"));
    assert_eq!(pending.client, table.client("C2"));
    assert_eq!(pending.scope.names(), [Name::from("a"), Name::from("b")]);
    assert_eq!(pending.mode, Mode::Exclusive);
    assert_eq!(pending.token, None);
}

#[test]
fn f111_g11_snapshot_is_a_copy() {
    let mut table = Table::new();
    table.holds("C1", "first", x("a"));
    table.waits("C1", "second", x("a"));
    let before = table.manager.query();
    table.release("first");
    table.release("second");
    assert_eq!(before.held[0].request, table.id("first"));
    assert_eq!(before.pending[0].request, table.id("second"));
}

#[test]
fn f112_every_shared_lock_and_request_is_listed() {
    let mut table = Table::new();
    for at in 0..5 {
        table.holds("C1", &format!("held {at}"), s("a"));
    }
    table.waits("C2", "writer", x("a"));
    for at in 0..3 {
        table.waits("C1", &format!("pending {at}"), s("a"));
    }
    let snapshot = table.manager.query();
    let shared =
        |infos: &[RequestInfo]| infos.iter().filter(|info| info.mode == Mode::Shared).count();
    assert_eq!((snapshot.held.len(), shared(&snapshot.held)), (5, 5));
    assert_eq!((snapshot.pending.len(), shared(&snapshot.pending)), (4, 3));
    assert_eq!((table.manager.held_count(), table.manager.pending_count()), (5, 4));
}

#[test]
fn f113_pending_requests_are_in_order_of_arrival_across_clients() {
    let mut table = Table::new();
    let c = ["C1", "C2", "C3"].map(|client| table.client(client));
    table.holds("C0", "gate 1", x("resource 1"));
    table.holds("C0", "gate 2", x("resource 2"));
    // The two orders of the public test, interleaved.
    table.waits("C1", "1/C1", x("resource 1"));
    table.waits("C3", "2/C3", s("resource 2"));
    table.waits("C2", "1/C2", s("resource 1"));
    table.waits("C1", "2/C1", x("resource 2"));
    table.waits("C3", "1/C3", x("resource 1"));
    table.waits("C2", "2/C2", s("resource 2"));

    let snapshot = table.manager.query();
    let clients_of = |name: &str| -> Vec<_> {
        let name = Name::from(name);
        let asked = snapshot.pending.iter().filter(|info| info.scope.contains(&name));
        asked.map(|info| info.client).collect()
    };
    assert_eq!(clients_of("resource 1"), [c[0], c[1], c[2]]);
    assert_eq!(clients_of("resource 2"), [c[2], c[0], c[1]]);
    assert_eq!(table.pending(), ["1/C1", "2/C3", "1/C2", "2/C1", "1/C3", "2/C2"]);
}

#[test]
fn f115_deadlock_is_visible_in_snapshot() {
    let mut table = Table::new();
    table.holds("C1", "C1 has a", x("a"));
    table.holds("C2", "C2 has b", x("b"));
    table.waits("C1", "C1 wants b", x("b"));
    table.waits("C2", "C2 wants a", x("a"));
    let snapshot = table.manager.query();
    let holder = |name: &Name| {
        snapshot.held.iter().find(|info| info.scope.contains(name)).map(|info| info.client)
    };
    // Each waits for the lock of the other.
    let crossed: Vec<_> =
        snapshot.pending.iter().map(|info| (info.client, holder(&info.scope.names()[0]))).collect();
    let (c1, c2) = (table.client("C1"), table.client("C2"));
    assert_eq!(crossed, [(c1, Some(c2)), (c2, Some(c1))]);
}

/// Checks that no name has two holders of which one is exclusive.
fn assert_exclusive_means_alone(snapshot: &Snapshot) {
    let mut holders: HashMap<&Name, Mode> = HashMap::new();
    for info in &snapshot.held {
        for name in info.scope.names() {
            if let Some(other) = holders.insert(name, info.mode) {
                let modes = (other, info.mode);
                assert_eq!(modes, (Mode::Shared, Mode::Shared), "together on {name}: {snapshot:?}");
            }
        }
    }
}

fn random_request(dice: &mut Dice) -> Request {
    const NAMES: [&str; 4] = ["a", "b", "c", "d"];
    let count = 1 + dice.roll(3);
    let scope = Scope::new((0..count).map(|_| NAMES[dice.roll(4)])).expect("at least one name");
    if dice.roll(2) == 0 {
        let waits =
            [Wait::Queue, Wait::Queue, Wait::Queue, Wait::IfAvailable, Wait::Steal, Wait::StealAll];
        Request::exclusive(scope).wait(waits[dice.roll(6)])
    } else {
        let waits = [Wait::Queue, Wait::Queue, Wait::IfAvailable, Wait::Overtake, Wait::Steal];
        Request::shared(scope).wait(waits[dice.roll(5)])
    }
}

fn random_input(
    manager: &mut LockManager,
    dice: &mut Dice,
    clients: &mut [ClientId],
    requests: &mut Vec<RequestId>,
) {
    let at = dice.roll(clients.len());
    let client = clients[at];
    // Old ids are reused on purpose.
    let request = requests.get(dice.roll(requests.len().max(1))).copied();
    match (dice.roll(20), request) {
        (0, _) => {
            manager.terminate(client);
            clients[at] = manager.add_client();
        }
        (1, _) => {
            manager.suspend(client, SuspendPolicy::EvictOnContention);
        }
        (2 | 3, _) => {
            manager.resume(client);
        }
        (4, _) => {
            manager.force_release(&Name::from("a"));
        }
        (5..9, Some(request)) => {
            manager.release(request);
        }
        (9..12, Some(request)) => {
            manager.abort(request);
        }
        // A suspended client is refused, as it should be.
        _ => requests.extend(manager.request(client, random_request(dice)).map(|(id, _)| id)),
    }
}

#[test]
fn f116_snapshot_never_has_an_exclusive_lock_beside_another() {
    let mut dice = Dice::new(116);
    let mut most_held = 0;
    for _ in 0..200 {
        let mut manager = manager();
        let mut clients: Vec<ClientId> = (0..8).map(|_| manager.add_client()).collect();
        let mut requests = Vec::new();
        for step in 0..100 {
            random_input(&mut manager, &mut dice, &mut clients, &mut requests);
            manager.check_invariants();
            // Some events stay unpolled: a snapshot does not depend on polling.
            if step % 3 == 0 {
                while manager.poll_event().is_some() {}
            }
            let looked = manager.snapshot();
            assert_exclusive_means_alone(&looked);
            most_held = most_held.max(looked.held.len());
            if step % 10 == 0 {
                assert_exclusive_means_alone(&manager.query());
            }
        }
    }
    assert!(most_held > 5, "the storm was a breeze: never more than {most_held} held");
}

#[test]
fn f117_m5_query_sees_all_earlier_requests() {
    // No poll is needed in between: inputs take effect in order.
    let mut manager = manager();
    let client = manager.add_client();
    let first = manager.request(client, x("a")).unwrap().0;
    let second = manager.request(client, s("a")).unwrap().0;
    let ids = |snapshot: Snapshot| {
        let of = |infos: Vec<RequestInfo>| {
            infos.into_iter().map(|info| info.request).collect::<Vec<_>>()
        };
        (of(snapshot.held), of(snapshot.pending))
    };
    assert_eq!(ids(manager.query()), (vec![first], vec![second]));
    assert!(manager.release(first));
    assert_eq!(ids(manager.query()), (vec![second], vec![]));
    assert!(manager.release(second));
    assert_eq!(ids(manager.query()), (vec![], vec![]));
}

#[test]
fn f117_snapshot_evicts_no_client() {
    let mut table = Table::new();
    table.holds("asleep", "held", x("a"));
    assert_eq!(table.suspend("asleep", SuspendPolicy::EvictOnContention), NOTHING);
    // `snapshot` is for dashboards; only the standard's `query` counts as contention.
    assert_eq!(table.snapshot().held.len(), 1);
    assert_eq!(table.settle(), NOTHING);
    assert!(table.is_held("held"));
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
    // Requested in the reverse order, and before "m".
    assert_eq!(table.held(), ["m", "z next", "a next"]);
}
