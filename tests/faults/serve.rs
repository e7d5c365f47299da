//! `navlocks serve` as a process that is killed and restarted.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use navlocks::Locks;
use navlocks::blocking::block_on;
use navlocks_tests::chaos::Service;
use servers::Address;

pub(crate) const NAVLOCKS: &str = env!("CARGO_BIN_EXE_navlocks-tested");

/// A service with a folder for its state.
pub(crate) struct Served {
    folder: PathBuf,
    url: String,
    arguments: Vec<String>,
    /// A command that starts the service, such as a shell with a limit.
    starter: Vec<String>,
}

impl Served {
    /// Uses a port that stays free between two starts.
    pub(crate) fn tcp(folder: &Path) -> io::Result<Self> {
        let address = Address::free_port()?;
        let arguments =
            ["--no-socket", "--fresh", "--listen", &address.to_string()].map(Into::into).into();
        Ok(Self::new(folder, format!("ws://{address}"), arguments))
    }

    /// Uses a Unix socket.
    pub(crate) fn unix(folder: &Path) -> Self {
        let socket = folder.join("own/socket").display().to_string();
        let url = format!("unix:{socket}");
        Self::new(folder, url, ["--socket".into(), socket].into())
    }

    fn new(folder: &Path, url: String, arguments: Vec<String>) -> Self {
        Self { folder: folder.to_path_buf(), url, arguments, starter: Vec::new() }
    }

    /// Returns the same with more arguments.
    pub(crate) fn with(mut self, arguments: &[&str]) -> Self {
        self.arguments.extend(arguments.iter().map(ToString::to_string));
        self
    }

    /// Sets the command that starts the service from now on.
    pub(crate) fn started_by(&mut self, starter: &[&str]) {
        self.starter = starter.iter().map(ToString::to_string).collect();
    }

    /// Returns the folder of tables and state.
    pub(crate) fn state(&self) -> PathBuf {
        self.folder.join("state")
    }

    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.folder.join("log")).unwrap_or_default()
    }

    /// Starts it and waits until it listens.
    pub(crate) fn run(&mut self) -> Running {
        let running = Running(self.start().expect("the service starts"));
        let begin = Instant::now();
        while !self.answers() {
            assert!(begin.elapsed() < Duration::from_secs(20), "{}", self.log());
            sleep(Duration::from_millis(5));
        }
        running
    }
}

impl Service for Served {
    fn url(&self) -> String {
        self.url.clone()
    }

    fn start(&mut self) -> io::Result<Child> {
        let log = File::options().append(true).create(true).open(self.folder.join("log"))?;
        let program: Vec<&str> =
            self.starter.iter().map(String::as_str).chain([NAVLOCKS]).collect();
        Command::new(program[0])
            .args(&program[1..])
            .arg("serve")
            .args(&self.arguments)
            .arg("--state-dir")
            .arg(self.state())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
    }

    fn answers(&mut self) -> bool {
        let asked = async {
            let locks = Locks::connect(self.url()).await.ok()?;
            let answer = locks.query().await.ok();
            locks.disconnect().await;
            answer
        };
        block_on(asked).is_some()
    }
}

/// A process of this test. It is killed when dropped.
pub(crate) struct Running(pub(crate) Child);

impl Running {
    /// Ends it at once.
    pub(crate) fn kill(mut self) {
        self.0.kill().expect("it runs");
        self.0.wait().expect("it was not waited for");
    }

    /// Sends a signal.
    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_child(&self.0);
        rustix::process::kill_process(pid, signal).expect("it runs");
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
