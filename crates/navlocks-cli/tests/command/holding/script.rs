//! Locks that a script or another process has, by `navlocks lock`.

use std::os::unix::process::CommandExt as _;
use std::process::Command;

use rustix::process::{Pid, Signal, kill_process};

use crate::support::{Guarded, Talk, World, assert_ended, eventually, finish, text};

/// Returns a shell with a script, in which `navlocks` is the program under test.
fn shell(world: &World, script: &str) -> Command {
    let mut command = Command::new("sh");
    command.arg("-c").arg(format!("navlocks() {{ \"$NL\" \"$@\"; }}\n{script}"));
    world.settle(&mut command);
    command
}

/// Starts a shell that has a lock until its input ends.
fn holding(world: &World, options: &str) -> Talk {
    let script = format!("eval \"$(\"$NL\" lock {options})\" || exit; echo held; read line");
    let mut talk = Talk::start(shell(world, &script));
    assert_eq!(talk.line(), "held");
    talk
}

fn sleeper() -> Guarded {
    Guarded(Command::new("sleep").arg("1000").spawn().expect("sleep starts"))
}

#[test]
fn c03_script_has_a_lock_from_the_middle_to_its_end() {
    let world = World::new();
    let script = r#"
        navlocks run -n a -- true || exit 50
        eval "$(navlocks lock b a)" || exit
        echo "$NAVLOCKS_NAMES ${NAVLOCKS_NAME-none} $NAVLOCKS_MODE $NAVLOCKS_FENCING_TOKEN"
        navlocks run -n a -- true 2>&1; echo $?
        eval "$(navlocks lock --limit 2 --tag mine c)" || exit
        echo $$; read line; exit 7"#;
    let mut holder = Talk::start(shell(&world, script));
    let held = holder.line();
    let token = held.strip_prefix(r#"["a","b"] none exclusive "#).expect("the variables");
    assert!(token.parse::<u64>().is_ok(), "{held}");
    assert!(holder.line_with("is not free").contains("held by sh["));
    assert_eq!(holder.line(), "1");
    let pid = holder.line();
    let now = world.query();
    assert_eq!(now["held"][0]["tag"], format!("sh[{pid}]"), "{now}");
    assert_eq!((&now["held"][1]["tag"], &now["held"][1]["limit"]), (&"mine".into(), &2.into()));
    holder.end().assert(7, "");
    world.until(0, 0);
}

#[test]
fn c03_lock_ends_with_its_shell_however_it_ends() {
    let world = World::new();
    for signal in [Signal::KILL, Signal::TERM, Signal::HUP] {
        let holder = holding(&world, "x");
        holder.signal(signal);
        // It waits for no time-out: the descriptor of the shell tells.
        assert_ended(&world.run("run -w 30s x -- true"), 0, "");
        assert_eq!(holder.wait().status.code(), None);
    }
    // Another program in the same process has the lock.
    let script = r#"eval "$(navlocks lock x)" || exit; echo held; exec cat"#;
    let mut holder = Talk::start(shell(&world, script));
    assert_eq!(holder.line(), "held");
    holder.say_line();
    assert_eq!(holder.line(), "");
    holder.signal(Signal::STOP);
    assert_ended(&world.run("run -n x -- true"), 1, "held by sh[");
    holder.signal(Signal::CONT);
    holder.end().assert(0, "");
    assert_ended(&world.run("run -w 30s x -- true"), 0, "");
}

#[test]
fn c03_shell_of_a_substitution_is_not_the_shell_that_asks() {
    let world = World::new();
    for script in [
        r#"lock=$(true; "$NL" lock x; true) && eval "$lock""#,
        r#"lock=$("$NL" lock x) && eval "$lock""#,
        r#""$NL" lock x >/dev/null"#,
    ] {
        let mut holder = Talk::start(shell(&world, &format!("{script}; echo $$; read line")));
        let pid = holder.line();
        assert_eq!(world.query()["held"][0]["tag"], format!("sh[{pid}]"), "{script}");
        // The lock of a subshell ends with the subshell.
        holder.end();
        world.until(0, 0);
    }
    let script = r#"( eval "$("$NL" lock x)"; true ); "$NL" run -w 30s x -- true; exit"#;
    assert_ended(&finish(shell(&world, script)), 0, "");
}

#[test]
fn c04_unlock_releases_the_locks_of_this_shell_alone() {
    let world = World::new();
    let other = holding(&world, "b");
    let script = r#"
        trap '' TERM
        eval "$(navlocks lock a)"; eval "$(navlocks lock c d)"; eval "$(navlocks lock --shared e)"
        navlocks unlock a && navlocks run -n a -- true || exit 50
        navlocks unlock a; echo "a: $?"
        navlocks unlock b; echo "b: $?"
        navlocks unlock c; echo "c: $?"
        navlocks unlock d c && navlocks run -n c d -- true || exit 51
        ( navlocks unlock e; true ) && navlocks run -n e -- true || exit 53
        eval "$(navlocks lock e)"
        navlocks unlock && navlocks run -n e -- true || exit 52
        navlocks unlock; echo "none: $?""#;
    let told = Talk::start(shell(&world, script)).wait().lines.join("\n");
    for part in ["a: 1", "b: 1", "c: 1", "none: 1", "has no lock on 'a': it was released or lost"] {
        assert!(told.contains(part), "{part}: {told}");
    }
    let stranger = format!(
        "on 'b': it is that of another process, and --pid {} releases it",
        other.pid().as_raw_pid()
    );
    assert!(told.contains(&stranger), "{told}");
    assert_ended(&world.run("run -n b -- true"), 1, "not free");
    assert_ended(&world.run(&format!("unlock b --pid {}", other.pid().as_raw_pid())), 0, "");
    assert_ended(&world.run("run -n b -- true"), 0, "");
    other.end();
}

#[test]
fn c05_lock_for_another_process_ends_with_it() {
    let world = World::new();
    let mut owner = sleeper();
    let pid = owner.0.id();
    let output = world.run(&format!("lock --pid {pid} x"));
    assert_ended(&output, 0, "");
    assert!(text(&output).contains("export NAVLOCKS_NAME='x'\n"), "{output:?}");
    assert_ended(&world.run("run -n x -- true"), 1, &format!("held by sleep[{pid}]"));
    owner.0.kill().unwrap();
    assert_ended(&world.run("run -w 30s x -- true"), 0, "");
    // It is a zombie now, and its number is still its own.
    let refused = world.run(&format!("lock --pid {pid} x"));
    assert_ended(&refused, 64, &format!("process {pid} has ended"));
    assert_eq!(text(&refused), "(exit 64)\n");
    owner.wait();
    assert_ended(&world.run(&format!("lock --pid {pid} x")), 64, &format!("no process {pid}"));
    world.until(0, 0);
}

#[test]
fn c05_process_of_another_user_is_refused() {
    let world = World::new();
    let mut other = Command::new("sleep");
    other.arg("1000").uid(65534);
    // Without the right to start one there is that of the system.
    let other = other.spawn().ok().map(Guarded);
    let pid = other.as_ref().map_or(1, |it| it.0.id());
    for command in ["lock x", "unlock x"] {
        let output = world.run(&format!("{command} --pid {pid}"));
        assert_ended(&output, 77, &format!("process {pid} belongs to user"));
    }
    assert!(!world.place().exists(), "a service was started");
}

#[test]
fn c06_shell_that_ends_before_the_grant_leaves_the_queue() {
    let world = World::new();
    let holder = world.hold("run x");
    let script = r#"eval "$("$NL" lock -q x)"; echo never"#;
    for target in ["shell", "asker"] {
        let waiter = Talk::start(shell(&world, script));
        world.until(1, 1);
        let pid = waiter.pid().as_raw_pid();
        match target {
            "shell" => waiter.signal(Signal::KILL),
            _ => {
                let list = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
                let asker = list.unwrap().trim().parse().ok().and_then(Pid::from_raw);
                kill_process(asker.expect("the process that asks"), Signal::INT).unwrap();
            }
        }
        world.until(1, 0);
        drop(waiter);
    }
    holder.end().assert(0, "");
    assert_ended(&world.run("run -n x -- true"), 0, "");
}

#[test]
fn c07_shell_reads_of_a_loss_and_gets_a_signal_if_it_wants_one() {
    let world = World::new();
    let mut holder = holding(&world, "x");
    assert_ended(&world.run("steal x"), 0, "");
    assert!(holder.line().starts_with("navlocks: 'x' is lost: the lock was stolen by navlocks"));
    holder.end();
    let script = r#"
        trap 'kill $!; echo signal; exit 9' USR1
        eval "$(navlocks lock --on-loss USR1 x)"; sleep 1000 & echo held; wait"#;
    let mut holder = Talk::start(shell(&world, script));
    assert_eq!(holder.line(), "held");
    assert_ended(&world.run("release --force x"), 0, "");
    let ended = holder.wait();
    ended.assert(9, "signal");
    ended.assert(9, "'x' is lost");
    world.until(0, 0);
}

#[test]
fn c08_shell_without_its_lock_does_not_go_on() {
    let world = World::new();
    let holder = world.hold("run x");
    for (options, code, said) in [
        ("-n x", 1, "'x' is not free: held by sh"),
        ("-n -E 9 x", 9, "'x' is not free"),
        ("-w 0.05 x", 1, "'x' was not free within 50 ms"),
        ("", 80, "no name was given"),
        ("--bogus x", 64, "no option '--bogus'"),
        ("--pid 0 y", 64, "there is no process 0"),
        ("--pid -1 y", 64, "there is no process -1"),
        ("--held-for 1 y", 64, "is for navlocks itself"),
        ("--url unix:/nowhere/socket y", 69, "there is no such socket"),
    ] {
        let script = format!("eval \"$(\"$NL\" lock {options})\" || exit; exit 50");
        assert_ended(&finish(shell(&world, &script)), code, said);
        let script = format!("set -e; lock=$(\"$NL\" lock {options}); exit 50");
        assert_ended(&finish(shell(&world, &script)), code, said);
    }
    holder.end().assert(0, "");
    eventually("no process is left", || {
        world.query()["pending"].as_array().is_some_and(Vec::is_empty)
    });
}

#[test]
fn c08_shell_reads_for_whom_it_waits() {
    let world = World::new();
    let holder = world.hold("run --tag first x");
    let mut waiter = Talk::start(shell(&world, r#"eval "$("$NL" lock x)" || exit; echo held"#));
    assert!(waiter.line().contains("waiting for 'x', held by first (pid "));
    holder.end().assert(0, "");
    assert_eq!(waiter.line(), "held");
    waiter.wait().assert(0, "");
}
