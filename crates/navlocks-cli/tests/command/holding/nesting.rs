//! Commands under locks that run other commands under locks.

use std::os::unix::fs::PermissionsExt;

use rustix::process::Signal;

use crate::support::{Talk, World, assert_ended, eventually, text};

/// Starts a script that holds a name, prints a line, and requests another name after a line of
/// input.
fn nested(world: &World, outer: &str, inner: &str) -> Talk {
    let script = format!(r#"echo held; read line; "$NL" run -q {inner} -- echo inner"#);
    let mut talk = Talk::start(world.script(&format!("run {outer}"), &script));
    assert_eq!(talk.line(), "held");
    talk
}

#[test]
fn b05_scripts_that_take_two_locks_in_opposite_order_are_found() {
    let world = World::new();
    let mut scripts = [nested(&world, "a", "b"), nested(&world, "b", "a")];
    assert_ended(&world.run("doctor"), 0, "");
    scripts.iter_mut().for_each(Talk::say_line);
    world.until(2, 2);
    let doctor = world.run("doctor");
    assert_ended(&doctor, 1, "one thing");
    for said in ["wait for each other", "holds 'a'", "holds 'b'", "waits for 'a'", "waits for 'b'"]
    {
        assert!(text(&doctor).contains(said), "{said}: {}", text(&doctor));
    }
    assert_ended(&world.run("release --force a"), 0, "");
    for script in scripts {
        script.wait();
    }
}

#[test]
fn b05_run_inside_its_own_lock_fails_at_once_and_one_beside_it_does_not() {
    let world = World::new();
    let mut script = nested(&world, "a", "a");
    script.say_line();
    script.wait().assert(89, "was made within lock");
    // Two children of one command wait for each other in turn, which is no deadlock.
    let one = r#""$NL" run -q b -- sh -c 'echo child; read line'"#;
    let mut script =
        Talk::start(world.script("run a", &format!("exec 4<&0; {one} <&4 & {one} <&4 & wait")));
    assert_eq!(script.line(), "child");
    world.until(2, 1);
    assert_ended(&world.run("doctor"), 0, "");
    script.end().assert(0, "child");
}

#[test]
fn nested_run_uses_the_service_and_the_files_of_the_outer_one() {
    let world = World::new();
    let mut serve = world.navlocks("serve --no-socket --fresh --listen 127.0.0.1:0 --state-dir");
    serve.arg(world.file("state")).env("NAVLOCKS_TOKEN", "some-long-secret-token");
    let mut service = Talk::start(serve);
    let url = service.line_after("listening on ");
    let file = world.file("token");
    std::fs::write(&file, "some-long-secret-token\n").unwrap();
    std::fs::set_permissions(&file, PermissionsExt::from_mode(0o600)).unwrap();
    let script = "cd /; \"$NL\" run y -- sh -c 'echo $NAVLOCKS_URL'";
    let mut outer = world.script(&format!("run --url {url} --token-file token x"), script);
    outer.current_dir(world.file(""));
    let mut outer = Talk::start(outer);
    assert_eq!(outer.line(), url);
    outer.wait().assert(0, "");
    assert!(!world.place().exists(), "no other service was started");
    service.signal(Signal::TERM);
    service.wait().assert(0, "");
}

#[test]
fn service_that_refuses_deadlocks_refuses_those_of_nested_runs() {
    let world = World::new();
    let mut service = Talk::start(world.navlocks("serve --deadlocks refuse"));
    service.line_after("listening on ");
    let mut scripts = [nested(&world, "a", "b"), nested(&world, "b", "a")];
    scripts[0].say_line();
    world.until(2, 1);
    scripts[1].say_line();
    let [first, second] = scripts;
    second.wait().assert(89, "waiting would close a deadlock");
    first.wait().assert(0, "inner");
    let mut within = nested(&world, "a", "a");
    within.say_line();
    within.wait().assert(89, "was made within lock");
    eventually("the end of all requests", || world.query()["held"] == serde_json::json!([]));
    service.signal(Signal::TERM);
    service.wait().assert(0, "");
}

#[test]
fn b06_reentrant_run_works_under_the_lock_of_the_outer_one() {
    let world = World::new();
    let inner = |options: &str| {
        let script = format!(
            r#""$NL" run -q --reentrant {options} -- sh -c 'echo $NAVLOCKS_FENCING_TOKEN'"#
        );
        let outer = format!("echo $NAVLOCKS_FENCING_TOKEN; {script}");
        let mut talk = Talk::start(world.script("run --shared a b", &outer));
        (talk.line(), talk)
    };
    let (token, mut talk) = inner("--shared a");
    assert_eq!(talk.line(), token);
    talk.wait().assert(0, "");
    // Another name needs a lock of its own, and a stricter mode would wait for the outer lock.
    let (token, mut talk) = inner("c");
    assert_ne!(talk.line(), token);
    talk.wait().assert(0, "");
    inner("a").1.wait().assert(89, "was made within lock");
}

#[test]
fn b06_reentrant_run_that_outlives_the_outer_lock_waits_for_its_turn() {
    let world = World::new();
    let late = r#""$NL" run -q --reentrant a -- sh -c 'echo inner'"#;
    // The outer command ends, and leaves a process in the background.
    let script = format!("echo started; exec 3<&0; (read line <&3; {late}) & exit 0");
    let mut outer = Talk::start(world.script("run a", &script));
    assert_eq!(outer.line(), "started");
    world.until(0, 0);
    let next = world.hold("run a");
    outer.say_line();
    world.until(1, 1);
    next.end().assert(0, "");
    assert_eq!(outer.line(), "inner");
    outer.wait().assert(0, "");
}
