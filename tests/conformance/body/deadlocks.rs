//! Locks that wait for each other, under each policy.

use navlocks::EventKind;
use navlocks::{DeadlockPolicy, Locks, RequestError, RequestErrorKind};

use super::Arm;
use crate::backend::Backend;
use crate::patience::soon;
use crate::task::Task;
use crate::watch::{caught_up, hold, queue, received, shows, subscribe, words};

use DeadlockPolicy::{Ignore, Refuse, Report};

#[test]
fn b01_default_policy_keeps_the_cycle_and_the_query_reports_it() {
    let arm = Arm::start(Ignore);
    let [one, two, other] = arm.clients();
    let a = hold(one.request("a"), "a");
    let b = hold(two.request("b"), "b");
    let wants_b = queue(&one, a.request("b"), "wants b");
    assert_eq!(soon(one.deadlocks()).unwrap(), []);
    let mut events = subscribe(&two);
    let wants_a = queue(&two, b.request("a"), "wants a");
    assert_eq!(words(&received(&two, &mut events)), ["wants a requested"]);
    let now = shows(&other, ["a", "b"], ["wants b", "wants a"]);
    let cycles = soon(other.deadlocks()).unwrap();
    assert_eq!(cycles.len(), 1);
    let mut clients = [one.client_id(), two.client_id()];
    clients.sort();
    assert_eq!(cycles[0].clients(), clients);
    let mut requests: Vec<_> =
        now.held.iter().chain(&now.pending).map(|info| info.request).collect();
    requests.sort();
    assert_eq!(cycles[0].requests(), requests);
    // Other clients are not affected.
    drop(soon(other.request("c")).unwrap());
    // Releasing a lock or aborting a request of the cycle ends it.
    drop(wants_a);
    caught_up(&two);
    assert_eq!(soon(other.deadlocks()).unwrap(), []);
    drop(b);
    drop(wants_b.join().unwrap());
    drop(a);
}

#[test]
fn b01_report_policy_reports_the_closing_request_which_waits() {
    let arm = Arm::start(Report);
    let [one, two] = arm.clients();
    let a = hold(one.request("a"), "a");
    let b = hold(two.request("b"), "b");
    let mut events = subscribe(&two);
    let _wants_b = queue(&one, a.request("b"), "wants b");
    let wants_a = queue(&two, b.request("a"), "wants a");
    let seen = received(&two, &mut events);
    let expected = ["wants b requested", "wants a requested", "wants a deadlocked"];
    assert_eq!(words(&seen), expected);
    let EventKind::Deadlock(cycle) = &seen[2].kind else { panic!("{:?}", seen[2]) };
    assert_eq!(cycle.clients().len(), 2);
    assert!(cycle.requests().contains(&a.request_id()));
    assert_eq!(soon(one.deadlocks()).unwrap(), std::slice::from_ref(cycle));
    shows(&one, ["a", "b"], ["wants b", "wants a"]);
    drop(a);
    drop(wants_a.join().unwrap());
    drop(b);
}

#[test]
fn b01_refuse_policy_refuses_the_closing_request_with_the_cycle() {
    let arm = Arm::start(Refuse);
    let [one, two] = arm.clients();
    let a = hold(one.request("a"), "a");
    let b = hold(two.request("b"), "b");
    let wants_b = queue(&one, a.request("b"), "wants b");
    let error = soon(b.request("a").tag("refused")).unwrap_err();
    let RequestErrorKind::Deadlock(cycle) = error.kind() else { panic!("{error}") };
    let mut clients = [one.client_id(), two.client_id()];
    clients.sort();
    assert_eq!(cycle.clients(), clients);
    let text = error.to_string();
    let waiting = shows(&two, ["a", "b"], ["wants b"]).pending[0].request;
    for client in clients {
        assert!(text.contains(&client.to_string()), "{client} is not in: {text}");
    }
    for request in [a.request_id(), b.request_id(), waiting] {
        assert!(cycle.requests().contains(&request), "{request:?} is not in {cycle:?}");
        assert!(text.contains(&request.to_string()), "{request} is not in: {text}");
    }
    assert_eq!(error.dom_exception_name(), "AbortError");
    // The other requests continue as if it had never been made.
    drop(b);
    drop(wants_b.join().unwrap());
}

#[test]
fn refused_request_leaves_no_trace() {
    let arm = Arm::start(Refuse);
    let [one, two, other] = arm.clients();
    let a = hold(one.request("a"), "a");
    let b = hold(two.request("b").shared(), "b");
    let mut contended = Task::start(a.contended());
    let wants_b = queue(&one, a.request("b"), "wants b");
    let mut events = subscribe(&other);
    let refused = soon(b.request("a").tag("refused")).unwrap_err();
    assert!(matches!(refused.kind(), RequestErrorKind::Deadlock(_)));
    shows(&two, ["a", "b"], ["wants b"]);
    // No request blocked another one at any moment.
    caught_up(&one);
    assert!(!contended.poll());
    drop(contended);
    assert_eq!(soon(other.deadlocks()).unwrap(), []);
    let seen = words(&received(&other, &mut events));
    assert_eq!(seen, ["refused requested", "refused deadlocked", "refused withdrawn"]);
    drop(b);
    drop(wants_b.join().unwrap());
    drop(a);
}

/// Makes three clients, each holding the lock that the one before wants; the last request closes
/// the cycle.
fn ring(clients: &[Locks; 3]) -> Result<(), RequestError> {
    let names = ["a", "b", "c"];
    let held: Vec<_> =
        clients.iter().zip(names).map(|(client, name)| hold(client.request(name), name)).collect();
    let _first = queue(&clients[0], held[0].request("b"), "a wants b");
    let _second = queue(&clients[1], held[1].request("c"), "b wants c");
    soon(held[2].request("a")).map(drop)
}

#[test]
fn refuse_policy_refuses_a_cycle_of_three() {
    let arm = Arm::start(Refuse);
    let clients: [_; 3] = arm.clients();
    let refused = ring(&clients).expect_err("it closes a cycle");
    let RequestErrorKind::Deadlock(cycle) = refused.kind() else { panic!("{refused}") };
    assert_eq!(cycle.clients().len(), 3);
    assert_eq!(cycle.requests().len(), 6);
}

#[test]
fn b02_client_that_waits_for_itself_is_not_refused() {
    let arm = Arm::start(Refuse);
    let [server, other] = arm.clients();
    let mut events = subscribe(&other);
    let first = hold(server.request("key"), "first");
    let between = queue(&other, other.request("key"), "between");
    let second = queue(&server, server.request("key"), "second");
    assert_eq!(soon(other.deadlocks()).unwrap(), []);
    drop(first);
    drop(between.join().unwrap());
    drop(second.join().unwrap());
    let seen = words(&received(&other, &mut events));
    assert!(!seen.iter().any(|event| event.contains("deadlock")), "{seen:?}");
}

#[test]
fn request_that_closes_no_cycle_is_not_refused() {
    let arm = Arm::start(Refuse);
    let [one, two] = arm.clients();
    let a = hold(one.request("a"), "a");
    let b = hold(two.request("b"), "b");
    let wants_b = queue(&one, one.request("b"), "wants b");
    // These requests do not wait, whatever blocks them.
    assert!(soon(two.request("a").if_available()).unwrap().is_none());
    let timed_out = soon(two.request("a").timeout(std::time::Duration::ZERO)).unwrap_err();
    assert!(matches!(timed_out.kind(), RequestErrorKind::TimedOut { .. }));
    let shared = hold(two.request("c").shared(), "c");
    let stolen = hold(two.request("a").steal(), "stolen");
    drop((a, b, shared, stolen));
    drop(wants_b.join().unwrap());
}

#[test]
fn requests_for_whole_scopes_cannot_deadlock() {
    let arm = Arm::start(Refuse);
    std::thread::scope(|scope| {
        for order in [["a", "b"], ["b", "a"]] {
            let locks = arm.client();
            scope.spawn(move || {
                for _ in 0..Arm::ROUNDS / 10 {
                    drop(soon(locks.request(order)).unwrap());
                }
            });
        }
    });
}

#[test]
fn b02_cycle_of_clients_within_no_lock_is_possible_and_not_refused() {
    let arm = Arm::start(Refuse);
    let [one, two] = arm.clients();
    let a = hold(one.request("a"), "a");
    let b = hold(two.request("b"), "b");
    let wants_b = queue(&one, one.request("b"), "wants b");
    let wants_a = queue(&two, two.request("a"), "wants a");
    let cycles = soon(one.deadlocks()).unwrap();
    assert_eq!((cycles.len(), cycles[0].is_certain(), cycles[0].requests().len()), (1, false, 4));
    drop(a);
    drop(wants_a.join().unwrap());
    drop(b);
    drop(wants_b.join().unwrap());
}

#[test]
fn b04_request_that_waits_for_its_own_outer_lock_fails_at_once_and_names_it() {
    for policy in [Ignore, Refuse] {
        let arm = Arm::start(policy);
        let [one] = arm.clients();
        let outer = hold(one.request("a"), "outer");
        let between = hold(outer.request("b"), "between");
        let error = soon(between.request("a")).unwrap_err();
        let RequestErrorKind::Deadlock(cycle) = error.kind() else { panic!("{error}") };
        assert_eq!(cycle.outer(), Some(outer.request_id()));
        assert!(error.to_string().contains(&outer.request_id().to_string()), "{error}");
        // Others wait for it as before, and a task that names no lock does.
        let beside = queue(&one, one.request("a"), "beside");
        assert_eq!(soon(one.query()).unwrap().held[1].within, Some(outer.request_id()));
        drop((between, outer));
        drop(beside.join().unwrap());
    }
}

#[test]
fn b06_reentrant_request_works_under_its_outer_lock() {
    let arm = Arm::start(Refuse);
    let [one] = arm.clients();
    let outer = hold(one.request(["a", "b"]).shared(), "outer");
    let inner = soon(outer.request("a").shared().reentrant(&outer)).unwrap();
    assert_eq!(inner.request_id(), outer.request_id());
    drop(inner);
    assert_eq!(outer.loss(), None, "the outer lock is still held");
    // A stricter mode and further names need a lock of their own.
    let error = soon(outer.request("a").reentrant(&outer)).unwrap_err();
    assert!(matches!(error.kind(), RequestErrorKind::Deadlock(_)), "{error}");
    let other = soon(outer.request("c").reentrant(&outer)).unwrap();
    assert_ne!(other.request_id(), outer.request_id());
    let ran = outer.request("b").shared().reentrant(&outer).with(async |lock| lock.request_id());
    assert_eq!(soon(ran), Ok(outer.request_id()));
}

#[test]
fn b06_reentrant_request_joins_no_lock_of_another_space() {
    let arm = Arm::start(Refuse);
    let [one] = arm.clients();
    let outer = hold(one.request("a"), "outer");
    let beside = one.partition("beside");
    let own = soon(beside.request("a").reentrant(&outer)).unwrap();
    assert_eq!(soon(beside.query()).unwrap().held[0].request, own.request_id());
    // It is within no lock there, so another request waits as usual.
    let next = queue(&beside, beside.request("a"), "next");
    drop(own);
    drop(next.join().unwrap());
}
