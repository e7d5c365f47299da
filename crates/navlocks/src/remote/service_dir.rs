//! The folder of a user's own service: where it is, and who may have made it. The command and the
//! clients follow these rules, in JavaScript those of `service/io/place.js`.

use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// The variable that names another folder.
pub const FOLDER_VARIABLE: &str = "NAVLOCKS_DIR";

/// The name of the socket in its folder.
const SOCKET: &str = "socket";

/// The longest path of the folder. That of a Unix socket has 107 bytes without its terminator, and
/// the longest one is that of the presence of a client.
pub const FOLDER_BYTES_MAX: usize = 107 - "/presence/4294967295".len();

/// The folder of a user's service.
///
/// By default it is the same for all processes of a user in any environment: a cron job has no
/// `XDG_RUNTIME_DIR`, and two services would grant one name twice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceDir {
    folder: PathBuf,
}

/// The state of the folder of a service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// The folder exists, and no other user can enter it.
    Private,
    /// The folder does not exist.
    Nothing,
}

impl ServiceDir {
    /// Returns the folder that `NAVLOCKS_DIR` names, or else that of this user. The file system is
    /// not touched.
    ///
    /// # Errors
    ///
    /// The path is too long for a socket.
    pub fn of_user() -> io::Result<Self> {
        match named_folder() {
            Some(folder) => Self::at(&folder),
            None => Self::at(&Path::new("/tmp").join(name_of_user())),
        }
    }

    /// Returns the service of this folder.
    ///
    /// # Errors
    ///
    /// The path is too long for a socket.
    pub fn at(folder: &Path) -> io::Result<Self> {
        let folder = std::path::absolute(folder).map_err(|error| unusable(folder, &error))?;
        if folder.as_os_str().len() > FOLDER_BYTES_MAX {
            let folder = folder.display();
            let text = format!(
                "the path {folder} is too long for the sockets in it: set {FOLDER_VARIABLE} to one of at most {FOLDER_BYTES_MAX} bytes"
            );
            return Err(io::Error::new(ErrorKind::InvalidInput, text));
        }
        Ok(Self { folder })
    }

    /// Returns the folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the path of the socket.
    pub fn socket(&self) -> PathBuf {
        self.folder.join(SOCKET)
    }
}

/// Returns the folder that the user named.
pub fn named_folder() -> Option<PathBuf> {
    std::env::var_os(FOLDER_VARIABLE).filter(|folder| !folder.is_empty()).map(PathBuf::from)
}

/// Returns the name of the default folder of this user.
pub fn name_of_user() -> String {
    format!("navlocks-{}", rustix::process::geteuid().as_raw())
}

/// Checks a folder, without following a link.
///
/// # Errors
///
/// The path is not a folder, belongs to another user, or others can enter it: `PermissionDenied`.
/// Otherwise it cannot be read.
pub fn look(folder: &Path) -> io::Result<Found> {
    let shown = folder.display();
    let wrong = |how: String| Err(io::Error::new(ErrorKind::PermissionDenied, how));
    let metadata = match fs::symlink_metadata(folder) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Found::Nothing),
        Err(error) => return Err(unusable(folder, &error)),
    };
    let user = rustix::process::geteuid().as_raw();
    if !metadata.is_dir() {
        return wrong(format!(
            "{shown} is not a folder: remove it, or set {FOLDER_VARIABLE} to another one"
        ));
    }
    if metadata.uid() != user {
        let owner = metadata.uid();
        return wrong(format!(
            "{shown} belongs to user {owner}, not to user {user}: ask that user or root to remove it, or set {FOLDER_VARIABLE} to a folder of your own, the same for all your jobs"
        ));
    }
    if metadata.mode() & 0o077 != 0 {
        let mode = metadata.mode() & 0o777;
        return wrong(format!(
            "others can enter {shown} (its mode is {mode:o}): close it with chmod 700"
        ));
    }
    Ok(Found::Private)
}

/// Returns the error of a folder that the system refuses.
pub fn unusable(folder: &Path, error: &io::Error) -> io::Error {
    let folder = folder.display();
    let text = format!(
        "cannot use the folder {folder}: {error}; set {FOLDER_VARIABLE} to a folder that can be written"
    );
    io::Error::other(text)
}
