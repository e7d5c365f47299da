//! The Unix socket: in a folder that is its user's alone, made by one service at a time.

use std::fs::{self, DirBuilder, Metadata, Permissions};
use std::io;
use std::os::unix::fs::{
    DirBuilderExt as _, FileTypeExt as _, MetadataExt as _, PermissionsExt as _,
};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::inotify;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};
use tokio::io::AsyncReadExt as _;
use tokio::net::UnixListener;
use tokio::net::unix::pipe;

use crate::config::{SharedSocket, explain};
use crate::store::{FolderLock, PRESENCE, StateFile};

/// How often the socket file is looked at where the system does not tell of changes.
const LOOK_EVERY: Duration = Duration::from_secs(10);

/// The right to the socket file of a path. Held as long as the service lives.
#[derive(Debug)]
pub(crate) struct SocketFile {
    path: PathBuf,
    folder: PathBuf,
    /// Of the folder; none, if the state file is in there as well and so the folder is locked
    /// already.
    lock: Option<FolderLock>,
    /// The users that may connect besides its own.
    sharing: Option<SharedSocket>,
    /// Which file it is, to know it from another one of the same path.
    identity: (u64, u64),
}

impl SocketFile {
    /// Makes the folder of a shared socket before the state folder in it, which is closed to
    /// others.
    pub(crate) fn prepare(path: &Path, sharing: SharedSocket) -> io::Result<()> {
        check_folder(folder_of(path), Some(sharing))
    }

    /// Lets the clients of other users make their sockets of presence in the state folder. They can
    /// list nothing there, and remove only their own.
    pub(crate) fn open_presence(state: &Path) -> io::Result<()> {
        let set = |folder: &Path, mode| {
            fs::set_permissions(folder, Permissions::from_mode(mode))
                .map_err(|error| explain(error, "cannot open to clients", folder))
        };
        set(state, 0o711)?;
        set(&state.join(PRESENCE), 0o1733)
    }

    /// Makes the socket. The socket of a dead service is removed; a living service keeps its own.
    pub(crate) fn bind(
        path: &Path,
        sharing: Option<SharedSocket>,
        state: Option<&StateFile>,
    ) -> io::Result<(Self, UnixListener)> {
        let folder = folder_of(path);
        check_folder(folder, sharing)?;
        let lock = lock(path, folder, state)?;
        let (listener, identity) = listen(path, sharing)?;
        let (path, folder) = (path.to_owned(), folder.to_owned());
        Ok((Self { path, folder, lock, sharing, identity }, listener))
    }

    /// Makes the socket again after its file was removed, perhaps with its folder.
    pub(crate) fn bind_again(&mut self, state: Option<&StateFile>) -> io::Result<UnixListener> {
        check_folder(&self.folder, self.sharing)?;
        if self.lock.as_ref().is_none_or(|lock| !lock.is_of(&self.folder)) {
            self.lock = lock(&self.path, &self.folder, state)?;
        }
        let (listener, identity) = listen(&self.path, self.sharing)?;
        self.identity = identity;
        Ok(listener)
    }

    /// Returns when the file at the path is not the one that this service made.
    pub(crate) async fn gone(&self) {
        let mut watch = self.watch();
        let mut changes = [0; 1024];
        while self.is_there() {
            let changed = async {
                match &mut watch {
                    Some(watch) => watch.read(&mut changes).await,
                    None => std::future::pending().await,
                }
            };
            let _in_vain = tokio::time::timeout(LOOK_EVERY, changed).await;
        }
    }

    fn is_there(&self) -> bool {
        fs::symlink_metadata(&self.path).is_ok_and(|found| identity(&found) == self.identity)
    }

    /// Tells of changes in the folder. None, when the system has no room for that.
    fn watch(&self) -> Option<pipe::Receiver> {
        use inotify::{CreateFlags, WatchFlags};
        let watch = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).ok()?;
        let changes =
            WatchFlags::DELETE | WatchFlags::MOVE | WatchFlags::DELETE_SELF | WatchFlags::MOVE_SELF;
        inotify::add_watch(&watch, &self.folder, changes).ok()?;
        // To be read from is all that a pipe can do, too.
        pipe::Receiver::from_owned_fd_unchecked(watch).ok()
    }

    /// Removes the socket file, so that no client connects to a closed one.
    pub(crate) fn remove(&self) {
        if self.is_there() {
            let _gone = fs::remove_file(&self.path);
        }
    }
}

/// Checks that no other user could replace a socket at this path. A missing folder will be made.
pub(crate) fn check_path(path: &Path, sharing: Option<SharedSocket>) -> io::Result<()> {
    let folder = folder_of(path);
    if fs::symlink_metadata(folder).is_ok() { check_owned(folder, sharing) } else { Ok(()) }
}

fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// Makes the folder if it is missing, and checks it.
fn check_folder(folder: &Path, sharing: Option<SharedSocket>) -> io::Result<()> {
    let is_new = sharing.is_some() && fs::symlink_metadata(folder).is_err();
    match DirBuilder::new().recursive(true).mode(0o700).create(folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            return Err(explain(error, "cannot make", folder));
        }
        // Whatever the umask is.
        Ok(()) if is_new => fs::set_permissions(folder, Permissions::from_mode(0o755))
            .map_err(|error| explain(error, "cannot open to others", folder))?,
        _ => {}
    }
    check_owned(folder, sharing)
}

/// Checks that no other user can change a folder. Other users can enter that of a shared socket,
/// and no other one.
fn check_owned(folder: &Path, sharing: Option<SharedSocket>) -> io::Result<()> {
    let denied = |text: String| Err(io::Error::new(io::ErrorKind::PermissionDenied, text));
    let shown = folder.display();
    let found =
        fs::symlink_metadata(folder).map_err(|error| explain(error, "cannot look at", folder))?;
    if !found.is_dir() {
        return denied(format!("{shown} is no folder: a socket needs one that is yours alone"));
    }
    let (owner, me) = (found.uid(), rustix::process::geteuid().as_raw());
    if owner != me {
        return denied(format!(
            "the folder {shown} belongs to user {owner}, not to user {me}: ask that user or root to remove it, or choose another"
        ));
    }
    let mode = found.mode() & 0o777;
    if sharing.is_some() {
        let wrong = match mode {
            _ if mode & 0o022 != 0 => "others can write into it",
            _ if mode & 0o011 == 0 => "others cannot enter it",
            _ => return Ok(()),
        };
        return denied(format!(
            "the folder {shown} is not right for a shared socket: {wrong} (mode {mode:04o}): chmod 755 it, or choose another"
        ));
    }
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
    if answers(path)? {
        return Err(in_use(path));
    }
    fs::remove_file(path).map_err(|error| explain(error, "cannot remove", path))
}

/// Whether a process listens at the socket. Does not wait, not even for one that hangs.
fn answers(path: &Path) -> io::Result<bool> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let asked = SocketAddrUnix::new(path).and_then(|address| {
        connect(&socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?, &address)
    });
    match asked {
        Ok(()) | Err(Errno::AGAIN | Errno::INPROGRESS) => Ok(true),
        Err(Errno::CONNREFUSED | Errno::NOENT) => Ok(false),
        Err(error) => Err(explain(error.into(), "cannot ask at", path)),
    }
}

/// Locks the folder of the socket, unless the service has locked it for its state.
fn lock(path: &Path, folder: &Path, state: Option<&StateFile>) -> io::Result<Option<FolderLock>> {
    if state.is_some_and(|state| state.is_in(folder)) {
        return Ok(None);
    }
    let taken = FolderLock::take(folder).map_err(|error| explain(error, "cannot lock", folder))?;
    taken.map(Some).ok_or_else(|| in_use(path))
}

/// Makes the socket file where no living one is.
fn listen(path: &Path, sharing: Option<SharedSocket>) -> io::Result<(UnixListener, (u64, u64))> {
    remove_stale(path)?;
    let listener =
        UnixListener::bind(path).map_err(|error| explain(error, "cannot listen on", path))?;
    if let Some(group) = sharing.and_then(|sharing| sharing.group) {
        std::os::unix::fs::chown(path, None, Some(group))
            .map_err(|error| explain(error, "cannot give to its group", path))?;
    }
    // The folder of an unshared one is private already; tools may look at the socket alone.
    let mode = sharing.map_or(0o600, |sharing| sharing.mode);
    fs::set_permissions(path, Permissions::from_mode(mode))
        .map_err(|error| explain(error, "cannot protect", path))?;
    let found =
        fs::symlink_metadata(path).map_err(|error| explain(error, "cannot look at", path))?;
    Ok((listener, identity(&found)))
}

fn in_use(path: &Path) -> io::Error {
    let path = path.display();
    let text = format!("another service listens on {path} already: end it, or choose another path");
    io::Error::new(io::ErrorKind::AddrInUse, text)
}

fn identity(found: &Metadata) -> (u64, u64) {
    (found.dev(), found.ino())
}
