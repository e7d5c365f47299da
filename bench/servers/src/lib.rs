//! Servers to measure: each a process with a folder of its own, and both are gone when it is dropped.

mod echo;
mod etcd;
mod folder;
mod memory;
mod navlocks;
mod nodes;
mod package;
mod postgres;
mod process;
mod redis;

use std::fmt;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::ops::Range;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use process::Process;

pub use echo::{WORD as ECHO_SERVER, serve as serve_echo};
pub use folder::Folder;
pub use package::{may_install, program};
pub use process::raise_open_files_limit;

/// Far above what any of them takes to come up.
const START_MAX: Duration = Duration::from_secs(30);

/// Where ports are looked for: below those that Linux gives to whoever connects, from 32768 on.
const PORTS: Range<u16> = 20_000..32_000;

/// How a client gets to its server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// By a path.
    Unix,
    /// By a port.
    Tcp,
}

impl fmt::Display for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unix => "unix",
            Self::Tcp => "tcp",
        })
    }
}

/// Where a server listens.
#[derive(Clone, Debug)]
pub enum Address {
    /// A path.
    Unix(PathBuf),
    /// A port.
    Tcp(SocketAddr),
}

impl Address {
    /// A port of this machine that is free now, and another one each time. Not one that the system would give: it also gives
    /// those to whoever connects to somewhere, and may do so before the server has begun to listen.
    fn free_port() -> io::Result<SocketAddr> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let mut tried = Err(io::ErrorKind::AddrInUse.into());
        for _ in PORTS {
            let turn = std::process::id().wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed));
            let port = PORTS.start + (turn % PORTS.len() as u32) as u16;
            tried = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).and_then(|it| it.local_addr());
            if tried.is_ok() {
                break;
            }
        }
        tried
    }

    fn accepts(&self) -> bool {
        match self {
            Self::Unix(path) => UnixStream::connect(path).is_ok(),
            Self::Tcp(address) => TcpStream::connect(address).is_ok(),
        }
    }
}

/// A server that runs.
#[derive(Debug)]
pub struct Server {
    /// The name of its program.
    pub name: &'static str,
    process: process::Id,
    addresses: Vec<Address>,
    log: PathBuf,
}

impl Server {
    /// Starts the command and waits until it accepts connections at every address.
    fn start(
        program: Program,
        folder: Folder,
        command: &mut Command,
        addresses: Vec<Address>,
    ) -> Result<Self, String> {
        let server = Self::launch(program, folder, command, addresses)?;
        server.wait_until_it_accepts()?;
        Ok(server)
    }

    /// Starts the command. It ends with the thread that calls this.
    fn launch(
        program: Program,
        folder: Folder,
        command: &mut Command,
        addresses: Vec<Address>,
    ) -> Result<Self, String> {
        let log = folder.path().join("log");
        let process = Process::start(program, folder, command)?;
        Ok(Self { name: program.name, process: process::keep(process), addresses, log })
    }

    fn wait_until_it_accepts(&self) -> Result<(), String> {
        self.wait_until(|| self.addresses.iter().all(Address::accepts)).map_err(|problem| {
            let log = std::fs::read_to_string(&self.log).unwrap_or_default();
            let last = log.lines().last().unwrap_or("it said nothing");
            format!("{} {problem}: {last}", self.name)
        })
    }

    fn wait_until(&self, ready: impl Fn() -> bool) -> Result<(), &'static str> {
        let start = Instant::now();
        while !ready() {
            if self.process.has_ended() {
                return Err("ended at once");
            }
            if start.elapsed() > START_MAX {
                return Err("did not come up");
            }
            thread::sleep(Duration::from_millis(10));
        }
        Ok(())
    }

    /// None where it does not listen.
    pub fn address(&self, transport: Transport) -> Option<&Address> {
        self.addresses.iter().find(|address| match address {
            Address::Unix(_) => transport == Transport::Unix,
            Address::Tcp(_) => transport == Transport::Tcp,
        })
    }

    /// The number of its first process.
    pub fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// Bytes in memory of all its processes, shared ones counted once.
    pub fn memory_bytes(&self) -> io::Result<u64> {
        memory::of_tree(self.process.pid())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.process.end();
    }
}

/// How a server is had.
#[derive(Clone, Copy, Debug)]
pub struct Program {
    /// Its name.
    pub name: &'static str,
    /// How it is told to end and throw everything away.
    end: process::End,
    /// The account to run as, where it is another one.
    account: fn() -> Option<&'static str>,
    /// Its version, from the line it prints.
    pub version: fn() -> Result<String, String>,
    /// Starts it.
    pub start: fn() -> Result<Server, String>,
}

pub use self::echo::PROGRAM as ECHO;
pub use self::etcd::{Members as EtcdMembers, PROGRAM as ETCD};
pub use self::navlocks::{PROGRAM as NAVLOCKS, command as navlocks_command};
pub use self::nodes::Nodes as NavlocksNodes;
pub use self::postgres::PROGRAM as POSTGRES;
pub use self::redis::PROGRAM as REDIS;

/// What a command prints, on one line; an error when it cannot be run or fails.
pub fn output(command: &mut Command) -> Result<String, String> {
    let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_string();
    let output = command.output().map_err(|error| format!("{command:?}: {error}"))?;
    if output.status.success() {
        Ok(said(&output.stdout))
    } else {
        let error = said(&output.stderr);
        Err(format!("{command:?}: {}", error.lines().last().unwrap_or("it failed")))
    }
}
