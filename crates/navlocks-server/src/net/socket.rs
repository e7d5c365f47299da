//! The Unix socket: in a folder that is its user's alone, made by one service at a time.

use std::fs::{self, DirBuilder, File, Permissions};
use std::io;
use std::os::unix::fs::{
    DirBuilderExt as _, FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _,
    PermissionsExt as _,
};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use tokio::net::UnixListener;

use crate::config::explain;

/// The right to the socket file of a path. Held as long as the service lives.
#[derive(Debug)]
pub(crate) struct SocketFile {
    path: PathBuf,
    /// Its lock is held as long as it is open.
    _lock: File,
}

impl SocketFile {
    /// Makes the socket. What a dead service left in its place is removed; a living one keeps it.
    pub(crate) fn bind(path: &Path) -> io::Result<(Self, UnixListener)> {
        let folder = match path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        check_folder(folder)?;
        let mut lock_path = path.as_os_str().to_owned();
        lock_path.push(".lock");
        let lock_path = PathBuf::from(lock_path);
        let lock = File::options()
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&lock_path)
            .map_err(|error| explain(error, "cannot make", &lock_path))?;
        match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(rustix::io::Errno::WOULDBLOCK) => {
                let text = format!("another service listens on {} already", path.display());
                return Err(io::Error::new(io::ErrorKind::AddrInUse, text));
            }
            Err(error) => return Err(explain(error.into(), "cannot lock", &lock_path)),
        }
        remove_stale(path)?;
        let listener =
            UnixListener::bind(path).map_err(|error| explain(error, "cannot listen on", path))?;
        // Nobody else gets into the folder; this is for those who look at the socket alone.
        fs::set_permissions(path, Permissions::from_mode(0o600))
            .map_err(|error| explain(error, "cannot protect", path))?;
        Ok((Self { path: path.to_owned(), _lock: lock }, listener))
    }

    /// Removes the socket file, so that nobody knocks at a closed door.
    pub(crate) fn remove(&self) {
        let _gone = fs::remove_file(&self.path);
    }
}

/// Makes the folder if it is missing, and checks that it is its user's alone.
fn check_folder(folder: &Path) -> io::Result<()> {
    let denied = |text: String| Err(io::Error::new(io::ErrorKind::PermissionDenied, text));
    let shown = folder.display();
    match DirBuilder::new().recursive(true).mode(0o700).create(folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            return Err(explain(error, "cannot make", folder));
        }
        _ => {}
    }
    let found =
        fs::symlink_metadata(folder).map_err(|error| explain(error, "cannot look at", folder))?;
    if !found.is_dir() {
        return denied(format!("{shown} is no folder: a socket needs one that is yours alone"));
    }
    let (owner, me) = (found.uid(), rustix::process::geteuid().as_raw());
    if owner != me {
        return denied(format!("the folder {shown} belongs to user {owner}, not to you ({me})"));
    }
    let mode = found.mode() & 0o777;
    if mode & 0o077 != 0 {
        return denied(format!(
            "the folder {shown} is open to others (mode {mode:04o}): chmod 700 it, or choose another"
        ));
    }
    Ok(())
}

fn remove_stale(path: &Path) -> io::Result<()> {
    let found = match fs::symlink_metadata(path) {
        Ok(found) => found,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(explain(error, "cannot look at", path)),
    };
    if !found.file_type().is_socket() {
        let text = format!("{} is there and is no socket: move it away", path.display());
        return Err(io::Error::new(io::ErrorKind::AlreadyExists, text));
    }
    fs::remove_file(path).map_err(|error| explain(error, "cannot remove", path))
}
