//! Histories that look wrong and prove nothing: a checker that reports them is useless.

use super::handwritten::verdict;

fn assert_clean(story: &str) {
    assert_eq!(verdict(story), [""; 0]);
}

#[test]
fn holders_one_after_the_other_are_clean() {
    assert_clean(
        "
        10 A1 asked exclusive queue x
        20 A1 held 1 r1
        30 A1 releasing
        45 A1 released
        15 B1 asked exclusive queue x
        30 B1 held 2 r2
        50 B1 still
    ",
    );
}

#[test]
fn concurrent_readers_are_clean() {
    assert_clean(
        "
        10 A1 asked shared queue x
        20 A1 held 1 r1
        40 A1 still
        15 B1 asked shared queue x
        30 B1 held 2 r2
        50 B1 still
    ",
    );
}

/// The record does not show whether the client still took its lock for held.
#[test]
fn holder_without_a_second_check_is_clean() {
    assert_clean(
        "
        10 A1 asked exclusive queue x
        20 A1 held 1 r1
        25 A1 still
        40 A1 releasing
        41 A1 lost
        15 B1 asked exclusive queue x
        30 B1 held 2 r2
        50 B1 still
    ",
    );
}

#[test]
fn victim_that_learns_late_of_the_steal_is_clean() {
    assert_clean(
        "
        10 A1 asked exclusive queue x
        20 A1 held 1 r1
        60 A1 still
        65 A1 lost
        25 T1 asked exclusive steal x
        30 T1 held 2 r2
        40 T1 releasing
        41 T1 released
        15 B1 asked exclusive queue x
        45 B1 held 3 r3
        50 B1 still
    ",
    );
}

/// The thief was first in the service, and received its grant first as well.
#[test]
fn grant_received_after_its_theft_is_clean() {
    assert_clean(
        "
        10 A1 asked exclusive queue x
        40 A1 held 1 r1
        60 A1 still
        15 T1 asked exclusive steal x
        30 T1 held 2 r2
        50 T1 still
    ",
    );
}

/// A steal that was granted before the lock was has not taken it.
#[test]
fn earlier_steal_does_not_explain_two_holders() {
    let story = "
        10 A1 asked exclusive queue x
        15 T1 asked exclusive steal x
        20 T1 held 1 r2
        25 T1 releasing
        26 T1 released
        30 A1 held 2 r1
        60 A1 still
        40 B1 asked exclusive queue x
        45 B1 held 3 r3
        50 B1 still
    ";
    assert_eq!(verdict(story).len(), 1);
}

#[test]
fn steal_of_client_killed_before_the_grant_is_clean() {
    let story = |patience| {
        format!(
            "
            10 A1 asked exclusive queue x
            20 A1 held 1 r1
            60 A1 still
            11 T1 asked exclusive steal x
            12 killing T
            13 killed T
            21 B1 asked exclusive queue x
            45 B1 held 3 r3
            50 B1 still
            99 over {patience}
        "
        )
    };
    assert_clean(&story(5));
    // If it had been requested after the steal must have been over, nothing could explain it.
    let later = story(5).replace("10 A1", "19 A1");
    assert_eq!(verdict(&later).len(), 1);
    assert_clean(&story(7).replace("10 A1", "19 A1"));
}

#[test]
fn force_released_name_is_clean() {
    assert_clean(
        "
        10 A1 asked exclusive queue x y
        20 A1 held 1 r1
        60 A1 still
        25 F1 asked exclusive force y
        28 F1 forced
        15 B1 asked exclusive queue x
        45 B1 held 3 r3
        50 B1 still
    ",
    );
}

/// The child of a command may live a moment longer than the command.
#[test]
fn killed_holder_is_clean() {
    assert_clean(
        "
        10 A1 asked exclusive queue x
        20 A1 held 1 r1
        25 killing A
        26 killed A
        31 A1 still
        15 B1 asked exclusive queue x
        30 B1 held 2 r2
        50 B1 still
    ",
    );
}

/// Returns a story of a waiter, a later request that was held first, and an event between them.
fn overtaken(between: &str, wait: &str, id: &str) -> String {
    format!(
        "
        10 A1 asked exclusive queue x
        20 A1 pending 15 r1
        {between}
        25 B1 asked shared {wait} x
        30 B1 held 1 r2
        32 B1 releasing
        33 B1 released
        40 A1 held 2 {id}
        50 A1 still
    "
    )
}

#[test]
fn unknown_orders_are_clean() {
    assert_eq!(verdict(&overtaken("", "queue", "r1")).len(), 1);
    assert_eq!(verdict(&overtaken("", "20", "r1")).len(), 1);
    assert_eq!(verdict(&overtaken("", "if-available", "r1")).len(), 1);
    // It may overtake.
    assert_clean(&overtaken("", "overtake", "r1"));
    assert_clean(&overtaken("", "steal", "r1"));
    // It requested again.
    assert_clean(&overtaken("", "queue", "r3"));
    assert_clean(&overtaken("22 killing service\n 24 answered service", "queue", "r3"));
    assert_clean(&overtaken("22 stopping A\n 24 continued A", "queue", "r3"));
    // It may not have been in the queue before the other request.
    assert_clean(&overtaken("", "queue", "r1").replace("20 A1 pending", "26 A1 pending"));
    // It may have lost its lock to a thief before it received the grant.
    assert_clean(&overtaken("22 T1 asked exclusive steal x\n 45 T1 held 3 r4", "queue", "r1"));
    // Its place outlasts a stop and a restart.
    assert_eq!(verdict(&overtaken("22 stopping A\n 24 continued A", "queue", "r1")).len(), 1);
    let restart = "22 killing service\n 23 killed service\n 24 answered service";
    assert_eq!(verdict(&overtaken(restart, "queue", "r1")).len(), 1);
}

#[test]
fn readers_in_any_order_are_clean() {
    assert_clean(&overtaken("", "queue", "r1").replace("exclusive", "shared"));
    assert_clean(
        &overtaken("", "queue", "r1").replace("asked exclusive queue x", "asked exclusive queue y"),
    );
}

/// Returns a story of a waiter without an answer, and an event that may explain it.
fn waiting(reason: &str) -> String {
    format!(
        "
        15 B1 asked exclusive queue x
        {reason}
        60 over 20
    "
    )
}

#[test]
fn waiters_with_a_possible_blocker_are_clean() {
    assert_eq!(verdict(&waiting("")).len(), 1);
    let lock = "10 A1 asked shared queue x y\n 20 A1 held 1 r1";
    assert_clean(&waiting(lock));
    assert_eq!(verdict(&waiting(&lock.replace('x', "z"))).len(), 1);
    // The lock was released just now.
    assert_clean(&waiting(&format!("{lock}\n 40 A1 releasing\n 41 A1 released")));
    assert_eq!(verdict(&waiting(&format!("{lock}\n 39 A1 releasing\n 40 A1 released"))).len(), 1);
    // Its holder is stopped, or was killed just now.
    assert_clean(&waiting(&format!("{lock}\n 22 stopping A")));
    assert_clean(&waiting(&format!("{lock}\n 40 killing A\n 41 killed A")));
    // It requested just now; or was stopped, or is; or is gone.
    assert_clean(&waiting("").replace("15 B1", "41 B1"));
    assert_clean(&waiting("22 stopping B"));
    assert_clean(&waiting("22 stopping B\n 41 continued B"));
    assert_eq!(verdict(&waiting("22 stopping B\n 40 continued B")).len(), 1);
    assert_clean(&waiting("22 killing B\n 23 killed B"));
    assert_clean(&waiting("22 finished B"));
    // The service is down, or came back just now.
    assert_clean(&waiting("22 killing service"));
    assert_clean(&waiting("22 stopping service\n 41 answered service"));
    assert_eq!(verdict(&waiting("22 stopping service\n 40 answered service")).len(), 1);
    // The history has no end.
    assert_clean(&waiting("").replace("60 over 20", ""));
}

#[test]
fn tokens_of_concurrent_requests_are_clean() {
    assert_clean(
        "
        10 A1 asked exclusive queue x
        20 A1 held 4 r1
        20 B1 asked exclusive queue y
        30 B1 held 3 r2
    ",
    );
}

/// Returns a story of a lost lock, and an event that may explain it.
fn lost(reason: &str, endurance: u64) -> String {
    format!(
        "
        10 A1 asked exclusive queue x y
        20 A1 held 1 r1
        {reason}
        60 A1 lost
        80 over 5 {endurance}
    "
    )
}

#[test]
fn losses_with_a_possible_cause_are_clean() {
    assert_eq!(verdict(&lost("", 20)).len(), 1);
    // No endurance was promised.
    assert_clean(&lost("", 0));
    // It may have been stolen, also by a client that was killed before it received the grant.
    assert_clean(&lost("25 T1 asked exclusive steal y\n 30 T1 held 2 r2", 20));
    assert_clean(&lost("25 T1 asked exclusive force x\n 26 killing T\n 27 killed T", 20));
    assert_eq!(verdict(&lost("25 T1 asked exclusive steal z\n 30 T1 held 2 r2", 20)).len(), 1);
    assert_eq!(verdict(&lost("61 T1 asked exclusive steal x\n 65 T1 held 2 r2", 20)).len(), 1);
    // The client was stopped, the service was down, or both in turn.
    let (stop, restart) = (
        "25 stopping A\n 40 continued A",
        "41 killing service\n 42 killed service\n 50 answered service",
    );
    assert_clean(&lost(stop, 15));
    assert_eq!(verdict(&lost(stop, 16)).len(), 1);
    assert_clean(&lost(restart, 9));
    assert_eq!(verdict(&lost(restart, 10)).len(), 1);
    assert_clean(&lost(&format!("{stop}\n{restart}"), 24));
    assert_eq!(verdict(&lost(&format!("{stop}\n{restart}"), 25)).len(), 1);
    // Shortly before its request; or long before.
    assert_clean(&lost("1 stopping A\n 7 continued A", 5));
    assert_eq!(verdict(&lost("1 stopping A\n 4 continued A", 3)).len(), 1);
}
