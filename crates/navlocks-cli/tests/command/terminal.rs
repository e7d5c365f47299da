//! Commands at a terminal: its foreground group, job control, and the screen.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use crate::support::{Guarded, LONG, Talk, World, assert_ended, eventually, text};

const INTERRUPT: &str = "\x03";
const QUIT: &str = "\x1c";
const SUSPEND: &str = "\x1a";
const END_OF_INPUT: &str = "\x04";

/// A terminal with a program in it, whose user is the test.
struct Sitting {
    keys: File,
    screen: Receiver<Vec<u8>>,
    /// The output that the test has not looked at.
    seen: String,
    process: Guarded,
}

impl Sitting {
    /// Runs a shell command in a terminal, as a session of its own.
    fn at(world: &World, script: &str) -> Self {
        Self::with(world, "sh", &["-c", script])
    }

    fn with(world: &World, shell: &str, arguments: &[&str]) -> Self {
        let keys = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC);
        let keys = keys.expect("a pseudo-terminal");
        grantpt(&keys).and_then(|()| unlockpt(&keys)).expect("its other side");
        let name = ptsname(&keys, Vec::new()).expect("its name");
        let size = Winsize { ws_row: 30, ws_col: 120, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&keys, size).expect("its size");
        let other = File::options().read(true).write(true).open(name.to_str().expect("ASCII"));
        let other = other.expect("the other side");
        let copy = || Stdio::from(OwnedFd::from(other.try_clone().expect("a copy")));
        // The program is in a session of its own that has the terminal.
        let mut command = Command::new("setsid");
        command.args(["--ctty", "--wait", shell]).args(arguments);
        world.settle(&mut command);
        command.env("TERM", "xterm").env("PS1", "$ ");
        command.stdin(copy()).stdout(copy()).stderr(copy());
        let process = Guarded(command.spawn().expect("setsid of util-linux"));
        let keys = File::from(keys);
        let mut reading = keys.try_clone().expect("a copy");
        let (send, screen) = channel();
        thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = reading.read(&mut bytes) {
                if send.send(bytes[..count].to_vec()).is_err() {
                    return;
                }
            }
        });
        Self { keys, screen, seen: String::new(), process }
    }

    fn type_keys(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).expect("the program reads");
    }

    /// Reads until `text` comes, and returns the output before it.
    #[track_caller]
    fn expect(&mut self, text: &str) -> String {
        loop {
            if let Some(at) = self.seen.find(text) {
                let before = self.seen[..at].to_owned();
                self.seen.drain(..at + text.len());
                return before;
            }
            match self.screen.recv_timeout(LONG) {
                Ok(bytes) => self.seen.push_str(&String::from_utf8_lossy(&bytes)),
                Err(_) => panic!("'{text}' did not come; there was: {:?}", self.seen),
            }
        }
    }

    /// Returns the exit status as a shell has it, and the rest of the output.
    #[track_caller]
    fn end(mut self) -> (i32, String) {
        let status = self.process.wait();
        drop(self.keys);
        let mut rest = self.seen;
        while let Ok(bytes) = self.screen.recv_timeout(std::time::Duration::from_millis(200)) {
            rest.push_str(&String::from_utf8_lossy(&bytes));
        }
        let signalled = || status.signal().map(|signal| 128 + signal);
        (status.code().or_else(signalled).expect("it has ended"), rest)
    }
}

/// Prints the process group of the shell, and that of the terminal's foreground.
const GROUPS: &str = "read -r _ _ _ _ group _ _ front _ </proc/$$/stat; echo groups $group $front.";

#[track_caller]
fn groups(sitting: &mut Sitting) -> (String, String) {
    sitting.expect("groups ");
    let line = sitting.expect(".");
    let (group, front) = line.split_once(' ').expect("two numbers");
    (group.to_owned(), front.to_owned())
}

#[test]
fn command_has_the_terminal_and_returns_it() {
    let world = World::new();
    let mut sitting = Sitting::at(
        &world,
        &format!("\"$NL\" run x -- sh -c '{GROUPS}'; {GROUPS} \"$NL\" run x -- nothing; {GROUPS}"),
    );
    let (child, front) = groups(&mut sitting);
    assert_eq!(child, front, "in the foreground");
    let (shell, front) = groups(&mut sitting);
    assert_eq!(shell, front, "back again");
    assert_ne!(shell, child);
    // The shell has the terminal again also if the command cannot be started.
    let (shell, front) = groups(&mut sitting);
    assert_eq!(shell, front);
    assert_eq!(sitting.end().0, 0);
}

#[test]
fn ctrl_c_reaches_the_command_once() {
    let world = World::new();
    let script = r#""$NL" run x -- sh -c 'trap "echo interrupted; kill \$!; exit 5" INT; sleep 1000 & echo ready; wait'; echo status $?."#;
    let mut sitting = Sitting::at(&world, script);
    sitting.expect("ready");
    sitting.type_keys(INTERRUPT);
    let said = sitting.expect("status 5.");
    assert_eq!(said.matches("interrupted").count(), 1, "{said}");
}

#[test]
fn ctrl_c_ends_a_command_without_a_handler() {
    let world = World::new();
    let mut sitting = Sitting::at(
        &world,
        "trap : INT; \"$NL\" run x -- sh -c 'echo ready; exec sleep 1000'; echo status $?.",
    );
    sitting.expect("ready");
    sitting.type_keys(INTERRUPT);
    sitting.expect("status 130.");
}

#[test]
fn ctrl_c_and_ctrl_backslash_end_a_script_with_its_command() {
    let command = "\"$NL\" run x -- sh -c 'echo ready; exec sleep 1000'";
    let script = format!("ulimit -c 0; for turn in 1 2; do {command}; done; echo went on");
    for (key, code) in [(INTERRUPT, 130), (QUIT, 131)] {
        let world = World::new();
        let mut sitting = Sitting::at(&world, &script);
        sitting.expect("ready");
        sitting.type_keys(key);
        let (ended, said) = sitting.end();
        assert_eq!(ended, code, "{said}");
        assert!(!said.contains("ready") && !said.contains("went on"), "{said}");
        world.until(0, 0);
    }
}

#[test]
fn ctrl_c_ends_a_script_with_a_pipeline_that_ends_in_a_run() {
    let world = World::new();
    let command = "true | \"$NL\" run x -- sh -c 'echo ready >/dev/tty; exec sleep 1000'";
    let script = format!("for turn in 1 2; do {command}; done; echo went on");
    let mut sitting = Sitting::with(&world, "bash", &["-c", &script]);
    sitting.expect("ready");
    sitting.type_keys(INTERRUPT);
    let (code, said) = sitting.end();
    assert_eq!(code, 130, "{said}");
    assert!(!said.contains("ready") && !said.contains("went on"), "{said}");
}

#[test]
fn ctrl_c_ends_a_loop_of_an_interactive_shell_and_nested_runs() {
    let world = World::new();
    let mut sitting = Sitting::with(&world, "bash", &["--norc", "--noprofile", "-i"]);
    let command = "\"$NL\" run x -- \"$NL\" run y -- sh -c 'echo rea''dy; exec sleep 1000'";
    sitting.type_keys(&format!("for turn in 1 2; do {command}; done\n"));
    sitting.expect("ready");
    sitting.type_keys(INTERRUPT);
    let said = sitting.asked("echo code $?.", "code 130.");
    assert!(!said.contains("ready"), "{said}");
    sitting.type_keys("exit 0\n");
    assert_eq!(sitting.end().0, 0);
}

#[test]
fn ctrl_z_stops_the_command_and_fg_continues_it() {
    let world = World::new();
    let mut sitting = Sitting::with(&world, "bash", &["--norc", "--noprofile", "-i"]);
    sitting.type_keys("\"$NL\" run x -- sh -c 'while read line; do echo g''ot:$line; done'\n");
    for turn in ["one", "two"] {
        // The command reads, so it has the terminal and runs.
        sitting.type_keys(&format!("{turn}\n"));
        sitting.expect(&format!("got:{turn}"));
        sitting.type_keys(SUSPEND);
        sitting.expect("Stopped");
        // The command holds its lock while it is stopped.
        sitting.type_keys("\"$NL\" run -n x -- true; echo code $?.\n");
        sitting.expect("code 1.");
        sitting.type_keys("fg\n");
        sitting.expect("run x");
    }
    sitting.type_keys("three\n");
    sitting.expect("got:three");
    sitting.type_keys(END_OF_INPUT);
    sitting.asked("echo code $?.", "code 0.");
    sitting.type_keys("exit 7\n");
    assert_eq!(sitting.end().0, 7);
}

#[test]
fn holder_that_ctrl_z_stops_is_shown_as_stopped() {
    let world = World::new();
    let mut sitting = Sitting::with(&world, "bash", &["--norc", "--noprofile", "-i"]);
    sitting.type_keys("\"$NL\" run --tag nightly x -- sh -c 'echo rea''dy; read line'\n");
    sitting.expect("ready");
    let mut waiter = Talk::start(world.navlocks("run x -- true"));
    assert!(!waiter.line_with("held by nightly").contains("stopped"));
    assert_eq!(world.query()["held"][0].get("stopped"), None);
    sitting.type_keys(SUSPEND);
    sitting.expect("Stopped");
    eventually("a stopped holder", || world.query()["held"][0]["stopped"] == true);
    let table = world.run("query");
    assert!(text(&table).contains("held, stopped"), "{}", text(&table));
    let why = world.run("why x");
    assert!(text(&why).starts_with("'x' is held by nightly (pid "), "{}", text(&why));
    assert!(text(&why).contains(", stopped, client c"), "{}", text(&why));
    let doctor = world.run("doctor");
    assert_ended(&doctor, 1, "one thing");
    assert!(text(&doctor).contains(", stopped, client c"), "{}", text(&doctor));
    assert!(text(&doctor).contains("continue it with fg"), "{}", text(&doctor));
    let mut late = Talk::start(world.navlocks("run x -- true"));
    assert!(late.line_with("held by nightly (pid ").contains(", stopped) for "));
    sitting.type_keys("fg\n");
    sitting.expect("run --tag");
    eventually("a holder that goes on", || world.query()["held"][0].get("stopped").is_none());
    sitting.type_keys("\nexit 0\n");
    assert_eq!(sitting.end().0, 0);
    waiter.wait().assert(0, "");
    late.wait().assert(0, "");
}

#[test]
fn run_is_shown_as_stopped_if_its_command_alone_is() {
    let world = World::new();
    let mut holder = Talk::start(world.script("run x", "echo $$; read line; exit 0"));
    let command = Pid::from_raw(holder.line().parse().unwrap()).unwrap();
    kill_process(command, Signal::STOP).unwrap();
    eventually("a stopped holder", || world.query()["held"][0]["stopped"] == true);
    kill_process(command, Signal::CONT).unwrap();
    eventually("a holder that goes on", || world.query()["held"][0].get("stopped").is_none());
    holder.end().assert(0, "");
}

#[test]
fn background_command_that_reads_is_stopped_and_continued_by_fg() {
    let world = World::new();
    let mut sitting = Sitting::with(&world, "bash", &["--norc", "--noprofile", "-i"]);
    sitting.type_keys("\"$NL\" run x -- sh -c 'echo re''ady; read line; echo got:$line' &\n");
    sitting.expect("ready");
    // The shell prints that before its next prompt.
    while !sitting.asked("jobs; echo en''d", "end").contains("Stopped") {}
    sitting.type_keys("fg\n");
    sitting.expect("run x");
    sitting.type_keys("hello\n");
    sitting.expect("got:hello");
    sitting.type_keys("exit 0\n");
    assert_eq!(sitting.end().0, 0);
}

impl Sitting {
    /// Returns the output of the shell for a line, up to `end`.
    fn asked(&mut self, line: &str, end: &str) -> String {
        self.type_keys(&format!("{line}\n"));
        self.expect(end)
    }
}

#[test]
fn command_in_a_pipeline_has_the_terminal_if_it_reads_it() {
    let world = World::new();
    let script = format!(
        "\"$NL\" run x -- sh -c 'echo ready >/dev/tty; read line </dev/tty; echo got:$line' | cat; {GROUPS}"
    );
    let mut sitting = Sitting::at(&world, &script);
    sitting.expect("ready");
    sitting.type_keys("hello\n");
    sitting.expect("got:hello");
    let (shell, front) = groups(&mut sitting);
    assert_eq!(shell, front);
    assert_eq!(sitting.end().0, 0);
}

#[test]
fn ctrl_c_in_a_pipeline_reaches_the_command() {
    let world = World::new();
    let script = "trap : INT; \"$NL\" run x -- sh -c 'echo ready >/dev/tty; exec sleep 1000' | cat; echo over";
    let mut sitting = Sitting::at(&world, script);
    sitting.expect("ready");
    sitting.type_keys(INTERRUPT);
    sitting.expect("over");
    world.until(0, 0);
}

#[test]
fn line_of_a_waiting_command_is_erased() {
    let world = World::new();
    let holder = world.hold("run --tag nightly x");
    let mut sitting = Sitting::at(&world, "\"$NL\" run x -- echo mine");
    sitting.expect("\r\x1b[Knavlocks: waiting for 'x', held by nightly");
    // The line is kept up to date.
    sitting.expect("\r\x1b[Knavlocks: waiting for 'x', held by nightly");
    holder.end().assert(0, "");
    let before = sitting.expect("mine");
    assert!(before.ends_with("\r\x1b[K"), "{before:?}");
    assert_eq!(sitting.end().0, 0);
}

#[test]
fn watch_restores_the_screen() {
    let world = World::new();
    let holder = world.hold("run --tag nightly x");
    let mut sitting = Sitting::at(&world, "trap : INT; \"$NL\" watch; echo left $?.; stty -a");
    sitting.expect("\x1b[?1049h");
    sitting.expect("1 held, 0 waiting");
    sitting.expect("nightly");
    let waiter = Talk::start(world.navlocks("run x -- true"));
    sitting.expect("1 held, 1 waiting");
    sitting.expect("LAST EVENTS");
    sitting.type_keys(INTERRUPT);
    let drawn = sitting.expect("left 0.");
    assert!(drawn.contains("\x1b[?25h\x1b[?1049l"), "{drawn:?}");
    let (code, modes) = sitting.end();
    assert_eq!(code, 0);
    assert!(modes.contains(" echo "), "{modes}");
    holder.end().assert(0, "");
    waiter.wait().assert(0, "");
}

#[test]
fn watch_shows_a_remedy_that_is_wider_than_the_screen() {
    let world = World::new();
    let names = ["a", "b"].map(|first| format!("{first}{}", "-long".repeat(20)));
    let mut scripts = [(0, 1), (1, 0)].map(|(outer, inner)| {
        let (outer, inner) = (&names[outer], &names[inner]);
        let script = format!("echo held; read line; \"$NL\" run -q {inner} -- true");
        let mut holder = Talk::start(world.script(&format!("run {outer}"), &script));
        assert_eq!(holder.line(), "held");
        holder
    });
    scripts.iter_mut().for_each(Talk::say_line);
    world.until(2, 2);
    let mut sitting = Sitting::at(&world, "NO_COLOR=1 \"$NL\" watch");
    sitting.expect("DEADLOCKS");
    let said = sitting.expect("QUEUES");
    // A line may end at any space.
    let said = said.replace("\x1b[K\r\r\n", "").replace(' ', "");
    let is_advised = |name: &&String| said.contains(&format!("navlocksrelease--force'{name}'"));
    let name = names.iter().find(is_advised).unwrap_or_else(|| panic!("{said:?}"));
    sitting.type_keys(INTERRUPT);
    assert_ended(&world.run(&format!("release --force {name}")), 0, "");
    scripts.into_iter().for_each(|script| drop(script.wait()));
}

#[test]
fn colours_are_only_for_terminals_without_no_color() {
    let world = World::new();
    let holder = world.hold("run x");
    let mut sitting =
        Sitting::at(&world, "\"$NL\" query; echo en''d; NO_COLOR=1 \"$NL\" query; echo ov''er");
    assert!(sitting.expect("end").contains("\x1b[1mNAME"));
    assert!(!sitting.expect("over").contains('\x1b'));
    holder.end().assert(0, "");
}
