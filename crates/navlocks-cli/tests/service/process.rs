//! The service as a real process of the real program.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use navlocks_wire::FaultCode;
use rustix::process::{Pid, Signal, kill_process};

use crate::client::{Client, unix_stream};
use crate::running::Folder;

/// A service in a process of its own. Dropping it kills the process.
pub(crate) struct Process {
    child: Child,
    folder: Folder,
    /// The line with the addresses of the service.
    listening: String,
}

const PROGRAM: &str = env!("CARGO_BIN_EXE_navlocks");

impl Process {
    /// Starts a service by this command, and waits until it listens.
    fn start(folder: Folder, command: Command) -> Self {
        Self::start_with(folder, command, &[])
    }

    /// Starts a service that listens on a TCP port, too.
    pub(crate) fn with_tcp() -> Self {
        let options = ["--fresh", "--listen", "127.0.0.1:0"];
        Self::start_with(Folder::new(), Command::new(PROGRAM), &options)
    }

    fn start_with(folder: Folder, mut command: Command, options: &[&str]) -> Self {
        command.env("NAVLOCKS_DIR", folder.path()).env_remove("NAVLOCKS_TOKEN");
        command.args(["serve", "--state-dir"]).arg(folder.path().join("state")).args(options);
        let mut child = command.stdout(Stdio::piped()).spawn().expect("the program starts");
        let mut line = String::new();
        let out = child.stdout.as_mut().expect("its output is read");
        BufReader::new(out).read_line(&mut line).expect("it says something");
        assert!(line.starts_with("listening on unix:"), "{line}");
        Self { child, folder, listening: line }
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.folder.path().join("socket")
    }

    /// Returns the address of its TCP port.
    pub(crate) fn tcp(&self) -> SocketAddr {
        let (_, address) = self.listening.trim().rsplit_once("ws://").expect("it has a TCP port");
        address.parse().expect("an address")
    }

    /// Returns the memory that it uses.
    pub(crate) fn resident_bytes(&self) -> usize {
        let path = format!("/proc/{}/status", self.child.id());
        let status = std::fs::read_to_string(path).expect("it runs");
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kib = line.and_then(|line| line.trim().strip_suffix(" kB")).expect("a number of kB");
        kib.parse::<usize>().expect("a number") << 10
    }

    fn signal(&self, signal: Signal) {
        let pid = Pid::from_child(&self.child);
        kill_process(pid, signal).expect("it runs");
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _gone = self.child.kill();
        let _gone = self.child.wait();
    }
}

/// Runs the program by a shell after these words.
fn shell(words: &str) -> Command {
    let mut command = Command::new("sh");
    command.arg("-c").arg(format!(r#"{words} exec "$0" "$@""#)).arg(PROGRAM);
    command
}

#[test]
fn sigterm_ends_the_service_in_good_order() {
    let mut process = Process::start(Folder::new(), Command::new(PROGRAM));
    let mut client = Client::unix(&process.socket());
    process.signal(Signal::TERM);
    assert_eq!(client.error().0, FaultCode::ShuttingDown);
    drop(client);
    assert!(process.child.wait().unwrap().success());
    assert!(!process.socket().exists());
    let state = process.folder.path().join("state/service.json");
    // The session goes on with the next service: its client did not end it.
    assert!(std::fs::read_to_string(state).unwrap().contains(r#""clean":false"#));
}

#[test]
fn service_without_free_descriptors_serves_its_clients_and_refuses_others() {
    let process = Process::start(Folder::new(), shell("ulimit -n 40;"));
    let mut client = Client::unix(&process.socket());
    let mut others: Vec<UnixStream> = (0..60).map(|_| unix_stream(&process.socket())).collect();
    client.hold(1, "a");
    // One of the last connections received an error.
    let mut answer = [0; 12];
    others.last_mut().expect("there are some").read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"HTTP/1.1 503");
    drop(others);
    client.hold(2, "b");
    let mut answer = String::new();
    // The service has free descriptors again when it has noticed the closed connections.
    while !answer.starts_with("HTTP/1.1 200") {
        let mut stream = unix_stream(&process.socket());
        stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
        answer.clear();
        let _reset = stream.read_to_string(&mut answer);
    }
    Client::unix(&process.socket()).hold(1, "c");
}

#[test]
fn service_goes_on_when_the_disk_of_its_log_is_full() {
    let mut command = Command::new(PROGRAM);
    let full = std::fs::File::create("/dev/full").unwrap();
    command.env("NAVLOCKS_LOG", "trace").stderr(full);
    let mut process = Process::start(Folder::new(), command);
    let mut client = Client::unix(&process.socket());
    client.hold(1, "a");
    let mut garbage = Client::unix(&process.socket());
    garbage.say("garbage");
    garbage.error();
    drop(garbage);
    client.hold(2, "b");
    drop(client);
    process.signal(Signal::TERM);
    assert!(process.child.wait().unwrap().success());
}

#[test]
fn log_is_json_without_secrets() {
    let folder = Folder::new();
    let tokens = folder.path().join("tokens");
    std::fs::write(&tokens, "bakery:0123456789abcdef-b\n").unwrap();
    std::fs::set_permissions(&tokens, std::fs::Permissions::from_mode(0o600)).unwrap();
    let log = folder.path().join("log");
    let mut command = shell("");
    command.env("NAVLOCKS_LOG", "trace").stderr(std::fs::File::create(&log).unwrap());
    command.env("NAVLOCKS_DIR", folder.path());
    let mut child = command
        .args([
            "serve",
            "--log-format",
            "json",
            "--fresh",
            "--listen",
            "127.0.0.1:0",
            "--token-file",
        ])
        .arg(&tokens)
        .arg("--state-dir")
        .arg(folder.path().join("state"))
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    let address = line.trim().rsplit_once("ws://").unwrap().1;
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    let authorization = "Authorization: Bearer 0123456789abcdef-b";
    let request = format!("GET /metrics HTTP/1.1\r\nHost: {address}\r\n{authorization}\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    assert!(child.wait().unwrap().success());
    let log = std::fs::read_to_string(log).unwrap();
    assert!(log.contains("the service listens") && log.contains("shuts down"), "{log}");
    assert!(!log.contains("0123456789"), "{log}");
    for line in log.lines() {
        serde_json::from_str::<serde_json::Value>(line).expect(line);
    }
}

#[test]
fn sighup_reads_tokens_and_origins_again_and_sessions_go_on() {
    let folder = Folder::new();
    let tokens = folder.path().join("tokens");
    let write = |text: &str| {
        std::fs::write(&tokens, text).unwrap();
        std::fs::set_permissions(&tokens, std::fs::Permissions::from_mode(0o600)).unwrap();
    };
    write("bakery:0123456789abcdef-b\n");
    let log = folder.path().join("log");
    let mut command = Command::new(PROGRAM);
    command.stderr(std::fs::File::create(&log).unwrap());
    let file = tokens.display().to_string();
    let origins = folder.path().join("origins");
    std::fs::write(&origins, "# none yet\n").unwrap();
    let listed = origins.display().to_string();
    let options = ["--fresh", "--listen", "127.0.0.1:0", "--token-file", &file];
    let options = [&options[..], &["--origins-file", &listed]].concat();
    let mut process = Process::start_with(folder, command, &options);
    let until_logged = |process: &mut Process, text: &str| {
        while !std::fs::read_to_string(&log).unwrap().contains(text) {
            assert!(process.child.try_wait().unwrap().is_none(), "the service has ended");
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
    };
    let mut client = Client::unix(&process.socket());
    client.hold(1, "a");
    // The file has not changed, so the service reads it because of the signal alone.
    process.signal(Signal::HUP);
    until_logged(&mut process, "the tokens were read again");
    until_logged(&mut process, "the origins were read again");
    std::fs::write(&origins, "no origin\n").unwrap();
    process.signal(Signal::HUP);
    until_logged(&mut process, "the origins stay as they were");
    write("short\n");
    process.signal(Signal::HUP);
    until_logged(&mut process, "the tokens stay as they were");
    client.hold(2, "b");
}

#[test]
fn inherited_sockets_are_served() {
    let folder = Folder::new();
    let path = folder.path().join("handed");
    let listener = UnixListener::bind(&path).unwrap();
    // The service inherits its socket as from systemd: descriptor 3, and two variables.
    let mut command =
        shell("exec 3<&0 </dev/null; LISTEN_FDS=1 LISTEN_PID=$$; export LISTEN_FDS LISTEN_PID;");
    command.stdin(Stdio::from(OwnedFd::from(listener)));
    // A client that connects before the service runs waits, and is served.
    let early = unix_stream(&path);
    let mut process = Process::start(folder, command);
    let mut early = Client::silent(early);
    early.hello();
    early.hold(1, "a");
    Client::unix(&path).hold(1, "b");
    drop(early);
    process.signal(Signal::TERM);
    assert!(process.child.wait().unwrap().success());
    // The service does not remove a socket that it inherited.
    assert!(Path::new(&path).exists());
    assert!(!process.socket().exists());
}
