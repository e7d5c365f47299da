//! Limits of commands: `run --limit`, and how the other subcommands show it.

use crate::support::{Talk, World, assert_ended, eventually, text};

#[test]
fn l01_as_many_commands_as_the_limit_run_and_the_next_one_waits() {
    let world = World::new();
    let [one, two] = ["one", "two"].map(|tag| world.hold(&format!("run --limit 2 --tag {tag} x")));
    assert_ended(&world.run("run -n --limit 2 x -- true"), 1, "'x' is not free");
    let third = Talk::start(world.script("run --limit 2 --tag three x", "echo $NAVLOCKS_MODE"));
    world.until(2, 1);
    one.end().assert(0, "");
    let ended = third.wait();
    ended.assert(0, "");
    assert_eq!(ended.lines.last().map(String::as_str), Some("limit 2"));
    two.end().assert(0, "");
    assert_ended(&world.run("run -n --limit 1 x -- true"), 0, "");
}

#[test]
fn l11_query_watch_why_and_the_waiting_line_show_the_limit() {
    let world = World::new();
    let mut watch = Talk::start(world.navlocks("watch --json"));
    let mut first = None;
    eventually("a first event", || {
        assert_ended(&world.run("run probe -- true"), 0, "");
        first = watch.try_line();
        first.is_some()
    });
    let holders = ["one", "two", "three", "four"]
        .map(|tag| world.hold(&format!("run --limit 4 --tag {tag} x")));
    let mut waiter = Talk::start(world.navlocks("run --limit 2 --tag pair x -- true"));
    world.until(4, 1);
    let event: serde_json::Value =
        serde_json::from_str(&watch.line_with(r#""tag":"pair""#)).expect("an event");
    assert_eq!((event["mode"].as_str(), event["limit"].as_u64()), (Some("shared"), Some(2)));
    let now = world.query();
    assert_eq!(now["held"][0]["mode"], "shared");
    assert_eq!(now["held"][0]["limit"], 4);
    let table = world.run("query");
    assert!(text(&table).contains("limit 4") && text(&table).contains("limit 2"));
    let why = world.run("why x");
    let lines: Vec<&str> = text(&why).lines().collect();
    assert!(lines[0].ends_with(", limit 4"), "{lines:?}");
    let allows = "behind 4 held locks; this request allows 2 at a time";
    assert!(lines[5].ends_with(allows), "{lines:?}");
    let told = waiter.line_after("navlocks: waiting for 'x', held by one (pid ");
    assert!(told.contains(" and 3 others for "), "{told}");
    assert!(told.ends_with("; this request allows 2 at a time; next in the queue"), "{told}");
    for holder in holders {
        holder.end().assert(0, "");
    }
    waiter.wait().assert(0, "");
    drop(watch);
}

#[test]
fn l13_number_that_is_no_limit_is_refused() {
    let world = World::new();
    for bad in ["0", "-1", "2.5", "NaN", "268435456", "4294967296", "1e3", "two"] {
        let said = "it is a number of holders from 1 to 268435455; see navlocks run --help";
        assert_ended(&world.run(&format!("run --limit {bad} x -- true")), 64, said);
    }
    assert_ended(&world.run("run x --limit"), 64, "needs a value");
    for other in ["--shared", "--exclusive"] {
        let output = world.run(&format!("run --limit 4 {other} x -- true"));
        assert_ended(&output, 64, "contradict each other");
    }
    assert!(!world.place().exists(), "no service is started");
}
