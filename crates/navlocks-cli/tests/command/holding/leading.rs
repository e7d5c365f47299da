//! Leaders: `navlocks run --leader`, and `navlocks leader`.

use std::process::Command;

use rustix::process::Signal;

use crate::support::{Talk, World, assert_ended, finish, program, text};

#[test]
fn e02_leader_of_a_command_is_printed_with_its_term() {
    let world = World::new();
    assert_ended(&world.run("leader x"), 1, "'x' has no leader");
    let mut leader = Talk::start(
        world.script("run --leader 10.0.0.7:80 x", "echo $NAVLOCKS_FENCING_TOKEN; read line"),
    );
    let term = leader.line();
    let output = world.run("leader x");
    assert_ended(&output, 0, "");
    assert_eq!(text(&output), format!("{term} 10.0.0.7:80\n"));
    let mut follower = Talk::start(world.navlocks("leader --follow x"));
    assert_eq!(follower.line(), format!("{term} 10.0.0.7:80"));
    let mut standby = Talk::start(
        world.script("run -q --leader standby x", "echo $NAVLOCKS_FENCING_TOKEN; read line"),
    );
    world.until(1, 1);
    leader.signal(Signal::KILL);
    let later = standby.line();
    assert!(later.parse::<u64>().unwrap() > term.parse().unwrap(), "{term} {later}");
    assert_eq!(follower.line(), "-");
    assert_eq!(follower.line(), format!("{later} standby"));
    standby.end();
    assert_eq!(follower.line(), "-");
    follower.signal(Signal::TERM);
}

#[test]
fn leader_of_two_names_or_with_company_is_refused() {
    let world = World::new();
    assert_ended(&world.run("run --leader v x y -- true"), 64, "a leader leads under one name");
    for options in ["--shared", "--limit 2", "--tag t"] {
        let output = world.run(&format!("run --leader v {options} x -- true"));
        assert_ended(&output, 64, "contradict each other");
    }
    assert_ended(&world.run("leader"), 80, "no name was given");
    assert_ended(&world.run("leader x y"), 64, "one argument too many");
}

#[test]
fn example_of_a_standby_pair_refuses_the_late_write_of_a_stopped_leader() {
    let world = World::new();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/standby/run");
    let mut command = Command::new(script);
    world.settle(&mut command);
    let output = finish({
        command.env("NAVLOCKS", program());
        command
    });
    assert_ended(&output, 0, "");
    let told = text(&output);
    for line in ["west: 'two' is written", "east: 'three' is refused", "the file has: one two\n"] {
        assert!(told.contains(line), "{told}");
    }
}
