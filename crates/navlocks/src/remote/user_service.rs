//! The service of a user: its socket, and how it is started.

use std::collections::hash_map::RandomState;
use std::ffi::OsString;
use std::fmt;
use std::hash::BuildHasher as _;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::thread;

use tokio::net::UnixStream;

use super::errors::ConnectError;
use super::service_dir::{ServiceDir, look};

/// Returns the socket of this user's service, which no other user can have made.
pub(super) fn socket() -> Result<PathBuf, ConnectError> {
    let found = ServiceDir::of_user().and_then(|service| {
        look(service.folder())?;
        Ok(service.socket())
    });
    found.map_err(|error| match error.kind() {
        io::ErrorKind::PermissionDenied => ConnectError::Unsafe(error.to_string()),
        _ => ConnectError::Unreachable(error),
    })
}

/// A function that starts a service. It may block, and returns when the service listens.
#[derive(Clone)]
pub(crate) struct Start(Arc<dyn Fn() -> io::Result<()> + Send + Sync>);

impl Start {
    pub(super) fn with(start: impl Fn() -> io::Result<()> + Send + Sync + 'static) -> Self {
        Self(Arc::new(start))
    }

    /// Starts the service by a command that runs nothing: once, however many processes do so at the
    /// same time.
    pub(super) fn by(command: OsString) -> Self {
        Self::with(move || run(&command).map_err(io::Error::other))
    }
}

impl fmt::Debug for Start {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Start")
    }
}

/// Returns a number that differs from process to process, and from call to call.
pub(super) fn random() -> u64 {
    RandomState::new().hash_one(())
}

/// Starts the service if no process listens at the socket.
pub(super) async fn start(socket: &Path, start: &Start) -> Result<(), ConnectError> {
    if UnixStream::connect(socket).await.is_ok() {
        return Ok(());
    }
    let (tell, told) = tokio::sync::oneshot::channel();
    // Waiting for a process blocks, and must not block the runtime.
    let start = start.clone();
    let run = move || drop(tell.send((start.0)()));
    let started = thread::Builder::new().name("navlocks-start".into()).spawn(run);
    started.map_err(ConnectError::Unreachable)?;
    let ended = told.await.unwrap_or_else(|_| Err(io::Error::other("it was not waited for")));
    ended.map_err(|why| {
        ConnectError::Unreachable(io::Error::other(format!("its service did not start: {why}")))
    })
}

fn run(command: &OsString) -> Result<(), String> {
    let shown = command.display();
    let mut run = Command::new(command);
    run.args(["run", "--partition", "navlocks-start", "start", "--"]).arg(command).arg("--version");
    run.env_remove("NAVLOCKS_URL").env_remove("NAVLOCKS_TOKEN").stdin(Stdio::null());
    match run.output() {
        Ok(ended) if ended.status.success() => Ok(()),
        Ok(ended) => Err(String::from_utf8_lossy(&ended.stderr).trim().to_owned()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Err(format!("there is no command '{shown}': install it, or name it with NAVLOCKS_BIN"))
        }
        Err(error) => Err(format!("'{shown}' cannot be executed: {error}")),
    }
}
