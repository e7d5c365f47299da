//! `navlocks stop`.

use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::Args;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::sockopt::socket_peercred;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use super::target::Target;
use crate::exit::{Exit, Failure};
use crate::place::Place;
use crate::printer;

/// How long a service may take to end.
const END_MAX: Duration = Duration::from_secs(10);

/// End the user's own service
///
/// It tells everybody who is connected, and starts again when it is needed. Commands that wait go on
/// waiting, at the new one; commands that hold a lock lose it and are ended, so --force is needed if there are any.
#[derive(Debug, Args)]
pub(super) struct Stop {
    /// Also when locks are held
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    target: Target,
}

impl Stop {
    pub(super) async fn perform(self) -> Result<(), Failure> {
        let Some(place) = self.target.place()? else {
            let message =
                "only the user's own service can be stopped: leave --url and NAVLOCKS_URL out";
            return Err(Failure::new(Exit::Usage, message));
        };
        if !self.force {
            self.refuse_if_held().await?;
        }
        match Running::find(&place)? {
            None => printer::print("no service runs\n"),
            Some(service) => {
                service.end()?;
                printer::print("the service has ended\n")
            }
        }
    }

    async fn refuse_if_held(&self) -> Result<(), Failure> {
        let Some(locks) = self.target.connect_if_running().await? else { return Ok(()) };
        let snapshot = locks.query().await.map_err(super::target::unanswered)?;
        Target::finish(locks).await;
        match snapshot.held.len() {
            0 => Ok(()),
            held => {
                let (locks, are) = if held == 1 { ("lock", "is") } else { ("locks", "are") };
                let message = format!(
                    "{held} {locks} {are} held and would be lost: --force ends the service all the same"
                );
                Err(Failure::new(Exit::Conflict, message))
            }
        }
    }
}

/// A service that listens, and the process that it is.
#[derive(Debug)]
pub(super) struct Running {
    /// Keeps the number from being another process's.
    _connection: UnixStream,
    pub(super) pid: Pid,
}

impl Running {
    /// Who listens at the socket, as the kernel knows it.
    pub(super) fn find(place: &Place) -> Result<Option<Self>, Failure> {
        place.look()?;
        let Ok(connection) = UnixStream::connect(place.socket()) else { return Ok(None) };
        let peer = socket_peercred(&connection).map_err(|error| {
            Failure::new(Exit::System, format!("the kernel does not say who listens: {error}"))
        })?;
        Ok(Some(Self { _connection: connection, pid: peer.pid }))
    }

    /// Whether the process that listens is this program. A socket that a supervisor made is listened to by that.
    pub(super) fn is_navlocks(&self) -> bool {
        program(Some(self.pid)).is_some_and(|path| {
            path.file_name() == program(None).as_deref().and_then(Path::file_name)
        })
    }

    fn end(self) -> Result<(), Failure> {
        let pid = self.pid;
        if !self.is_navlocks() {
            let message = format!(
                "process {pid} listens for the service, which is not navlocks: stop it there, for instance with systemctl --user stop navlocks.socket"
            );
            return Err(Failure::new(Exit::Conflict, message));
        }
        let failed =
            |error| Failure::new(Exit::System, format!("cannot end process {pid}: {error}"));
        let process = pidfd_open(pid, PidfdFlags::empty()).map_err(failed)?;
        pidfd_send_signal(&process, Signal::TERM).map_err(failed)?;
        drop(self);
        let until = Instant::now() + END_MAX;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let left =
                Timespec { tv_sec: left.as_secs() as i64, tv_nsec: left.subsec_nanos().into() };
            match poll(&mut [PollFd::from_borrowed_fd(process.as_fd(), PollFlags::IN)], Some(&left))
            {
                Err(rustix::io::Errno::INTR) => {}
                Ok(0) => {
                    let message =
                        format!("the service (process {pid}) does not end within {END_MAX:?}");
                    return Err(Failure::new(Exit::Service, message));
                }
                Ok(_) => return Ok(()),
                Err(error) => return Err(failed(error)),
            }
        }
    }
}

/// The program that a process runs, this one's without a number. Its file may have been replaced since.
fn program(pid: Option<Pid>) -> Option<PathBuf> {
    let who = pid.map_or_else(|| "self".to_owned(), |pid| pid.as_raw_nonzero().to_string());
    let path = std::fs::read_link(format!("/proc/{who}/exe")).ok()?;
    let text = path.to_str().map(|text| text.trim_end_matches(" (deleted)").to_owned());
    text.map(PathBuf::from)
}
