//! A command does not go on when its lock is lost.

use std::future::IntoFuture;

use rustix::process::{Pid, Signal, kill_process};

use crate::support::{Talk, World, assert_ended, eventually, lives, text};

/// A command that says when it holds the lock, and waits.
fn holder(world: &World, options: &str, script: &str) -> Talk {
    let mut talk = Talk::start(world.script(&format!("run {options} x"), script));
    assert_eq!(talk.line(), "held");
    talk
}

#[test]
fn it_is_asked_to_end_and_the_code_says_so() {
    let world = World::new();
    let victim = holder(
        &world,
        "--tag victim",
        "trap 'echo asked; exit 0' TERM; echo held; sleep 1000 & while :; do wait; done",
    );
    let steal = world.run("steal x");
    assert_ended(&steal, 0, "");
    assert!(text(&steal).starts_with("took 'x' from client c"), "{}", text(&steal));
    assert!(text(&steal).contains("victim"), "{}", text(&steal));
    // Lines of its two outputs come in any order.
    let ended = victim.wait();
    ended.assert(90, "asked");
    ended.assert(90, "the lock was stolen by request");
}

#[test]
fn it_is_killed_when_it_does_not_end() {
    let world = World::new();
    let script = "trap '' TERM; (echo $$; echo held; while :; do sleep 1000; done)";
    let mut victim = Talk::start(world.script("run --grace 100ms x", script));
    let pid: i32 = victim.line().parse().unwrap();
    assert_eq!(victim.line(), "held");
    assert_ended(&world.run("steal x"), 0, "");
    victim.wait().assert(90, "stolen");
    assert!(!lives(pid));
}

#[test]
fn its_group_is_killed_even_if_it_ends_itself() {
    let world = World::new();
    // The grandchild does not listen, and the child leaves it behind.
    let script = "(trap '' TERM; echo held; exec sleep 1000 >/dev/null 2>&1) & echo $!; wait";
    let mut victim = Talk::start(world.script("run --grace 300ms x", script));
    let mut said = [victim.line(), victim.line()];
    said.sort();
    let pid: i32 = said[0].parse().unwrap();
    assert_ended(&world.run("steal x"), 0, "");
    victim.wait().assert(90, "stolen");
    eventually("the end of the grandchild", || !lives(pid));
}

#[test]
fn a_stopped_command_is_ended_too() {
    let world = World::new();
    let mut victim =
        Talk::start(world.script("run --grace 1h x", "echo $$; echo held; sleep 1000 & wait"));
    let pid = Pid::from_raw(victim.line().parse().unwrap()).unwrap();
    victim.line_after("held");
    kill_process(pid, Signal::STOP).unwrap();
    assert_ended(&world.run("steal x"), 0, "");
    victim.wait().assert(90, "stolen");
}

#[test]
fn d07_force_release_names_its_cause() {
    let world = World::new();
    let victim = holder(&world, "", "echo held; sleep 1000 & wait");
    let release = world.run("release --force x");
    assert_ended(&release, 0, "");
    assert!(text(&release).starts_with("took 'x' from"), "{}", text(&release));
    victim.wait().assert(90, "the lock was force-released");
}

#[test]
fn a_thief_runs_in_the_holders_place_before_those_who_wait() {
    let world = World::new();
    let victim = holder(&world, "", "echo held; sleep 1000 & wait");
    let waiter = Talk::start(world.navlocks("run x -- true"));
    world.until(1, 1);
    let mut thief = Talk::start(world.script("run --steal x", "echo mine; read line; exit 0"));
    assert_eq!(thief.line(), "mine");
    victim.wait().assert(90, "stolen");
    world.until(1, 1);
    thief.end().assert(0, "");
    waiter.wait().assert(0, "");
}

#[test]
fn nothing_to_take_away() {
    let world = World::new();
    assert_ended(&world.run("steal x"), 1, "nobody holds 'x'");
    assert_ended(&world.run("release --force x"), 1, "nobody holds 'x'");
    assert!(!world.place().exists(), "no service was started for that");
    let holder = world.hold("run y");
    assert_ended(&world.run("steal x"), 1, "nobody holds 'x'");
    assert_ended(&world.run("release --force x"), 1, "nobody holds 'x'");
    holder.end().assert(0, "");
}

#[test]
fn descendants_in_sessions_of_their_own_are_ended_too() {
    let world = World::new();
    // Its parent has ended, and it does not listen.
    let inner = "trap \"\" TERM; echo $$; while :; do sleep 1000; done";
    let script = format!("(setsid sh -c '{inner}' & ); echo held; sleep 1000 & wait");
    let mut victim = Talk::start(world.script("run --grace 300ms x", &script));
    let mut said = [victim.line(), victim.line()];
    said.sort();
    let pid: i32 = said[0].parse().unwrap();
    assert_ended(&world.run("steal x"), 0, "");
    victim.wait().assert(90, "stolen");
    eventually("the end of the descendant", || !lives(pid));
    assert_eq!(world.services().len(), 1, "the service is no process of the command");
}

#[test]
fn loss_is_told_by_a_signal_or_not_at_all_if_that_is_asked_for() {
    let world = World::new();
    let script = "trap 'echo told; kill $!; exit 5' USR1; echo held; sleep 1000 & wait";
    let victim = holder(&world, "--on-loss USR1", script);
    assert_ended(&world.run("steal x"), 0, "");
    victim.wait().assert(5, "told");
    let mut victim = holder(&world, "--on-loss=continue", "echo held; read line; exit 6");
    assert_ended(&world.run("steal x"), 0, "");
    victim.line_after("navlocks: the lock was stolen");
    victim.end().assert(6, "");
    let wrong = world.run("run --on-loss=shout x -- true");
    assert_ended(&wrong, 64, "terminate, continue or one of HUP");
}

#[test]
fn names_that_no_shell_should_use_can_be_taken_away() {
    use navlocks::Locks;
    let world = World::new();
    assert_ended(&world.run("run x -- true"), 0, "");
    let url = format!("unix:{}", world.place().join("socket").display());
    for name in ["", "-x"] {
        let locks = navlocks::blocking::block_on(Locks::connect(&url).into_future()).unwrap();
        for command in ["steal --", "release --force --"] {
            let lock = locks.request(name).blocking().unwrap();
            let mut command = world.navlocks(command);
            command.arg(name);
            let output = crate::support::finish(command);
            assert_ended(&output, 0, "");
            assert!(
                text(&output).starts_with(&format!("took '{name}' from client c")),
                "{output:?}"
            );
            navlocks::blocking::block_on(lock.lost());
        }
    }
}
