//! The place of a service: a private folder with its socket and log, and the folder of its state.

mod starter;

pub use starter::Starter;
pub(crate) use starter::{is_full, lacks_room_to_start, own_program, started};

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};

use crate::exit::{Exit, Failure};
use navlocks::service_dir::{self, name_of_user, named_folder};
pub use navlocks::service_dir::{FOLDER_VARIABLE, Found};

/// The name of the folder of sockets of presence, beside the state of a service.
const PRESENCE: &str = "presence";

/// The folder of a user's service, with the files that the command has there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceDir(service_dir::ServiceDir);

impl ServiceDir {
    /// Returns the folder that `NAVLOCKS_DIR` names, or else that of this user. The file system is
    /// not touched.
    ///
    /// # Errors
    ///
    /// The path is too long for a socket.
    pub fn of_user() -> Result<Self, Failure> {
        service_dir::ServiceDir::of_user().map(Self).map_err(|error| failed(&error))
    }

    /// Returns the service of this folder.
    ///
    /// # Errors
    ///
    /// The path is too long for a socket.
    pub fn at(folder: &Path) -> Result<Self, Failure> {
        service_dir::ServiceDir::at(folder).map(Self).map_err(|error| failed(&error))
    }

    /// Returns the folder.
    pub fn folder(&self) -> &Path {
        self.0.folder()
    }

    /// Returns the path of the socket.
    pub fn socket(&self) -> PathBuf {
        self.0.socket()
    }

    /// Returns the address to connect to.
    pub fn url(&self) -> String {
        format!("unix:{}", self.socket().display())
    }

    /// Returns the path of the log of a service that a command started.
    pub fn log(&self) -> PathBuf {
        self.folder().join("log")
    }

    /// Returns the path of the file whose lock is the right to start a service.
    fn start_lock(&self) -> PathBuf {
        self.folder().join("start.lock")
    }

    /// Checks the folder, without following a link.
    ///
    /// # Errors
    ///
    /// The path is not a folder, belongs to another user, or others can enter it.
    pub fn look(&self) -> Result<Found, Failure> {
        look(self.folder())
    }

    /// Makes the folder if it is missing, and checks it.
    ///
    /// # Errors
    ///
    /// The folder cannot be made, or is not private.
    pub fn prepare(&self) -> Result<(), Failure> {
        prepare(self.folder())
    }
}

impl ServiceDir {
    /// Returns true if a service has this place, with or without its socket.
    ///
    /// # Errors
    ///
    /// The state folder cannot be opened.
    pub fn is_in_use(&self) -> Result<bool, Failure> {
        let folder = state_folder(Some(&self.socket()))?;
        let file = match File::open(&folder) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            // A folder of another user has an owner, and that is the better message.
            Err(error) => return look(&folder).and_then(|_| Err(unusable(&folder, &error))),
        };
        // The lock is released at once; a service that starts at this moment tries again.
        match flock(&file, FlockOperation::NonBlockingLockShared) {
            Err(rustix::io::Errno::WOULDBLOCK) => Ok(true),
            _ => Ok(false),
        }
    }
}

impl ServiceDir {
    /// Returns the other users with a folder beside this one, if this is the folder of a user.
    pub fn of_other_users(&self) -> Vec<u32> {
        let number = |name: &str| name.strip_prefix("navlocks-")?.parse::<u32>().ok();
        let own = self.folder().file_name().and_then(|name| number(name.to_str()?));
        let (Some(own), Some(beside)) = (own, self.folder().parent()) else { return Vec::new() };
        let entries = fs::read_dir(beside).into_iter().flatten().flatten();
        let found = entries.filter_map(|entry| {
            let user = number(entry.file_name().to_str()?)?;
            (user != own && entry.metadata().ok()?.uid() == user).then_some(user)
        });
        let mut users: Vec<u32> = found.collect();
        users.sort_unstable();
        users
    }
}

impl ServiceDir {
    /// Returns true if clients of an earlier service may have locks: their sockets of presence
    /// exist.
    ///
    /// # Errors
    ///
    /// The state folder is not known.
    pub fn has_sessions(&self) -> Result<bool, Failure> {
        let folder = state_folder(Some(&self.socket()))?.join(PRESENCE);
        Ok(fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_some()))
    }
}

/// Returns the state folder of the service of a socket, or of services without one. It is the same
/// for every start of a service, so that fencing tokens never go back.
///
/// # Errors
///
/// There is no home folder, or the path is not valid.
pub fn state_folder(socket: Option<&Path>) -> Result<PathBuf, Failure> {
    let Some(socket) = socket else { return state_folder_without_socket() };
    let socket = std::path::absolute(socket).map_err(|error| unusable(socket, &error))?;
    let lasting = Path::new("/var/tmp");
    // The default folder does not outlive a start of the machine. Tokens without a lasting folder
    // follow the wall clock.
    if socket == Path::new("/tmp").join(name_of_user()).join("socket") && lasting.is_dir() {
        return Ok(lasting.join(name_of_user()));
    }
    Ok(socket.parent().unwrap_or(&socket).to_owned())
}

fn state_folder_without_socket() -> Result<PathBuf, Failure> {
    let variable =
        |name: &str| std::env::var_os(name).filter(|path| !path.is_empty()).map(PathBuf::from);
    let named = named_folder().map(|folder| folder.join("without-socket"));
    let state = || variable("XDG_STATE_HOME").map(|base| base.join("navlocks"));
    let home = || variable("HOME").map(|home| home.join(".local/state/navlocks"));
    named.or_else(state).or_else(home).ok_or_else(|| {
        let text = "there is no home folder to remember in: name one with --state-dir";
        Failure::new(Exit::Usage, text)
    })
}

/// Checks a folder, without following a link.
///
/// # Errors
///
/// The path is not a folder, belongs to another user, or others can enter it.
pub fn look(folder: &Path) -> Result<Found, Failure> {
    service_dir::look(folder).map_err(|error| failed(&error))
}

/// Makes the folder if it is missing, and checks it.
///
/// # Errors
///
/// The folder cannot be made, or is not private.
pub fn prepare(folder: &Path) -> Result<(), Failure> {
    match DirBuilder::new().recursive(true).mode(0o700).create(folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(unusable(folder, &error)),
        // Another process may have made it, so it is checked too.
        _ => look(folder).map(|_| ()),
    }
}

fn unusable(folder: &Path, error: &io::Error) -> Failure {
    failed(&service_dir::unusable(folder, error))
}

fn failed(error: &io::Error) -> Failure {
    Failure::new(Exit::Folder, error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use navlocks::service_dir::FOLDER_BYTES_MAX;
    use std::os::unix::fs::{PermissionsExt, symlink};

    /// A new empty folder that the test removes.
    struct Scratch(PathBuf);

    impl Scratch {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("navlocks-{name}-{}", std::process::id()));
            fs::create_dir(&path).expect("a new folder");
            Self(path)
        }

        fn place(&self) -> ServiceDir {
            ServiceDir::at(&self.0.join("place")).expect("a short path")
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn folder_is_made_private_and_found_again() {
        let scratch = Scratch::new("made");
        let place = scratch.place();
        assert_eq!(place.look(), Ok(Found::Nothing));
        place.prepare().unwrap();
        place.prepare().unwrap();
        assert_eq!(place.look(), Ok(Found::Private));
        assert_eq!(fs::metadata(place.folder()).unwrap().mode() & 0o777, 0o700);
    }

    #[test]
    fn state_of_a_socket_is_beside_it_unless_its_folder_does_not_last() {
        let state = |socket: &Path| state_folder(Some(socket)).unwrap();
        assert_eq!(state(Path::new("/run/locks/socket")), Path::new("/run/locks"));
        let folder = Path::new("/tmp").join(name_of_user());
        assert_eq!(state(&folder.join("socket")), Path::new("/var/tmp").join(name_of_user()));
        assert_eq!(state(&folder.join("other")), folder);
    }

    #[test]
    fn folder_that_others_can_enter_is_refused() {
        let scratch = Scratch::new("open");
        let place = scratch.place();
        place.prepare().unwrap();
        fs::set_permissions(place.folder(), fs::Permissions::from_mode(0o750)).unwrap();
        let failure = place.prepare().unwrap_err();
        assert_eq!(failure.code, Exit::Folder.code());
        assert!(failure.message.contains("750"), "{failure}");
    }

    #[test]
    fn link_is_not_followed() {
        let scratch = Scratch::new("link");
        let place = scratch.place();
        symlink(&scratch.0, place.folder()).unwrap();
        let failure = place.prepare().unwrap_err();
        assert!(failure.message.contains("is not a folder"), "{failure}");
    }

    #[test]
    fn path_too_long_for_a_socket_is_refused() {
        let long = format!("/{}", "x".repeat(FOLDER_BYTES_MAX));
        let failure = ServiceDir::at(Path::new(&long)).unwrap_err();
        assert!(failure.message.contains("too long"), "{failure}");
        assert!(ServiceDir::at(Path::new(&long[..long.len() - 1])).is_ok());
    }
}
