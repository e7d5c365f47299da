//! Where the service of a user lives: a folder that nobody else can enter, with the socket, the locks and the log in it.

mod starter;

pub use starter::Starter;

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use crate::exit::{Exit, Failure};

/// The variable that names another folder.
pub const FOLDER_VARIABLE: &str = "NAVLOCKS_DIR";

/// The longest path that a Unix socket can have, in bytes, as the kernel counts.
const SOCKET_PATH_BYTES_MAX: usize = 107;

/// The folder of a user's service.
///
/// By default it is the same for all processes of a user, whatever their environment: a cron job has no
/// `XDG_RUNTIME_DIR`, and two services would be two locks that exclude nobody.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    folder: PathBuf,
    /// A folder that is still there when the machine was started again, if the other one is not.
    lasting: Option<PathBuf>,
}

/// What is found where a service lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// The folder is there, and nobody but the user can enter it.
    Private,
    /// Nothing yet.
    Nothing,
}

impl Place {
    /// The folder that `NAVLOCKS_DIR` names, or else the one of this user. Nothing is made or looked at.
    ///
    /// # Errors
    ///
    /// The path is too long for a socket.
    pub fn of_user() -> Result<Self, Failure> {
        match std::env::var_os(FOLDER_VARIABLE).filter(|folder| !folder.is_empty()) {
            Some(folder) => Self::at(Path::new(&folder)),
            None => {
                let name = format!("navlocks-{}", rustix::process::geteuid().as_raw());
                let lasting = Some(Path::new("/var/tmp").join(&name));
                Ok(Self { lasting, ..Self::at(&Path::new("/tmp").join(name))? })
            }
        }
    }

    /// The place in this folder.
    ///
    /// # Errors
    ///
    /// The path is too long for a socket.
    pub fn at(folder: &Path) -> Result<Self, Failure> {
        let folder = std::path::absolute(folder).map_err(|error| unusable(folder, &error))?;
        let place = Self { folder, lasting: None };
        if place.socket().as_os_str().len() > SOCKET_PATH_BYTES_MAX {
            let folder = place.folder.display();
            return Err(Failure::new(
                Exit::Folder,
                format!(
                    "the path {folder} is too long for a socket: set {FOLDER_VARIABLE} to a shorter one"
                ),
            ));
        }
        Ok(place)
    }

    /// The folder itself.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The socket of the service.
    pub fn socket(&self) -> PathBuf {
        self.folder.join("socket")
    }

    /// The address to connect to.
    pub fn url(&self) -> String {
        format!("unix:{}", self.socket().display())
    }

    /// What a service that started by itself has to say.
    pub fn log(&self) -> PathBuf {
        self.folder.join("log")
    }

    /// Who holds this file's lock may start a service.
    fn start_lock(&self) -> PathBuf {
        self.folder.join("start.lock")
    }

    /// Looks at the folder, without following a link there.
    ///
    /// # Errors
    ///
    /// It is not a folder, belongs to somebody else, or others can enter it.
    pub fn look(&self) -> Result<Found, Failure> {
        look(&self.folder)
    }

    /// Makes the folder if it is not there, and looks at it.
    ///
    /// # Errors
    ///
    /// It cannot be made, or is not private.
    pub fn prepare(&self) -> Result<(), Failure> {
        prepare(&self.folder)
    }

    /// Makes the folder in which a service remembers which fencing tokens it gave. Best one that outlives a start of the
    /// machine; where there is none, new tokens are larger as long as the wall clock is not set back meanwhile.
    ///
    /// # Errors
    ///
    /// It is not private.
    fn prepare_state(&self) -> Result<&Path, Failure> {
        let Some(lasting) = &self.lasting else { return Ok(&self.folder) };
        if lasting.parent().is_some_and(Path::is_dir) {
            prepare(lasting)?;
            return Ok(lasting);
        }
        Ok(&self.folder)
    }
}

fn look(folder: &Path) -> Result<Found, Failure> {
    let shown = folder.display();
    let wrong = |how: String| Err(Failure::new(Exit::Folder, how));
    let metadata = match fs::symlink_metadata(folder) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Found::Nothing),
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
            "{shown} belongs to user {owner}, not to user {user}: set {FOLDER_VARIABLE} to a folder of your own"
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

fn prepare(folder: &Path) -> Result<(), Failure> {
    match DirBuilder::new().mode(0o700).create(folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(unusable(folder, &error)),
        // Whoever made it: it must be private now.
        _ => look(folder).map(|_| ()),
    }
}

fn unusable(path: &Path, error: &io::Error) -> Failure {
    let path = path.display();
    Failure::new(
        Exit::Folder,
        format!(
            "cannot use the folder {path}: {error}; set {FOLDER_VARIABLE} to a folder that can be written"
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    /// A new empty folder, gone with the test.
    struct Scratch(PathBuf);

    impl Scratch {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("navlocks-{name}-{}", std::process::id()));
            fs::create_dir(&path).expect("a new folder");
            Self(path)
        }

        fn place(&self) -> Place {
            Place::at(&self.0.join("place")).expect("a short path")
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn a_folder_is_made_private_and_found_again() {
        let scratch = Scratch::new("made");
        let place = scratch.place();
        assert_eq!(place.look(), Ok(Found::Nothing));
        place.prepare().unwrap();
        place.prepare().unwrap();
        assert_eq!(place.look(), Ok(Found::Private));
        assert_eq!(fs::metadata(place.folder()).unwrap().mode() & 0o777, 0o700);
    }

    #[test]
    fn what_must_last_is_kept_where_it_does_if_there_is_such_a_place() {
        let scratch = Scratch::new("lasting");
        let here = scratch.place();
        here.prepare().unwrap();
        assert_eq!(here.prepare_state(), Ok(here.folder()));
        let kept = scratch.0.join("kept");
        let lasting = Place { lasting: Some(kept.clone()), ..here.clone() };
        assert_eq!(lasting.prepare_state(), Ok(&*kept));
        assert_eq!(fs::metadata(&kept).unwrap().mode() & 0o777, 0o700);
        fs::set_permissions(&kept, fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(lasting.prepare_state().unwrap_err().code, Exit::Folder.code());
        let nowhere = Place { lasting: Some(scratch.0.join("no/where")), ..here.clone() };
        assert_eq!(nowhere.prepare_state(), Ok(here.folder()));
    }

    #[test]
    fn a_folder_that_others_can_enter_is_refused() {
        let scratch = Scratch::new("open");
        let place = scratch.place();
        place.prepare().unwrap();
        fs::set_permissions(place.folder(), fs::Permissions::from_mode(0o750)).unwrap();
        let failure = place.prepare().unwrap_err();
        assert_eq!(failure.code, Exit::Folder.code());
        assert!(failure.message.contains("750"), "{failure}");
    }

    #[test]
    fn a_link_is_not_followed() {
        let scratch = Scratch::new("link");
        let place = scratch.place();
        symlink(&scratch.0, place.folder()).unwrap();
        let failure = place.prepare().unwrap_err();
        assert!(failure.message.contains("is not a folder"), "{failure}");
    }

    #[test]
    fn a_path_too_long_for_a_socket_is_refused() {
        let long = format!("/{}", "x".repeat(SOCKET_PATH_BYTES_MAX - "/socket".len()));
        let failure = Place::at(Path::new(&long)).unwrap_err();
        assert!(failure.message.contains("too long"), "{failure}");
        assert!(Place::at(Path::new(&long[..long.len() - 1])).is_ok());
    }
}
