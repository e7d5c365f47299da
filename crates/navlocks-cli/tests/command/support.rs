//! A folder for each test, with a service of its own, and processes that do not outlive the test.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};

/// The time limit of a test that hangs: far longer than any step takes.
pub(crate) const LONG: Duration = Duration::from_secs(60);

/// A place for a service, and the commands that use it.
pub(crate) struct World {
    folder: PathBuf,
}

impl World {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let next = NEXT.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("nl-{}-{next}", std::process::id()));
        fs::create_dir(&folder).expect("a new folder");
        Self { folder }
    }

    /// Returns the path of a file of the test.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Returns the folder of the service.
    pub(crate) fn place(&self) -> PathBuf {
        self.folder.join("place")
    }

    /// Returns the command `navlocks` with these arguments, split at spaces.
    pub(crate) fn navlocks(&self, arguments: &str) -> Command {
        let mut command = Command::new(program());
        command.args(arguments.split_whitespace());
        self.settle(&mut command);
        command
    }

    /// Gives a command this place, without other variables of navlocks. Scripts find the program
    /// under test in `$NL`.
    pub(crate) fn settle(&self, command: &mut Command) {
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("NAVLOCKS_") {
                command.env_remove(name);
            }
        }
        command.env("NL", program()).env("NAVLOCKS_DIR", self.place());
        command.env_remove("NO_COLOR").env_remove("COLUMNS");
    }

    /// Returns a shell with a script, and mounts that no other process sees. The script may `cover`
    /// the folder for temporary files by `folder`: `$NL` is found there, wherever the clone is.
    /// Returns none and skips the test if this user may not mount.
    pub(crate) fn mounting(&self, folder: &str, script: &str) -> Option<Command> {
        let mut tried = Command::new("unshare");
        tried.args(["-rm", "mount", "-t", "tmpfs", "none", "/tmp"]);
        if !tried.output().is_ok_and(|output| output.status.success()) {
            servers::skip("this user may not mount in a namespace of its own");
            return None;
        }
        fs::create_dir_all(self.file(folder)).expect("a folder");
        fs::write(self.file(folder).join("navlocks"), "").expect("a file to mount over");
        let mut command = Command::new("unshare");
        let script = format!(
            r#"set -e; cd "$WORLD"; mount --bind "$NL" {folder}/navlocks
            cover() {{ over=/tmp; mount --rbind "$1" $over; NL=$over/navlocks; }}
            {script}"#
        );
        command.args(["-rm", "sh", "-c", &script]);
        self.settle(&mut command);
        command.env("WORLD", self.file("")).env("STATE", self.place());
        Some(command)
    }

    /// Runs `navlocks` to its end, without input.
    pub(crate) fn run(&self, arguments: &str) -> Output {
        finish(self.navlocks(arguments))
    }

    /// Runs `navlocks ARGUMENTS -- sh -c SCRIPT` to its end, without input.
    pub(crate) fn run_script(&self, arguments: &str, script: &str) -> Output {
        finish(self.script(arguments, script))
    }

    /// Returns the command `navlocks ARGUMENTS -- sh -c SCRIPT`.
    pub(crate) fn script(&self, arguments: &str, script: &str) -> Command {
        let mut command = self.navlocks(arguments);
        command.args(["--", "sh", "-c", script]);
        command
    }

    /// Starts a command that holds the lock until its input ends.
    pub(crate) fn hold(&self, arguments: &str) -> Talk {
        let mut talk = Talk::start(self.script(arguments, "echo held; read line; exit 0"));
        assert_eq!(talk.line(), "held");
        talk
    }

    /// Returns the answer of `navlocks query --json`.
    pub(crate) fn query(&self) -> serde_json::Value {
        let output = self.run("query --json");
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        serde_json::from_slice(&output.stdout).expect("one JSON object")
    }

    /// Returns the processes that serve this place.
    pub(crate) fn services(&self) -> Vec<Pid> {
        let socket = self.place().join("socket");
        let socket = socket.to_str().expect("a path of ours");
        let numbers = fs::read_dir("/proc").expect("the list of processes").filter_map(|entry| {
            let pid: i32 = entry.ok()?.file_name().to_str()?.parse().ok()?;
            let line = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
            let words: Vec<&[u8]> = line.split(|byte| *byte == 0).collect();
            let serves = words.get(1) == Some(&&b"serve"[..]) && words.contains(&socket.as_bytes());
            (serves && lives(pid)).then(|| Pid::from_raw(pid)).flatten()
        });
        numbers.collect()
    }

    /// Returns the process that serves this place.
    #[track_caller]
    pub(crate) fn service(&self) -> Pid {
        let services = self.services();
        assert_eq!(services.len(), 1, "{services:?}");
        services[0]
    }

    /// Waits until so many requests are held and pending.
    pub(crate) fn until(&self, held: usize, pending: usize) {
        eventually(&format!("{held} held, {pending} pending"), || {
            let now = self.query();
            let count = |what: &str| now[what].as_array().map_or(0, Vec::len);
            (count("held"), count("pending")) == (held, pending)
        });
    }
}

impl Drop for World {
    fn drop(&mut self) {
        let _ = self.navlocks("stop --force").output();
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Returns the program under test.
pub(crate) fn program() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_navlocks"))
}

/// Runs a command to its end, without input.
pub(crate) fn finish(mut command: Command) -> Output {
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let child = Guarded(child.expect("the program starts"));
    child.output()
}

/// Asserts the exit code of a command, and a part of its standard error.
#[track_caller]
pub(crate) fn assert_ended(output: &Output, code: i32, said: &str) {
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{stderr}");
    assert!(stderr.contains(said), "{stderr}");
}

/// Returns the standard output of a command.
pub(crate) fn text(output: &Output) -> &str {
    std::str::from_utf8(&output.stdout).expect("UTF-8")
}

/// Polls a condition that sends no notification.
#[track_caller]
pub(crate) fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let until = Instant::now() + LONG;
    while !is_so() {
        assert!(Instant::now() < until, "never: {what}");
        thread::sleep(Duration::from_millis(5));
    }
}

/// Returns true if a process exists and has not ended.
pub(crate) fn lives(pid: i32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit(") ").next().and_then(|rest| rest.chars().next());
    state.is_some_and(|state| state != 'Z' && state != 'X')
}

/// Kills a `navlocks` that holds `x`, with its process group, after a shell has executed `words`.
/// Returns a process of its command that lives on, in a session of its own.
pub(crate) fn left_behind(world: &World, words: &str) -> Pid {
    let mut command = Command::new("sh");
    command.arg("-c").arg(format!(r#"{words} exec "$0" run x -- sh -c "$1""#)).arg(program());
    command.arg("setsid sh -c 'echo $$; exec sleep 1000 >/dev/null 2>&1' & wait");
    world.settle(&mut command);
    // As build machines start commands that they may have to kill as a whole.
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    let mut holder = Talk::start(command);
    let left = holder.line().parse().ok().and_then(Pid::from_raw);
    kill_process_group(holder.pid(), Signal::KILL).expect("it runs");
    assert_eq!(holder.end().status.code(), None);
    left.expect("the command says its number")
}

/// A process that is killed if the test fails before it ended.
pub(crate) struct Guarded(pub(crate) Child);

impl Guarded {
    fn output(mut self) -> Output {
        let read = |stream: Option<Box<dyn Read + Send>>| {
            thread::spawn(move || {
                let mut bytes = Vec::new();
                stream.map(|mut stream| stream.read_to_end(&mut bytes));
                bytes
            })
        };
        let stdout = read(self.0.stdout.take().map(|stream| Box::new(stream) as _));
        let stderr = read(self.0.stderr.take().map(|stream| Box::new(stream) as _));
        let status = self.wait();
        let bytes = |reader: thread::JoinHandle<Vec<u8>>| reader.join().expect("a reader");
        Output { status, stdout: bytes(stdout), stderr: bytes(stderr) }
    }

    /// Waits for the end of the process.
    #[track_caller]
    pub(crate) fn wait(&mut self) -> ExitStatus {
        let mut status = None;
        eventually("the end of a process", || {
            status = self.0.try_wait().expect("a child of ours");
            status.is_some()
        });
        status.expect("it has ended")
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A process whose lines are read one by one, and which waits for lines of input.
pub(crate) struct Talk {
    process: Guarded,
    stdin: Option<ChildStdin>,
    lines: std::sync::mpsc::Receiver<String>,
}

impl Talk {
    pub(crate) fn start(command: Command) -> Self {
        Self::with_input(command, Stdio::piped())
    }

    pub(crate) fn with_input(mut command: Command, input: Stdio) -> Self {
        command.stdin(input).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process = Guarded(command.spawn().expect("the program starts"));
        let stdin = process.0.stdin.take();
        let (send, lines) = std::sync::mpsc::channel();
        let streams: [Box<dyn Read + Send>; 2] = [
            Box::new(process.0.stdout.take().expect("piped")),
            Box::new(process.0.stderr.take().expect("piped")),
        ];
        for stream in streams {
            let send = send.clone();
            thread::spawn(move || {
                for line in BufReader::new(stream).lines().map_while(Result::ok) {
                    if send.send(line).is_err() {
                        return;
                    }
                }
            });
        }
        Self { process, stdin, lines }
    }

    /// Returns the next line of either stream.
    #[track_caller]
    pub(crate) fn line(&mut self) -> String {
        self.lines.recv_timeout(LONG).expect("another line")
    }

    /// Returns a line that was received already.
    pub(crate) fn try_line(&mut self) -> Option<String> {
        self.lines.try_recv().ok()
    }

    /// Returns the next line with this start, without it.
    #[track_caller]
    pub(crate) fn line_after(&mut self, start: &str) -> String {
        loop {
            if let Some(rest) = self.line().strip_prefix(start) {
                return rest.to_owned();
            }
        }
    }

    /// Returns the next line that contains this text.
    #[track_caller]
    pub(crate) fn line_with(&mut self, part: &str) -> String {
        loop {
            let line = self.line();
            if line.contains(part) {
                return line;
            }
        }
    }

    /// Writes an empty line to the input of the process.
    pub(crate) fn say_line(&mut self) {
        let input = self.stdin.as_mut().expect("its input is ours");
        input.write_all(b"\n").expect("it reads");
    }

    pub(crate) fn pid(&self) -> Pid {
        Pid::from_child(&self.process.0)
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(self.pid(), signal).expect("it is there");
    }

    /// Closes the input of the process, and waits for its end.
    #[track_caller]
    pub(crate) fn end(mut self) -> Ended {
        self.stdin = None;
        self.wait()
    }

    /// Waits for the end of the process.
    #[track_caller]
    pub(crate) fn wait(mut self) -> Ended {
        let status = self.process.wait();
        Ended { status, lines: self.lines.iter().collect() }
    }
}

/// The exit status of a process, and its unread output.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) status: ExitStatus,
    pub(crate) lines: Vec<String>,
}

impl Ended {
    #[track_caller]
    pub(crate) fn assert(&self, code: i32, said: &str) {
        assert_eq!(self.status.code(), Some(code), "{self:?}");
        assert!(said.is_empty() || self.lines.iter().any(|line| line.contains(said)), "{self:?}");
    }
}
