//! Maximum holds of commands: `run --max-hold`.

use crate::services::hanging::Stopped;
use crate::support::{Talk, World, assert_ended, text};

#[test]
fn h05_command_that_holds_too_long_is_ended_by_the_usual_steps() {
    let world = World::new();
    let script = "trap 'echo told; exit 3' TERM; echo held; sleep 1000 & wait";
    let mut first = Talk::start(world.script("run --max-hold 300ms x", script));
    first.line_after("held");
    let second = Talk::start(world.navlocks("run x -- true"));
    let ended = first.wait();
    ended.assert(90, "'x' is lost: the lock was held for as long as its maximum hold allows");
    assert!(ended.lines.iter().any(|line| line == "told"), "{:?}", ended.lines);
    second.wait().assert(0, "");
    // A command that ends in time is not touched, nor is its exit code.
    assert_ended(&world.run("run --max-hold 1h x -- true"), 0, "");
    let mut goes_on =
        Talk::start(world.script("run --max-hold 50ms --on-loss continue x", "read line; exit 7"));
    goes_on.line_after("navlocks: 'x' is lost: the lock was held for as long as");
    goes_on.end().assert(7, "");
}

#[test]
fn h03_time_that_is_no_maximum_hold_is_refused() {
    let world = World::new();
    let said = [
        ("0", "a maximum hold is a millisecond or more"),
        ("0s", "a maximum hold is a millisecond or more"),
        ("-1", "a length of time is a number and one of ms, s, m, h, d"),
        ("inf", "a length of time is a number"),
        ("NaN", "a length of time is a number"),
        ("soon", "a length of time is a number"),
    ];
    for (bad, why) in said {
        assert_ended(&world.run(&format!("run --max-hold {bad} x -- true")), 64, why);
    }
    assert!(!world.place().exists(), "no service is started");
}

#[test]
fn h07_command_of_a_service_that_hangs_is_ended_at_its_deadline_too() {
    let world = World::new();
    let script = "trap 'echo told; exit 3' TERM; echo held; sleep 1000 & wait";
    let mut first = Talk::start(world.script("run --max-hold 2s x", script));
    first.line_after("held");
    let stopped = Stopped::service_of(&world);
    let ended = first.wait();
    ended.assert(90, "'x' is lost: the lock was held for as long as its maximum hold allows");
    assert!(ended.lines.iter().any(|line| line == "told"), "{:?}", ended.lines);
    drop(stopped);
    assert_ended(&world.run("run x -- true"), 0, "");
}

#[test]
fn h08_query_and_why_show_how_much_of_the_time_is_left() {
    let world = World::new();
    let holder = world.hold("run --max-hold 5h x");
    let shown = text(&world.run("query")).to_owned();
    assert!(shown.contains(" of 5 h 0 min "), "{shown}");
    let left = world.query()["held"][0]["left_ms"].as_u64().expect("a time");
    assert!((1..=18_000_000).contains(&left), "{left}");
    let why = text(&world.run("why x")).to_owned();
    assert!(why.contains(" and at most 4 h 59 min more, exclusive"), "{why}");
    holder.end().assert(0, "");
    let _holder = world.hold("run x");
    assert!(world.query()["held"][0].get("left_ms").is_none());
}
