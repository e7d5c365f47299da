//! A service in a process of its own, with the default limits but for its leases.

use std::io::{BufRead as _, BufReader, Lines, Read as _, Write as _};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

use crate::bystander::with_tenants;
use crate::client::unix_stream;
use crate::running::Running;

/// A number that the service shows to operators, the sum over its labels.
pub(crate) fn metric(unix: &Path, name: &str) -> u64 {
    let mut stream = unix_stream(unix);
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n").expect("the service listens");
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("metrics");
    let name = format!("navlocks_{name}");
    let values = text.lines().filter_map(|line| line.strip_prefix(&name)?.rsplit_once(' '));
    let of_name = values.filter(|(labels, _)| labels.is_empty() || labels.starts_with('{'));
    let numbers: Vec<u64> = of_name.map(|(_, it)| it.parse().expect("a number")).collect();
    assert!(!numbers.is_empty(), "no metric {name}");
    numbers.into_iter().sum()
}

/// Raises the limit of open files for this process and its children. Returns false and skips the
/// test if so many are not allowed.
pub(crate) fn may_open(files: usize) -> bool {
    let allowed = servers::raise_open_files_limit();
    let enough = allowed >= files as u64;
    if !enough {
        servers::skip(format!("it needs {files} open files, and `ulimit -Hn` allows {allowed}"));
    }
    enough
}

/// A service in a process of its own, with the default limits, so that its memory can be measured.
pub(crate) struct Process {
    child: Child,
    pub(crate) tcp: SocketAddr,
    pub(crate) unix: PathBuf,
    /// A closed pipe would end it.
    _output: Lines<BufReader<ChildStdout>>,
}

impl Process {
    pub(crate) fn start() -> Self {
        let program = std::env::current_exe().expect("the test's own program");
        let mut child = Command::new(program)
            .args(["--exact", "process::process_of_a_trial", "--nocapture", "--ignored"])
            .env("NAVLOCKS_TRIAL", "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the process starts");
        let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
        let line = lines.by_ref().map_while(Result::ok).find(|line| line.starts_with("trial on "));
        let line = line.expect("the service starts");
        let (tcp, unix) = line["trial on ".len()..].split_once(' ').expect("two addresses");
        let tcp = tcp.parse().expect("an address");
        Self { child, tcp, unix: unix.into(), _output: lines }
    }

    /// The number of its process.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Its memory in bytes.
    pub(crate) fn memory(&self) -> usize {
        let path = format!("/proc/{}/status", self.child.id());
        let status = std::fs::read_to_string(path).expect("it runs");
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a size");
        let kilobytes: usize = line.trim().trim_end_matches(" kB").parse().expect("a number");
        kilobytes << 10
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ended = self.child.wait();
    }
}

/// Not a test: what [`Process`] runs until its standard input is closed.
#[test]
#[ignore = "the process of other tests"]
fn process_of_a_trial() {
    if std::env::var_os("NAVLOCKS_TRIAL").is_none() {
        return;
    }
    let service = Running::with(with_tenants);
    println!("\ntrial on {} {}", service.tcp(), service.unix().display());
    let _closed = std::io::stdin().read_to_end(&mut Vec::new());
    service.kill();
}
