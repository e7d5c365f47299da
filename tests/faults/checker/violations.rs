//! The shortest histories that prove each violation.

use super::handwritten::verdict;

#[test]
fn two_holders_of_one_name_are_found() {
    let story = "
        10 A1 asked exclusive queue x
        20 A1 held 1 r1
        40 A1 still
        15 B1 asked exclusive queue x
        30 B1 held 2 r2
        50 B1 still
    ";
    let expected = "two holders of x: A#1 and B#1 from 0.000000030 s to 0.000000040 s";
    assert_eq!(verdict(story), [expected]);
}

#[test]
fn reader_beside_writer_of_a_scope_is_found() {
    let story = "
        10 A1 asked exclusive queue w x
        20 A1 held 1 r1
        35 A1 releasing
        45 A1 released
        15 B1 asked shared queue x y
        30 B1 held 2 r2
        50 B1 still
        15 C1 asked shared queue y
        30 C1 held 3 r3
        50 C1 still
    ";
    let expected = "two holders of x: A#1 and B#1 from 0.000000030 s to 0.000000035 s";
    assert_eq!(verdict(story), [expected]);
}

/// A holder that was stopped beyond its lease, continues, and still takes the lock for held.
#[test]
fn holder_beyond_its_lease_is_found() {
    let story = "
        10 A1 asked exclusive queue x
        20 A1 held 1 r1
        22 stopping A
        60 continued A
        61 A1 still
        65 A1 lost
        15 B1 asked exclusive queue x
        30 B1 held 2 r2
        50 B1 still
    ";
    let expected = "two holders of x: A#1 and B#1 from 0.000000030 s to 0.000000050 s";
    assert_eq!(verdict(story), [expected]);
}

#[test]
fn holder_from_before_a_restart_is_found() {
    let story = "
        10 A1 asked exclusive queue x
        20 A1 held 1 r1
        40 A1 still
        22 killing service
        23 killed service
        25 answered service
        26 B1 asked exclusive queue x
        30 B1 held 2 r1
        50 B1 still
    ";
    assert_eq!(verdict(story).len(), 1);
    assert!(verdict(story)[0].starts_with("two holders of x"));
}

#[test]
fn later_request_held_first_is_found() {
    let story = "
        10 A1 asked exclusive queue x
        20 A1 pending 15 r1
        25 B1 asked shared queue x
        30 B1 held 1 r2
        32 B1 releasing
        33 B1 released
        40 A1 held 2 r1
        50 A1 still
    ";
    let expected = "out of turn on x: A#1 was in the queue at 0.000000020 s, B#1 asked later and was held at 0.000000030 s, before it";
    assert_eq!(verdict(story), [expected]);
}

/// The same if the other request is never granted.
#[test]
fn later_request_held_while_the_first_waits_is_found() {
    let story = "
        10 A1 asked exclusive queue x y
        20 A1 pending 15 r1
        25 B1 asked exclusive if-available y
        30 B1 held 1 r2
        40 A1 pending 35 r1
        50 A1 withdrawn
    ";
    let expected = "out of turn on y: A#1 was in the queue at 0.000000020 s, B#1 asked later and was held at 0.000000030 s, before it";
    assert_eq!(verdict(story), [expected]);
}

#[test]
fn waiter_without_blocker_is_found() {
    let story = "
        10 A1 asked exclusive queue x
        20 A1 held 1 r1
        30 A1 releasing
        31 A1 released
        15 B1 asked exclusive queue x
        60 over 20
    ";
    assert_eq!(verdict(story), ["lost waiters: nothing blocks B#1"]);
}

/// The record does not show which of them was granted without an answer.
#[test]
fn waiters_that_only_block_each_other_are_found() {
    let story = "
        15 A1 asked exclusive queue x
        16 B1 asked shared queue x y
        17 C1 asked exclusive queue y
        18 D1 asked exclusive queue z
        19 E1 asked exclusive queue z
        20 E1 held 1 r5
        60 over 20
    ";
    assert_eq!(verdict(story), ["lost waiters: nothing blocks A#1 B#1 C#1"]);
}

#[test]
fn waiter_behind_a_killed_one_is_found() {
    let story = "
        10 A1 asked exclusive queue x
        20 A1 held 1 r1
        30 killing A
        31 killed A
        15 B1 asked exclusive queue x
        60 over 20
    ";
    assert_eq!(verdict(story), ["lost waiters: nothing blocks B#1"]);
}

#[test]
fn request_without_wait_and_answer_is_found() {
    let story = "
        10 A1 asked exclusive queue x
        20 A1 held 1 r1
        15 B1 asked exclusive if-available x
        16 C1 asked exclusive steal x
        17 D1 asked exclusive 15 x
        18 E1 asked exclusive 30 x
        60 over 20
    ";
    let expected = ["B#1", "C#1", "D#1"].map(|who| format!("lost waiters: nothing blocks {who}"));
    assert_eq!(verdict(story), expected);
}

#[test]
fn lock_lost_by_a_restart_is_found() {
    let story = "
        10 A1 asked exclusive queue x
        20 A1 held 1 r1
        25 killing service
        26 killed service
        30 answered service
        40 A1 lost
        99 over 5 10
    ";
    let expected = "A#1 lost its lock by 0.000000040 s, and no other client took it: stolen";
    assert_eq!(verdict(story), [expected]);
}

#[test]
fn waiter_overtaken_over_a_restart_is_found() {
    let story = "
        10 A1 asked exclusive queue x
        20 A1 pending 15 r1
        21 killing service
        22 killed service
        23 answered service
        25 B1 asked shared queue x
        30 B1 held 1 r2
        40 A1 held 2 r1
        50 A1 still
    ";
    assert_eq!(verdict(story).len(), 1);
    assert!(verdict(story)[0].starts_with("out of turn on x: A#1 was in the queue"));
}

#[test]
fn repeated_token_is_found() {
    let story = "
        10 A1 asked exclusive queue x
        20 A1 held 4 r1
        10 B1 asked exclusive queue y
        20 B1 held 4 r2
    ";
    assert_eq!(verdict(story), ["token 4 was given twice: to A#1 and to B#1"]);
}

#[test]
fn shrinking_token_is_found_also_over_a_restart() {
    let story = "
        10 A1 asked exclusive queue x
        20 A1 held 4 r1
        22 killing service
        23 killed service
        24 answered service
        25 B1 asked exclusive queue x
        30 B1 held 3 r1
    ";
    let expected = "tokens shrank: A#1 had 4, and B#1, asked for after that, has 3";
    assert_eq!(verdict(story), [expected]);
}

#[test]
fn contradicting_record_is_found() {
    let twice = "
        10 A1 asked exclusive queue x
        20 A1 held 1 r1
        30 A1 held 2 r1
    ";
    assert_eq!(verdict(twice), ["A#1: is granted twice"]);
    let late = "
        10 A1 asked exclusive queue x
        20 A1 withdrawn
        30 A1 held 2 r1
    ";
    assert_eq!(verdict(late), ["A#1: goes on after its end"]);
    assert_eq!(verdict("10 A1 held 1 r1"), ["A#1: is told something and was never asked"]);
    let unheld = "
        10 A1 asked exclusive queue x
        20 A1 lost
    ";
    assert_eq!(verdict(unheld), ["A#1: had no lock to keep, release or lose"]);
}
