//! The spellings of flock(1), where they mean the same.

use std::fs;

use rustix::process::{Pid, Signal, kill_process};

use crate::support::{Talk, World, assert_ended, eventually, finish, lives, text};

#[test]
fn c01_line_for_a_shell_is_run_under_the_lock() {
    let world = World::new();
    let mut command = world.navlocks("run x");
    command.arg("-c").arg("echo \"$NAVLOCKS_NAME\" | tr x y; exit 7").env_remove("SHELL");
    let output = finish(command);
    assert_ended(&output, 7, "");
    assert_eq!(text(&output), "y\n");
    let mut command = world.navlocks("run -c");
    command.args(["line", "x"]).env("SHELL", "/bin/echo");
    assert_eq!(text(&finish(command)), "-c line\n");
    assert_ended(&world.run("run x -c true -- true"), 64, "contradict each other");
}

#[test]
fn c01_words_of_flock_are_understood() {
    let world = World::new();
    let holder = world.hold("run x");
    for words in ["-n", "--nb", "--nonblock", "--if-available", "-w 0.05", "--wait 0.05"] {
        assert_ended(&world.run(&format!("run {words} x -- true")), 1, "held by sh");
    }
    holder.end().assert(0, "");
    for words in ["--nb", "-e", "-x", "-s", "--wait 10"] {
        assert_ended(&world.run(&format!("run {words} x -- true")), 0, "");
    }
    assert_ended(&world.run("run --verbose x -- true"), 0, "'x' is held, after ");
    assert_ended(&world.run("run --verbose -q x -- true"), 64, "contradict each other");
}

#[test]
fn c02_lock_is_held_until_the_last_process_of_the_command_has_ended() {
    let world = World::new();
    // The command ends at once; a process of a session of its own stays.
    let file = world.file("pid");
    // A service that the command starts would be a child of it.
    assert_ended(&world.run("run x -- true"), 0, "");
    let script = format!(
        "setsid sh -c 'echo $$ >{0}.new; mv {0}.new {0}; exec sleep 1000' >/dev/null 2>&1 & exit 7",
        file.display()
    );
    let holder = Talk::start(world.script("run --wait-for-children x", &script));
    eventually("the process in the background", || file.exists());
    let pid: i32 = fs::read_to_string(&file).unwrap().trim().parse().unwrap();
    eventually("the end of the command", || {
        fs::read_to_string(format!("/proc/{}/task/{0}/children", holder.pid().as_raw_nonzero()))
            .is_ok_and(|list| list.trim() == pid.to_string())
    });
    assert_ended(&world.run("run -n x -- true"), 1, "'x' is not free");
    assert!(lives(pid));
    kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL).unwrap();
    holder.wait().assert(7, "");
    assert_ended(&world.run("run -n x -- true"), 0, "");
}

#[test]
fn c02_signals_and_losses_reach_the_last_processes() {
    let world = World::new();
    assert_ended(&world.run("run x -- true"), 0, "");
    for (signal, code) in [(Some(Signal::TERM), 0), (None, 90)] {
        let script = "setsid sh -c 'echo ready; exec sleep 1000' & exit 0";
        let mut holder = Talk::start(world.script("run --wait-for-children x", script));
        assert_eq!(holder.line(), "ready");
        let pid = holder.pid().as_raw_nonzero();
        eventually("the end of the command", || {
            let list = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
            let list = list.unwrap_or_default();
            let names =
                list.split_whitespace().map(|it| fs::read_to_string(format!("/proc/{it}/comm")));
            let names: Vec<String> = names.map_while(Result::ok).collect();
            names.iter().any(|name| name == "sleep\n") && !names.contains(&"sh\n".to_owned())
        });
        match signal {
            Some(signal) => holder.signal(signal),
            None => assert_ended(&world.run("steal x"), 0, ""),
        }
        holder.wait().assert(code, "");
    }
}
