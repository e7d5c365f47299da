//! Servers to measure: each a process with a folder of its own; dropping a server removes both.

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
mod skip;

use std::fmt;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::ops::Range;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{self as unix, UnixListener, UnixStream};
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
pub use skip::skip;

/// Far above the start time of any server.
const START_MAX: Duration = Duration::from_secs(30);

/// The range of ports: below the ephemeral ports of Linux, which start at 32768.
const PORTS: Range<u16> = 20_000..32_000;

/// The transport between client and server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// A Unix socket.
    Unix,
    /// TCP.
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

/// An address at which a server listens.
#[derive(Clone, Debug)]
pub enum Address {
    /// A path.
    Unix(PathBuf),
    /// A port.
    Tcp(SocketAddr),
}

impl Address {
    /// Returns a free port of this machine, reserved for this process. An ephemeral port would not
    /// do: the system may give it to an outgoing connection before the server listens.
    pub fn free_port() -> io::Result<SocketAddr> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let mut tried = Err(io::ErrorKind::AddrInUse.into());
        for _ in PORTS {
            let turn = std::process::id().wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed));
            let port = PORTS.start + (turn % PORTS.len() as u32) as u16;
            tried = reserve(port)
                .and_then(|()| TcpListener::bind((Ipv4Addr::LOCALHOST, port)))
                .and_then(|it| it.local_addr());
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

/// Reserves a port until this process ends, by an abstract socket of its number. Two processes that
/// look at the same moment would otherwise find the same port.
fn reserve(port: u16) -> io::Result<()> {
    let name = unix::SocketAddr::from_abstract_name(format!("navlocks-port-{port}"))?;
    std::mem::forget(UnixListener::bind_addr(&name)?);
    Ok(())
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

    /// Starts the command. It ends with the calling thread.
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
        self.wait_until(|| self.addresses.iter().all(Address::accepts))
            .map_err(|problem| format!("{} {problem}: {}", self.name, self.last_words()))
    }

    /// The last line of its log.
    pub fn last_words(&self) -> String {
        let log = std::fs::read_to_string(&self.log).unwrap_or_default();
        log.lines().last().unwrap_or("it said nothing").to_string()
    }

    /// Whether its first process is gone.
    pub fn has_ended(&self) -> bool {
        self.process.has_ended()
    }

    /// Kills it with all its processes, and starts it again in the same folder. It need not accept
    /// connections yet.
    ///
    /// # Errors
    /// It does not end, or cannot be started.
    pub fn kill_and_start(&self) -> io::Result<()> {
        self.process.kill_and_start()
    }

    fn wait_until(&self, ready: impl Fn() -> bool) -> Result<(), &'static str> {
        let start = Instant::now();
        while !ready() {
            if self.has_ended() {
                return Err("ended at once");
            }
            if start.elapsed() > START_MAX {
                return Err("did not come up");
            }
            thread::sleep(Duration::from_millis(10));
        }
        Ok(())
    }

    /// Returns its address; none if it does not use this transport.
    pub fn address(&self, transport: Transport) -> Option<&Address> {
        self.addresses.iter().find(|address| match address {
            Address::Unix(_) => transport == Transport::Unix,
            Address::Tcp(_) => transport == Transport::Tcp,
        })
    }

    /// Returns the id of its first process.
    pub fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// Returns the memory of all its processes in bytes, with shared pages counted once.
    pub fn memory_bytes(&self) -> io::Result<u64> {
        memory::of_tree(self.process.pid())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.process.end();
    }
}

/// A server program: its version and how to start and end it.
#[derive(Clone, Copy, Debug)]
pub struct Program {
    /// Its name.
    pub name: &'static str,
    /// How to end it and discard its data.
    end: process::End,
    /// The account to run as, if it is another one.
    account: fn() -> Option<&'static str>,
    /// Returns its version, from its output.
    pub version: fn() -> Result<String, String>,
    /// Starts it.
    pub start: fn() -> Result<Server, String>,
}

pub use self::echo::PROGRAM as ECHO;
pub use self::etcd::{Members as EtcdMembers, PROGRAM as ETCD};
pub use self::navlocks::{PROGRAM as NAVLOCKS, command as navlocks_command};
pub use self::nodes::Nodes as NavlocksNodes;
pub use self::postgres::PROGRAM as POSTGRES;
pub use self::redis::{LOGGED as REDIS_AOF, PROGRAM as REDIS};

/// Returns the output of a command on one line; an error when it cannot be run or fails.
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
