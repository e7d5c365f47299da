//! Elections: candidates, their terms and values, and observers.

use navlocks::{Leader, QueryError};

use super::start;
use crate::backend::Backend;
use crate::patience::soon;
use crate::task::Task;
use crate::watch::shows;

/// Returns the value of a leader.
fn value(leader: Option<&Leader>) -> Option<&str> {
    leader.map(|leader| &*leader.value)
}

#[test]
fn e01_candidates_lead_in_order_with_growing_terms() {
    let arm = start();
    let [one, two, three] = arm.clients();
    let first = soon(one.elect("x", "one")).unwrap();
    let mut second = Task::start(two.elect("x", "two"));
    assert!(!second.poll());
    shows(&two, ["one"], ["two"]);
    let mut third = Task::start(three.elect("x", "three"));
    assert!(!third.poll());
    shows(&three, ["one"], ["two", "three"]);
    let term = first.term();
    assert_eq!(first.resign(), Ok(()));
    let second = second.join().unwrap();
    assert!(second.term() > term);
    drop(second);
    let third = third.join().unwrap();
    assert_eq!((third.loss(), third.scope().to_string()), (None, "x".to_owned()));
    // Another name has a leader of its own.
    drop(soon(one.elect("y", "one")).unwrap());
}

#[test]
fn e02_observer_sees_each_leader_once_with_term_and_value() {
    let arm = start();
    let [one, two, observer] = arm.clients();
    let mut leaders = observer.leaders("x");
    assert_eq!(soon(leaders.next()), Ok(None));
    let first = soon(one.elect("x", "one")).unwrap();
    let seen = soon(leaders.next()).unwrap().unwrap();
    let expected = ("one", first.term(), one.client_id());
    assert_eq!((&*seen.value, seen.term, seen.client), expected);
    assert_eq!(seen.to_string(), format!("one in term {}", first.term()));
    // An observer that comes later sees the same leader; others are none of its concern.
    let mut late = two.leaders("x");
    assert_eq!(soon(late.next()), Ok(Some(seen)));
    drop(soon(two.elect("y", "other")).unwrap());
    drop(soon(two.request("x").if_available()).unwrap());
    assert_eq!(first.resign(), Ok(()));
    drop(soon(two.request("x").shared()).unwrap());
    let second = soon(two.elect("x", "two")).unwrap();
    for leaders in [&mut leaders, &mut late] {
        assert_eq!(soon(leaders.next()), Ok(None));
        assert_eq!(value(soon(leaders.next()).unwrap().as_ref()), Some("two"));
    }
    // A steal: the new leader follows without a moment between.
    let thief = soon(one.request("x").steal().tag("thief")).unwrap();
    drop(second);
    loop {
        let leader = soon(leaders.next()).unwrap();
        if leader.is_some() {
            assert_eq!(value(leader.as_ref()), Some("thief"));
            break;
        }
    }
    drop(thief);
    observer.end_client();
    while let Ok(leader) = soon(leaders.next()) {
        assert_eq!(leader, None);
    }
    assert_eq!(soon(leaders.next()), Err(QueryError::ClientEnded));
}

#[test]
fn e03_leader_that_is_robbed_learns_it_and_its_term_is_over() {
    let arm = start();
    let [one, two] = arm.clients();
    let leader = soon(one.elect("x", "one")).unwrap();
    assert_eq!(soon(two.force_release("x")), Ok(1));
    let loss = soon(leader.lost());
    let next = soon(two.elect("x", "two")).unwrap();
    assert!(next.term() > leader.term());
    assert_eq!(leader.resign(), Err(loss));
}

#[test]
fn e04_dropped_campaign_leaves_the_queue() {
    let arm = start();
    let [one, two] = arm.clients();
    let leader = soon(one.elect("x", "one")).unwrap();
    let mut campaign = Task::start(two.elect("x", "two"));
    assert!(!campaign.poll());
    shows(&two, ["one"], ["two"]);
    drop(campaign);
    shows(&two, ["one"], []);
    drop(leader);
}
