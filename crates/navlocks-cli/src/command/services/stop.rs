//! `navlocks stop`.

use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::Args;
use navlocks::PartitionSnapshot;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::sockopt::socket_peercred;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use super::recovery;
use crate::command::target::Target;
use crate::exit::{Exit, Failure};
use crate::printer::{self, Harmless};
use crate::service_dir::ServiceDir;

/// The most held locks that the message names.
const NAMED_MAX: usize = 5;

/// End the user's own service
///
/// It starts again when it is needed. Commands that hold a lock or wait for one start it at once
/// and go on, so --force is needed if there are any: it ends the service, as for an upgrade, and
/// not the commands.
#[derive(Debug, Args)]
pub(crate) struct Stop {
    /// Also when locks are held, and when it does not end by itself
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    target: Target,
}

impl Stop {
    pub(crate) async fn perform(self) -> Result<(), Failure> {
        let Some(place) = self.target.place()? else {
            let message =
                "only the user's own service can be stopped: leave --url and NAVLOCKS_URL out";
            return Err(Failure::new(Exit::Usage, message));
        };
        if !self.force {
            self.refuse_if_held().await?;
        }
        match Running::find(&place)? {
            None if place.is_in_use()? => Err(crate::command::target::without_socket(&place)),
            None => printer::print("no service runs\n"),
            Some(service) => {
                let how = service.end(self.force, self.target.answer_timeout)?;
                printer::print(match how {
                    Ended::InOrder => "the service has ended\n",
                    Ended::Killed => "the service did not end by itself and was killed\n",
                })
            }
        }
    }

    async fn refuse_if_held(&self) -> Result<(), Failure> {
        let Some(locks) = self.target.connect_if_running().await? else { return Ok(()) };
        let (all, _) = self.target.query_all(&locks).await?;
        let unclaimed = self.target.answer(locks.unclaimed_sessions()).await?;
        Target::finish(locks).await;
        if let Some(first) = unclaimed.first() {
            let message = format!(
                "{}; --force ends the service all the same, and that client's locks stay held",
                recovery::sentence(first)
            );
            return Err(Failure::new(Exit::Conflict, message));
        }
        match all.iter().map(|one| one.snapshot.held.len()).sum() {
            0 => Ok(()),
            held => {
                let (locks, are) = if held == 1 { ("lock", "is") } else { ("locks", "are") };
                let which = all.iter().flat_map(named).take(NAMED_MAX).collect::<Vec<_>>();
                let (which, more) = (which.join(", "), if held > NAMED_MAX { ", …" } else { "" });
                let message = format!(
                    "{held} {locks} {are} held ({which}{more}), so the service would be started again at once: --force ends it all the same, and the locks stay held"
                );
                Err(Failure::new(Exit::Conflict, message))
            }
        }
    }
}

/// Returns the held locks of a partition in words.
fn named(partition: &PartitionSnapshot) -> impl Iterator<Item = String> {
    let space = match partition.partition.as_str() {
        "" => String::new(),
        name => format!(" in partition {}", Harmless(name)),
    };
    let held = partition.snapshot.held.iter();
    held.map(move |info| format!("'{}'{space} by {}", info.scope, crate::run::who(info)))
}

/// The end of a service.
#[derive(Clone, Copy, Debug)]
enum Ended {
    InOrder,
    Killed,
}

/// The process of a service that listens.
#[derive(Debug)]
pub(crate) struct Running {
    /// Keeps the process id from being used again.
    _connection: OwnedFd,
    pub(crate) pid: Pid,
}

impl Running {
    /// Finds the process that listens at the socket, as the kernel knows it.
    pub(crate) fn find(place: &ServiceDir) -> Result<Option<Self>, Failure> {
        place.look()?;
        let system = |error| {
            Failure::new(Exit::System, format!("the kernel does not say who listens: {error}"))
        };
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None);
        let connection = socket.map_err(system)?;
        let address = SocketAddrUnix::new(place.socket()).map_err(system)?;
        match connect(&connection, &address) {
            Ok(()) => {}
            // The queue of a service that hangs is full, so the kernel takes no connection.
            Err(Errno::AGAIN) => {
                return Err(crate::command::target::silent(&place.url(), Duration::ZERO));
            }
            Err(_) => return Ok(None),
        }
        let peer = socket_peercred(&connection).map_err(system)?;
        Ok(Some(Self { _connection: connection, pid: peer.pid }))
    }

    /// Returns true if the process runs this program. A supervisor may listen at a socket that it
    /// made.
    pub(crate) fn is_navlocks(&self) -> bool {
        program(Some(self.pid)).is_some_and(|path| {
            path.file_name() == program(None).as_deref().and_then(Path::file_name)
        })
    }

    /// Terminates the service. One that does not end in time is killed under `--force`.
    fn end(self, force: bool, answer_timeout: Duration) -> Result<Ended, Failure> {
        let pid = self.pid;
        if !self.is_navlocks() {
            let message = format!(
                "process {pid} listens for the service, which is not navlocks: stop it there, for instance with systemctl --user stop navlocks-user.socket"
            );
            return Err(Failure::new(Exit::Conflict, message));
        }
        let failed =
            |error| Failure::new(Exit::System, format!("cannot end process {pid}: {error}"));
        let process = pidfd_open(pid, PidfdFlags::empty()).map_err(failed)?;
        pidfd_send_signal(&process, Signal::TERM).map_err(failed)?;
        drop(self);
        if has_ended(&process, answer_timeout).map_err(failed)? {
            return Ok(Ended::InOrder);
        }
        if !force {
            let message = format!(
                "the service (process {pid}) does not end within {}: --force kills it",
                crate::command::say(answer_timeout)
            );
            return Err(Failure::new(Exit::Silent, message));
        }
        pidfd_send_signal(&process, Signal::KILL).map_err(failed)?;
        has_ended(&process, answer_timeout).map_err(failed)?;
        Ok(Ended::Killed)
    }
}

/// Waits for the end of a process until a time limit.
fn has_ended(process: &OwnedFd, limit: Duration) -> rustix::io::Result<bool> {
    let until = Instant::now() + limit;
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let left = Timespec { tv_sec: left.as_secs() as i64, tv_nsec: left.subsec_nanos().into() };
        match poll(&mut [PollFd::from_borrowed_fd(process.as_fd(), PollFlags::IN)], Some(&left)) {
            Err(Errno::INTR) => {}
            ended => return ended.map(|count| count > 0),
        }
    }
}

/// Returns the file of the program that a process runs; without a process id, of this one. The file
/// may be replaced since.
fn program(pid: Option<Pid>) -> Option<PathBuf> {
    let who = pid.map_or_else(|| "self".to_owned(), |pid| pid.as_raw_nonzero().to_string());
    let path = std::fs::read_link(format!("/proc/{who}/exe")).ok()?;
    let text = path.to_str().map(|text| text.trim_end_matches(" (deleted)").to_owned());
    text.map(PathBuf::from)
}
