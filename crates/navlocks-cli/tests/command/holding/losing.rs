//! Commands whose lock is lost.

use std::future::IntoFuture;

use rustix::process::{Pid, Signal, kill_process};

use crate::support::{Talk, World, assert_ended, eventually, lives, text};

/// Starts a command that prints a line when it holds the lock, and waits.
fn holder(world: &World, options: &str, script: &str) -> Talk {
    let mut talk = Talk::start(world.script(&format!("run {options} x"), script));
    assert_eq!(talk.line(), "held");
    talk
}

#[test]
fn command_is_terminated_with_its_own_exit_code_when_its_lock_is_stolen() {
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
    // Lines of the two outputs come in any order.
    let ended = victim.wait();
    ended.assert(90, "asked");
    ended.assert(90, "'x' is lost: the lock was stolen by navlocks steal (pid ");
    ended.assert(90, "the command was ended, because 'x' is lost");
}

#[test]
fn command_that_ignores_sigterm_is_killed_after_its_grace() {
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
fn group_of_a_command_that_ends_in_time_is_killed() {
    let world = World::new();
    // The grandchild ignores signals, and outlives the child.
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
fn stopped_command_is_ended_when_its_lock_is_stolen() {
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
fn thief_runs_in_the_holders_place_before_all_waiters() {
    let world = World::new();
    let victim = holder(&world, "", "echo held; sleep 1000 & wait");
    let waiter = Talk::start(world.navlocks("run x -- true"));
    world.until(1, 1);
    let script = "echo mine; read line; exit 0";
    let mut thief = Talk::start(world.script("run --steal --tag deploy x", script));
    assert_eq!(thief.line(), "mine");
    victim.wait().assert(90, "'x' is lost: the lock was stolen by deploy (pid ");
    world.until(1, 1);
    thief.end().assert(0, "");
    waiter.wait().assert(0, "");
}

#[test]
fn steal_and_release_fail_where_no_lock_is_held() {
    let world = World::new();
    assert_ended(&world.run("steal x"), 1, "'x' is not held");
    assert_ended(&world.run("release --force x"), 1, "'x' is not held");
    assert!(!world.place().exists(), "no service was started for that");
    let holder = world.hold("run y");
    assert_ended(&world.run("steal x"), 1, "'x' is not held");
    assert_ended(&world.run("release --force x"), 1, "'x' is not held");
    holder.end().assert(0, "");
}

#[test]
fn descendants_in_sessions_of_their_own_are_ended() {
    let world = World::new();
    // The descendant ignores signals, and its parent has ended.
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
fn each_process_of_a_lost_command_gets_one_sigterm() {
    const EACH: usize = 8;
    let world = World::new();
    // Signals that are pending together count as one, so there are several processes.
    let counts = "trap \"echo asked\" TERM; echo ready; while :; do read line <&4; done";
    let script = format!(
        "exec 4<&0; for i in $(seq {EACH}); do sh -c '{counts}' & setsid sh -c '{counts}' & done
        {counts}"
    );
    let mut victim = Talk::start(world.script("run --grace 1h x", &script));
    for _ in 0..=2 * EACH {
        victim.line_after("ready");
    }
    assert_ended(&world.run("steal x"), 0, "");
    for _ in 0..=2 * EACH {
        victim.line_after("asked");
    }
    for descendant in descendants(victim.pid()) {
        let _ended = kill_process(descendant, Signal::KILL);
    }
    let ended = victim.wait();
    ended.assert(90, "stolen");
    assert!(!ended.lines.contains(&"asked".to_owned()), "{ended:?}");
}

/// Returns the processes below one, the youngest last.
fn descendants(parent: Pid) -> Vec<Pid> {
    let list = std::fs::read_to_string(format!("/proc/{parent}/task/{parent}/children"));
    let list = list.unwrap_or_default();
    let children = list.split_whitespace().filter_map(|pid| Pid::from_raw(pid.parse().ok()?));
    children.flat_map(|child| [vec![child], descendants(child)].concat()).collect()
}

#[test]
fn on_loss_sends_a_signal_or_lets_the_command_go_on() {
    let world = World::new();
    let script = "trap 'echo told; kill $!; exit 5' USR1; echo held; sleep 1000 & wait";
    let victim = holder(&world, "--on-loss USR1", script);
    assert_ended(&world.run("steal x"), 0, "");
    victim.wait().assert(5, "told");
    let mut victim = holder(&world, "--on-loss=continue", "echo held; read line; exit 6");
    assert_ended(&world.run("steal x"), 0, "");
    victim.line_after("navlocks: 'x' is lost: the lock was stolen");
    victim.end().assert(6, "");
    let wrong = world.run("run --on-loss=shout x -- true");
    assert_ended(&wrong, 64, "terminate, continue or one of HUP");
}

#[test]
fn names_that_run_refuses_can_be_stolen_and_released() {
    use navlocks::Locks;
    let world = World::new();
    assert_ended(&world.run("run x -- true"), 0, "");
    let url = format!("unix:{}", world.place().join("socket").display());
    for name in ["", "-x"] {
        let locks = navlocks::blocking::block_on(Locks::connect(&url).into_future()).unwrap();
        for command in ["steal --", "release --force --"] {
            let lock = locks.request(name).lock_blocking().unwrap();
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
