//! Limits: semaphores by the same rule, and downgrades.

use navlocks_core::{
    BadLimit, DowngradeError, Limit, Mode, Request, RequestError, Scope, SuspendPolicy, Wait,
};

use crate::support::{NOTHING, Table, s, x};

/// Makes a request that allows so many holders and queues.
fn l(holders: u32, scope: impl Into<Scope>) -> Request {
    x(scope).mode(limited(holders))
}

fn limited(holders: u32) -> Mode {
    Mode::limited(holders).expect("a limit")
}

impl Table {
    fn downgrade(&mut self, request: &str, mode: Mode) -> Result<Vec<String>, DowngradeError> {
        let before = self.manager.state(self.id(request));
        self.manager.downgrade(self.id(request), mode)?;
        assert_eq!(self.manager.state(self.id(request)), before, "the token stays");
        Ok(self.settle())
    }
}

#[test]
fn l01_as_many_as_the_limit_hold_and_a_release_grants_the_head() {
    let mut table = Table::new();
    for request in ["one", "two", "three"] {
        table.holds(request, request, l(3, "a"));
    }
    table.waits("C4", "four", l(3, "a"));
    table.waits("C5", "five", l(3, "a"));
    assert_eq!(table.release("two"), ["granted four"]);
    assert_eq!(table.release("one"), ["granted five"]);
    assert_eq!(table.release("three"), NOTHING);
    assert_eq!(table.held(), ["four", "five"]);
}

#[test]
fn l02_limit_of_one_is_exclusive() {
    assert_eq!(Mode::limited(1), Ok(Mode::Exclusive));
    assert_eq!(Mode::Exclusive.limit(), Some(1));
    assert_eq!(Mode::Shared.limit(), None);
}

#[test]
fn l03_smaller_limit_waits_until_there_is_one_place_and_is_not_overtaken() {
    let mut table = Table::new();
    for request in ["one", "two", "three", "four"] {
        table.holds(request, request, l(4, "a"));
    }
    table.waits("C5", "pair", l(2, "a"));
    table.waits("C6", "behind", l(4, "a"));
    for request in ["one", "two"] {
        assert_eq!(table.release(request), NOTHING);
    }
    assert_eq!(table.release("three"), ["granted pair"]);
    assert_eq!(table.release("four"), ["granted behind"]);
}

#[test]
fn l04_holder_with_a_limit_keeps_others_out_whatever_their_limits() {
    let mut table = Table::new();
    table.holds("C1", "pair", l(2, "a"));
    table.holds("C2", "reader", s("a"));
    table.waits("C3", "third", s("a"));
    table.waits("C4", "fourth", l(9, "a"));
    assert_eq!(table.release("pair"), ["granted third", "granted fourth"]);
}

#[test]
fn l05_exclusive_request_between_limited_ones_waits_for_all_and_blocks_all() {
    let mut table = Table::new();
    table.holds("C1", "one", l(3, "a"));
    table.holds("C2", "two", l(3, "a"));
    table.waits("C3", "writer", x("a"));
    table.waits("C4", "behind", l(3, "a"));
    assert_eq!(table.release("one"), NOTHING);
    assert_eq!(table.release("two"), ["granted writer"]);
    assert_eq!(table.release("writer"), ["granted behind"]);
}

#[test]
fn l06_scope_with_a_limit_holds_all_names_or_none_and_takes_a_place_on_each() {
    let mut table = Table::new();
    table.holds("C1", "writer", x("a"));
    table.waits("C2", "both", l(2, ["a", "b"]));
    table.holds("C3", "other", l(2, "b"));
    // The place that the scope takes on the free name counts.
    table.waits("C4", "third", l(2, "b"));
    assert_eq!(table.release("writer"), ["granted both"]);
    assert_eq!(table.release("other"), ["granted third"]);
}

#[test]
fn l07_end_in_the_middle_grants_those_that_fit_in_queue_order() {
    let mut table = Table::new();
    table.holds("C1", "one", l(3, "a"));
    table.waits("C2", "writer", x("a"));
    for request in ["two", "three", "four"] {
        table.waits(request, request, l(3, "a"));
    }
    assert_eq!(table.abort("writer"), ["granted two", "granted three"]);
    assert_eq!(table.terminate("two"), ["granted four"]);
    table.waits("C5", "five", s("a"));
    // A client that another one would wait for is evicted when it is suspended.
    let evicted = ["evicted C1", "granted five"];
    assert_eq!(table.suspend("C1", SuspendPolicy::EvictOnContention), evicted);
}

#[test]
fn l08_if_available_with_a_limit_is_answered_by_the_rule() {
    let mut table = Table::new();
    let attempt = |holders| l(holders, "a").wait(Wait::IfAvailable);
    table.holds("C1", "one", attempt(2));
    table.holds("C2", "two", attempt(3));
    assert_eq!(table.request("C3", "three", attempt(3)), ["unavailable three"]);
    table.release("one");
    table.holds("C3", "again", attempt(2));
    table.release("again");
    table.release("two");
    for reader in ["R1", "R2", "R3"] {
        table.holds(reader, reader, s("a"));
    }
    assert_eq!(table.request("C4", "three too", attempt(3)), ["unavailable three too"]);
    table.holds("C4", "four", attempt(4));
}

#[test]
fn l09_steal_with_a_limit_takes_all_holders_and_the_queue_keeps_its_order() {
    let mut table = Table::new();
    table.holds("C1", "one", l(2, "a"));
    table.holds("C2", "two", l(2, "a"));
    table.waits("C3", "three", l(2, "a"));
    table.waits("C4", "four", l(2, "a"));
    let events = table.request("C5", "thief", l(2, "a").wait(Wait::Steal));
    let lost = ["lost one: stolen by thief", "lost two: stolen by thief"];
    assert_eq!(events[..2], lost);
    assert_eq!(events[2..], ["granted thief", "granted three"]);
    assert_eq!(table.pending(), ["four"]);
}

#[test]
fn l09_steal_before_requests_that_were_clear_keeps_their_order() {
    let mut table = Table::new();
    table.holds("C1", "writer", x("b"));
    table.waits("C2", "both", l(3, ["a", "b"]));
    table.holds("C3", "reader", s("a"));
    table.waits("C4", "late", l(3, ["a", "b"]));
    // An overtaker stands before both, although it came last.
    table.holds("C5", "overtaker", s("a").wait(Wait::Overtake));
    let events = table.request("C6", "thief", l(2, "a").wait(Wait::Steal));
    assert_eq!(events.last().map(String::as_str), Some("granted thief"));
    assert_eq!(table.pending(), ["both", "late"]);
    assert_eq!(table.release("writer"), ["granted both"]);
    assert_eq!(table.release("thief"), ["granted late"]);
}

#[test]
fn l10_forced_release_takes_all_holders_or_one() {
    let mut table = Table::new();
    for request in ["one", "two"] {
        table.holds(request, request, l(2, "a"));
    }
    table.waits("C3", "three", l(2, "a"));
    table.waits("C4", "four", l(2, "a"));
    assert!(table.manager.force_release_one(table.id("two")));
    assert_eq!(table.settle(), ["lost two: force-released", "granted three"]);
    let (count, events) = table.force_release("a");
    assert_eq!(count, 2);
    assert_eq!(events.last().map(String::as_str), Some("granted four"));
}

#[test]
fn l11_snapshot_shows_limits() {
    let mut table = Table::new();
    table.holds("C1", "one", l(4, "a"));
    table.holds("C2", "two", s("a"));
    let modes: Vec<Mode> = table.snapshot().held.iter().map(|info| info.mode).collect();
    assert_eq!(modes, [limited(4), Mode::Shared]);
    assert_eq!(modes[0].to_string(), "limit 4");
}

#[test]
fn l13_number_that_is_no_limit_is_refused() {
    for number in [0, Limit::MAX + 1, u32::MAX] {
        assert_eq!(Mode::limited(number), Err(BadLimit(number)));
    }
    assert_eq!(limited(Limit::MAX).limit(), Some(Limit::MAX));
    let mut table = Table::new();
    table.holds("C1", "most", l(Limit::MAX, "a"));
    assert_eq!(table.snapshot().held[0].mode.limit(), Some(Limit::MAX));
    let overtaking = l(2, "a").wait(Wait::Overtake);
    assert_eq!(table.refusal("C1", overtaking), RequestError::ExclusiveOvertake);
}

#[test]
fn l15_waiter_behind_a_limit_is_blocked_by_all_that_it_counts() {
    let mut table = Table::new();
    table.holds("C1", "pair", l(2, "a"));
    table.holds("C2", "reader", s("a"));
    table.waits("C3", "next", s("a"));
    let blockers = (vec!["pair".to_owned(), "reader".to_owned()], Vec::new());
    assert_eq!(table.blockers("next"), blockers);
    // The wait ends when either holder ends, so one holder that waits for the waiter is no cycle.
    table.holds("C3", "other", x("b"));
    table.waits("C1", "crossed", x("b"));
    assert!(table.deadlocked_clients().is_empty());
}

#[test]
fn w01_downgrade_to_shared_grants_readers_at_the_head_and_no_writer() {
    let mut table = Table::new();
    table.holds("C1", "lock", x("a"));
    for reader in ["R1", "R2"] {
        table.waits(reader, reader, s("a"));
    }
    table.waits("C3", "writer", x("a"));
    table.waits("C4", "behind", s("a"));
    assert_eq!(
        table.downgrade("lock", Mode::Shared),
        Ok(vec!["granted R1".to_owned(), "granted R2".to_owned()])
    );
    assert_eq!(table.pending(), ["writer", "behind"]);
}

#[test]
fn w02_downgrade_to_a_larger_limit_grants_those_that_fit_and_to_a_smaller_one_is_refused() {
    let mut table = Table::new();
    table.holds("C1", "lock", x("a"));
    for request in ["one", "two", "three"] {
        table.waits(request, request, l(4, "a"));
    }
    assert_eq!(table.downgrade("lock", limited(2)), Ok(vec!["granted one".to_owned()]));
    assert_eq!(table.downgrade("lock", limited(3)), Ok(vec!["granted two".to_owned()]));
    for stricter in [limited(2), Mode::Exclusive] {
        assert_eq!(table.downgrade("lock", stricter), Err(DowngradeError::Upgrade));
    }
    assert_eq!(table.downgrade("lock", Mode::Shared), Ok(vec!["granted three".to_owned()]));
    assert_eq!(table.downgrade("lock", Mode::Shared), Ok(Vec::new()));
}

#[test]
fn w03_downgrade_without_a_lock_is_an_error() {
    let mut table = Table::new();
    table.holds("C1", "lock", x("a"));
    table.waits("C2", "pending", x("a"));
    assert_eq!(table.downgrade("pending", Mode::Shared), Err(DowngradeError::NotHeld));
    table.release("lock");
    assert_eq!(table.downgrade("lock", Mode::Shared), Err(DowngradeError::NotHeld));
    table.force_release("a");
    assert_eq!(table.downgrade("pending", Mode::Shared), Err(DowngradeError::NotHeld));
}

#[test]
fn w05_scope_downgrades_on_all_its_names() {
    let mut table = Table::new();
    table.holds("C1", "lock", x(["a", "b"]));
    table.waits("C2", "reader", s(["a", "b"]));
    table.waits("C3", "alone", s("b"));
    assert_eq!(
        table.downgrade("lock", Mode::Shared),
        Ok(vec!["granted reader".to_owned(), "granted alone".to_owned()])
    );
}
