//! Commands under a lock: their environment is as without navlocks.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process};

use crate::support::{Talk, World, assert_ended, finish, lives, program, text};

#[test]
fn exit_status_of_the_command_is_passed_on() {
    let world = World::new();
    for status in [0, 1, 7, 255] {
        let output = world.run_script("run x", &format!("exit {status}"));
        assert_ended(&output, status, "");
        assert_eq!(output.stderr, b"");
    }
}

#[test]
fn signal_that_ends_the_command_is_passed_on() {
    let world = World::new();
    for (signal, status) in [("KILL", 137), ("TERM", 143), ("SEGV", 139)] {
        assert_ended(&world.run_script("run x", &format!("kill -{signal} $$")), status, "");
    }
}

#[test]
fn missing_or_unexecutable_command_has_its_own_exit_code() {
    let world = World::new();
    assert_ended(
        &world.run("run x -- no-such-command"),
        127,
        "there is no command 'no-such-command'",
    );
    let file = world.file("data");
    fs::write(&file, "data").unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
    assert_ended(&world.run(&format!("run x -- {}", file.display())), 126, "cannot execute");
    world.until(0, 0);
}

#[test]
fn command_has_standard_input_and_output() {
    let world = World::new();
    let mut command = world.navlocks("run x -- cat");
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"through").unwrap();
    assert_eq!(child.wait_with_output().unwrap().stdout, b"through");
}

#[test]
fn environment_of_the_command_describes_its_lock() {
    let world = World::new();
    let say = r#"echo "$NAVLOCKS_FENCING_TOKEN|$NAVLOCKS_NAMES|$NAVLOCKS_NAME|$NAVLOCKS_MODE""#;
    let said = |arguments: &str| {
        let mut command = world.script(arguments, say);
        // The variables are those of a lock around this one.
        command.env("NAVLOCKS_NAME", "outer").env("NAVLOCKS_FENCING_TOKEN", "0");
        let output = finish(command);
        let (token, rest) = text(&output).trim().split_once('|').unwrap();
        (token.parse::<u64>().unwrap(), rest.to_owned())
    };
    let (first, one) = said("run one");
    let (second, two) = said("run --shared b a\"a");
    assert_eq!(one, r#"["one"]|one|exclusive"#);
    assert_eq!(two, r#"["a\"a","b"]||shared"#);
    assert!(second > first, "tokens grow");
}

#[test]
fn closed_standard_streams_are_open_to_nothing_in_the_command() {
    let world = World::new();
    let said = world.file("said");
    let list = r#"links=$(readlink /proc/$$/fd/[012]); echo "$links" > "$said""#;
    let mut command = std::process::Command::new("sh");
    world.settle(&mut command);
    command.args(["-c", r#"exec "$0" run x -- sh -c "$1" <&- >&- 2>&-"#]);
    command.arg(program()).arg(list).env("said", &said);
    assert_ended(&finish(command), 0, "");
    assert_eq!(fs::read_to_string(said).unwrap(), "/dev/null\n".repeat(3));
}

#[test]
fn command_inherits_only_the_socket_of_presence() {
    let world = World::new();
    let list = "ls /proc/self/fd";
    let mut direct = std::process::Command::new("sh");
    direct.args(["-c", list]);
    let files = |output: &std::process::Output| -> Vec<u32> {
        let mut files: Vec<u32> = text(output).lines().map(|fd| fd.parse().unwrap()).collect();
        files.sort_unstable();
        files
    };
    let mut expected = files(&finish(direct));
    expected.push(200);
    expected.sort_unstable();
    assert_eq!(files(&world.run_script("run x", list)), expected);
}

#[test]
fn signals_reach_the_command_and_not_its_children() {
    let world = World::new();
    for (name, signal) in [
        ("HUP", Signal::HUP),
        ("INT", Signal::INT),
        ("QUIT", Signal::QUIT),
        ("TERM", Signal::TERM),
        ("USR1", Signal::USR1),
        ("USR2", Signal::USR2),
        ("ALRM", Signal::ALARM),
        ("WINCH", Signal::WINCH),
    ] {
        // The inner shell is in the group too, and ends with its input.
        let inner = format!("trap \"echo inner\" {name}; read line; echo end");
        let script = format!(
            "trap 'echo outer; exit 3' {name}; exec 4<&0; sh -c '{inner}' <&4 & echo ready; while :; do wait; done"
        );
        let mut talk = Talk::start(world.script("run x", &script));
        assert_eq!(talk.line(), "ready");
        talk.signal(signal);
        assert_eq!(talk.line(), "outer", "{name}");
        let ended = talk.end();
        ended.assert(3, "");
        assert!(!ended.lines.contains(&"inner".to_owned()), "{name}: {ended:?}");
    }
}

#[test]
fn signals_that_were_ignored_stay_ignored() {
    let world = World::new();
    let mut command = std::process::Command::new("sh");
    let inner = "kill -HUP $$; kill -HUP $PPID; echo alive";
    command.args(["-c", &format!(r#"trap '' HUP; exec "$NL" run x -- sh -c '{inner}'"#)]);
    world.settle(&mut command);
    let output = finish(command);
    assert_ended(&output, 0, "");
    assert_eq!(text(&output), "alive\n");
}

#[test]
fn command_has_a_process_group_of_its_own() {
    let world = World::new();
    let output =
        world.run_script("run x", "read -r pid _ _ _ group _ </proc/$$/stat; echo $pid $group");
    let (pid, group) = text(&output).trim().split_once(' ').unwrap();
    assert_eq!(pid, group);
}

#[test]
fn background_processes_of_an_ended_command_do_not_hold_its_lock() {
    let world = World::new();
    let output = world.run_script("run x", "sleep 1000 >/dev/null 2>&1 & echo $!");
    let pid: i32 = text(&output).trim().parse().unwrap();
    assert_ended(&world.run("run -n x -- true"), 0, "");
    assert!(lives(pid), "it is not ended either");
    kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL).unwrap();
}

#[test]
fn x29_lock_excludes_and_is_shared() {
    let world = World::new();
    let holder = world.hold("run --tag first x y");
    assert_ended(&world.run("run -n x -- true"), 1, "'x' is not free");
    assert_ended(&world.run("run -n --shared y -- true"), 1, "'y' is not free");
    assert_ended(&world.run("run -n -E 9 x -- true"), 9, "not free");
    assert_ended(
        &world.run("run -w 50ms x -- true"),
        1,
        "'x' was not free within 50 ms: held by first (pid ",
    );
    let silent = world.run("run -q -n x -- true");
    assert_ended(&silent, 1, "");
    assert_eq!(silent.stderr, b"");
    assert_ended(&world.run("run -n z -- true"), 0, "");
    assert_ended(&world.run("run -n --partition other x -- true"), 0, "");
    holder.end().assert(0, "");
    let reader = world.hold("run --shared x");
    assert_ended(&world.run("run -n --shared x -- true"), 0, "");
    assert_ended(&world.run("run -n x -- true"), 1, "not free");
    reader.end().assert(0, "");
}

#[test]
fn lock_is_free_when_navlocks_has_ended() {
    let world = World::new();
    for _ in 0..20 {
        assert_ended(&world.run("run -n x -- true"), 0, "");
    }
}

#[test]
fn runs_take_turns_in_order() {
    let world = World::new();
    let holder = world.hold("run x");
    let file = world.file("order");
    let mut waiting = Vec::new();
    for number in 0..5 {
        let script = format!("echo {number} >>{}", file.display());
        waiting.push(Talk::start(world.script("run x", &script)));
        world.until(1, number + 1);
    }
    holder.end().assert(0, "");
    waiting.into_iter().for_each(|talk| talk.wait().assert(0, ""));
    assert_eq!(fs::read_to_string(file).unwrap(), "0\n1\n2\n3\n4\n");
}
