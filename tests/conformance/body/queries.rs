//! Queries: holders and waiters, their ages, and their blockers.

use std::time::{Duration, Instant};

use navlocks::{Blockers, Mode, Scope};

use super::start;
use crate::backend::Backend;
use crate::patience::{eventually, soon};
use crate::task::Task;
use crate::watch::{caught_up, hold, queue, shows};

/// The precision of an age, and more: "a few milliseconds".
const EXACT: Duration = Duration::from_millis(30);

#[test]
fn query_has_all_facts_of_locks_and_requests() {
    let arm = start();
    let [holder, waiter] = arm.clients();
    let lock = hold(holder.request(["b", "a"]).shared(), "reading");
    let _request = queue(&waiter, waiter.request("a"), "writing");
    let now = shows(&waiter, ["reading"], ["writing"]);
    let held = &now.held[0];
    assert_eq!(held.request, lock.request_id());
    assert_eq!(held.client, holder.client_id());
    assert_eq!((&held.scope, held.mode), (&Scope::from(["a", "b"]), Mode::Shared));
    assert_eq!(held.token, Some(lock.fencing_token()));
    let pending = &now.pending[0];
    assert_ne!(pending.request, lock.request_id());
    assert_eq!(pending.client, waiter.client_id());
    assert_eq!((&pending.scope, pending.mode), (&Scope::from("a"), Mode::Exclusive));
    assert_eq!(pending.token, None);
}

#[test]
fn tag_is_shown_from_the_queue_to_the_end_and_is_not_inherited() {
    let arm = start();
    let [first, second] = arm.clients();
    let plain = soon(first.request("a")).unwrap();
    let tagged = queue(&second, second.request("a"), "tagged");
    let now = caught_up(&second);
    assert_eq!(now.held[0].tag, None);
    assert_eq!(now.pending[0].tag.as_deref(), Some("tagged"));
    drop(plain);
    let tagged = tagged.join().unwrap();
    shows(&second, ["tagged"], []);
    drop(tagged);
    // The next request has no tag unless it sets one.
    let plain = soon(second.request("a")).unwrap();
    assert_eq!(caught_up(&second).held[0].tag, None);
    drop(plain);
    let spoken = soon(second.request("a").if_available().tag("with a word")).unwrap();
    shows(&second, ["with a word"], []);
    drop(spoken);
}

#[test]
fn ended_request_leaves_no_tag_to_the_next() {
    let arm = start();
    let [holder, locks] = arm.clients();
    let request = || locks.request("a").tag("tagged");
    let ends: [(&str, &dyn Fn()); 6] = [
        ("unavailable", &|| assert!(soon(request().if_available()).unwrap().is_none())),
        ("timed out", &|| assert!(soon(request().timeout(Duration::from_millis(1))).is_err())),
        ("out of time", &|| assert!(soon(request().timeout(Duration::ZERO)).is_err())),
        ("dropped", &|| drop(queue(&locks, request(), "tagged"))),
        ("released", &|| drop(hold(locks.request("b"), "tagged"))),
        ("lost", &|| {
            let _lost = hold(locks.request("b"), "tagged");
            assert_eq!(soon(locks.force_release("b")), Ok(1));
        }),
    ];
    let _held = hold(holder.request("a"), "holder");
    for (end, come_to) in ends {
        come_to();
        let next = Task::start(locks.request("a"));
        let now = caught_up(&locks);
        assert_eq!(now.pending.len(), 1);
        assert_eq!(now.pending[0].tag, None, "left by one that was {end}");
        drop(next);
        let _held = soon(locks.request("b")).unwrap();
        assert_eq!(caught_up(&locks).held[1].tag, None, "left by one that was {end}");
    }
}

#[test]
fn held_locks_are_in_the_order_of_their_grants_and_requests_in_that_of_the_queue() {
    let arm = start();
    let [one, two] = arm.clients();
    let first = hold(one.request("z"), "1st");
    let second = hold(two.request("a"), "2nd");
    let third = hold(one.request("m"), "3rd");
    let p1 = queue(&two, two.request("z"), "4th");
    let p2 = queue(&one, one.request("a"), "5th");
    let p3 = queue(&two, two.request("m").shared(), "6th");
    shows(&two, ["1st", "2nd", "3rd"], ["4th", "5th", "6th"]);
    // A lock is listed by its grant, not by its request.
    drop(third);
    shows(&one, ["1st", "2nd", "6th"], ["4th", "5th"]);
    drop(first);
    shows(&one, ["2nd", "6th", "4th"], ["5th"]);
    drop((second, p1, p2, p3));
}

#[test]
fn query_sees_earlier_requests_of_the_same_client() {
    let arm = start();
    let [holder, locks] = arm.clients();
    let _held = hold(holder.request("a"), "holder");
    for _ in 0..50 {
        let request = Task::start(locks.request("a"));
        assert_eq!(caught_up(&locks).pending.len(), 1);
        drop(request);
        assert_eq!(caught_up(&locks).pending.len(), 0);
    }
}

#[test]
fn snapshot_is_a_copy() {
    let arm = start();
    let locks = arm.client();
    let lock = hold(locks.request("a"), "held");
    let then = shows(&locks, ["held"], []);
    drop(lock);
    shows(&locks, [], []);
    assert_eq!(then.held[0].scope, Scope::from("a"));
    assert_eq!(then.clone().held.len(), 1);
}

#[test]
fn age_grows_and_restarts_at_the_grant() {
    let arm = start();
    let [holder, waiter] = arm.clients();
    let started = Instant::now();
    let lock = hold(holder.request("a"), "holder");
    let request = queue(&waiter, waiter.request("a"), "waiter");
    // Long enough to differ from "just now".
    let long = EXACT * 4;
    eventually(|| {
        let now = caught_up(&waiter);
        let (held, pending) = (now.held[0].age, now.pending[0].age);
        assert!(pending <= held + EXACT, "a request made later is older: {pending:?}, {held:?}");
        assert!(held <= started.elapsed() + EXACT, "older than the test: {held:?}");
        if pending >= long { Ok(()) } else { Err(format!("it is only {pending:?} old")) }
    });
    let granted = Instant::now();
    drop(lock);
    let lock = request.join().unwrap();
    let age = caught_up(&waiter).held[0].age;
    assert!(age <= granted.elapsed() + EXACT, "held for {age:?} already");
    drop(lock);
}

#[test]
fn blockers_are_the_locks_and_requests_in_the_way() {
    let arm = start();
    let [one, two, three] = arm.clients();
    let a = hold(one.request("a").shared(), "S a");
    let b = hold(two.request("b"), "X b");
    let _first = queue(&three, three.request("a"), "X a");
    let _second = queue(&one, one.request(["a", "b"]).shared(), "S ab");
    let free = hold(two.request("c"), "X c");
    let now = shows(&two, ["S a", "X b", "X c"], ["X a", "S ab"]);
    let [first, second] = [now.pending[0].request, now.pending[1].request];
    // Any client may ask about any request.
    let asked = soon(two.blockers(first)).unwrap();
    assert_eq!(asked, Blockers { hard: vec![a.request_id()], soft: vec![] });
    let asked = soon(two.blockers(second)).unwrap();
    assert_eq!(asked, Blockers { hard: vec![b.request_id()], soft: vec![first] });
    let asked = soon(one.blockers(free.request_id())).unwrap();
    assert_eq!(asked, Blockers::default());
}

#[test]
fn granted_or_finished_request_has_no_blockers() {
    let arm = start();
    let [holder, locks] = arm.clients();
    let lock = hold(holder.request("a"), "holder");
    let request = queue(&locks, locks.request("a"), "request");
    let id = shows(&locks, ["holder"], ["request"]).pending[0].request;
    assert_eq!(soon(locks.blockers(id)).unwrap().hard, [lock.request_id()]);
    drop(lock);
    let granted = request.join().unwrap();
    assert_eq!(granted.request_id(), id);
    assert_eq!(soon(locks.blockers(id)).unwrap(), Blockers::default());
    drop(granted);
    assert_eq!(soon(locks.blockers(id)).unwrap(), Blockers::default());
}
