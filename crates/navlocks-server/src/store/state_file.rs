//! The state file: the little that must outlive a service.

use std::fs::{self, DirBuilder, File};
use std::io::{self, Write as _};
use std::ops::RangeInclusive;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use navlocks_core::HashKey;

use super::NUMBERS_END;
use super::registry::{FOLDER_BYTES_MAX, Found, Registry, Unknown};
use crate::config::explain;

/// The version of the folder: of this file, and of the tables beside it.
pub(super) const VERSION: u32 = 2;

/// The versions that a service reads: its own, and the one before from the first release on.
const READS: RangeInclusive<u32> = VERSION..=VERSION;

/// How often a folder that is in use is tried again, and how long that takes each time.
const LOOKS_MAX: u32 = 3;
const LOOK_PAUSE: Duration = Duration::from_millis(5);

/// The state that outlives a service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct State {
    pub(crate) version: u32,
    /// Whether the last service ended in good order, so that no client believes in a lock of it.
    pub(crate) clean: bool,
    /// No token above this was ever given.
    pub(crate) tokens_reserved_to: u64,
    /// For how long at most a client may go on believing in a lock.
    pub(crate) lease_ms_max: u64,
    /// How often a service was started here.
    #[serde(default)]
    pub(crate) epoch: u64,
}

/// The members that the files of all versions have.
#[derive(Deserialize)]
struct Versioned {
    version: u32,
}

impl State {
    pub(crate) fn new(clean: bool, tokens_reserved_to: u64, lease_ms_max: u64, epoch: u64) -> Self {
        Self { version: VERSION, clean, tokens_reserved_to, lease_ms_max, epoch }
    }
}

/// The folder of a service's state file, held by this service alone.
#[derive(Debug)]
pub(crate) struct StateFile {
    folder: PathBuf,
    lock: FolderLock,
}

/// The state that an earlier service left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Earlier {
    /// There was none.
    None,
    /// This.
    State(State),
    /// Something that cannot be read, and was put aside; or it is gone, and sessions are left.
    Unreadable,
}

impl StateFile {
    /// Takes the folder, which is made if it is missing.
    pub(crate) fn open(folder: &Path) -> io::Result<Self> {
        // Clients get paths in it, and have other working folders.
        let folder = &std::path::absolute(folder)?;
        Self::check(folder)?;
        match FolderLock::take(folder) {
            Ok(Some(lock)) => Ok(Self { folder: folder.to_owned(), lock }),
            Ok(None) => {
                let folder = folder.display();
                let text = format!(
                    "another service remembers in {folder}: end it, or give this one a folder of its own with --state-dir"
                );
                Err(io::Error::new(io::ErrorKind::ResourceBusy, text))
            }
            Err(error) => Err(explain(error, "cannot use the state folder", folder)),
        }
    }

    /// Checks that no other user can write into the folder, if it exists: a file in it decides
    /// which locks are granted.
    ///
    /// # Errors
    ///
    /// Others can, or the path is no folder.
    pub(crate) fn check(folder: &Path) -> io::Result<()> {
        let wrong = |error| Err(explain(error, "cannot use the state folder", folder));
        let found = match fs::metadata(folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return wrong(error),
            Ok(found) => found,
        };
        let mode = found.mode() & 0o7777;
        if found.is_dir() && mode & 0o022 == 0 {
            return Ok(());
        }
        let text = match found.is_dir() {
            true => {
                format!("others can write into it (its mode is {mode:o}): close it with chmod 700")
            }
            false => "it is no folder".to_owned(),
        };
        wrong(io::Error::new(io::ErrorKind::PermissionDenied, text))
    }

    /// Checks that each client over a Unix socket can have its socket of presence in this folder.
    /// Without one, a lock would be free while processes of its holder still work.
    ///
    /// # Errors
    ///
    /// The path is too long.
    pub(crate) fn check_room_for_sockets(&self) -> io::Result<()> {
        if self.folder.as_os_str().len() <= FOLDER_BYTES_MAX {
            return Ok(());
        }
        let folder = self.folder.display();
        let text = format!(
            "the path {folder} is too long for the sockets of clients in it: name a folder of at most {FOLDER_BYTES_MAX} bytes with --state-dir"
        );
        Err(io::Error::new(io::ErrorKind::InvalidInput, text))
    }

    /// Makes the folder again if it was removed, unless another service has it by now.
    fn keep(&mut self) -> io::Result<()> {
        if !self.lock.is_of(&self.folder) {
            *self = Self::open(&self.folder)?;
        }
        Ok(())
    }

    /// Whether this is the folder that the state file is in.
    pub(crate) fn is_in(&self, folder: &Path) -> bool {
        self.lock.is_of(folder)
    }

    /// Returns true if nothing of it was removed.
    pub(crate) fn is_there(&self) -> bool {
        self.lock.is_of(&self.folder) && self.path().exists()
    }

    fn path(&self) -> PathBuf {
        self.folder.join("service.json")
    }

    /// Opens the registry beside the state file.
    pub(super) fn registry(
        &self,
        boot: u128,
        trusted: bool,
        unknown: Unknown,
        fresh: bool,
    ) -> io::Result<(Registry, HashKey, Found)> {
        Registry::open(&self.folder, boot, trusted, unknown, fresh)
            .map_err(|error| explain(error, "cannot make the tables in", &self.folder))
    }

    /// Reads the state that an earlier service left.
    pub(crate) fn read(&self) -> io::Result<Earlier> {
        let path = self.path();
        let unreadable = |error| explain(error, "cannot read", &path);
        let bytes = match fs::read(&path) {
            Ok(bytes) => bytes,
            // Sessions without a state file are what is left of a service.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let left = Registry::has_sessions(&self.folder);
                return Ok(if left { Earlier::Unreadable } else { Earlier::None });
            }
            Err(error) => return Err(unreadable(error)),
        };
        if let Ok(Versioned { version }) = serde_json::from_slice(&bytes)
            && !READS.contains(&version)
        {
            return Err(self.other_version(version));
        }
        match serde_json::from_slice::<State>(&bytes) {
            Ok(state) if state.epoch < NUMBERS_END => Ok(Earlier::State(state)),
            _ => {
                fs::rename(&path, path.with_extension("json.bad")).map_err(unreadable)?;
                Ok(Earlier::Unreadable)
            }
        }
    }

    /// Returns the error of a folder that another version of this program has written. Nothing in
    /// it is changed: that program can still use it.
    fn other_version(&self, theirs: u32) -> io::Error {
        let (folder, reads) = (self.folder.display(), READS.end());
        let text = format!(
            "the state folder {folder} is of version {theirs}, and this program reads version {reads}: start a program that reads both, or remove the folder once no client uses a lock of that service"
        );
        io::Error::new(io::ErrorKind::Unsupported, text)
    }

    /// Writes the state so that a crash leaves the old or the new one, never half of one.
    pub(crate) fn write(&mut self, state: &State) -> io::Result<()> {
        self.keep()?;
        let path = self.path();
        self.write_in_steps(state, &path).map_err(|error| explain(error, "cannot write", &path))
    }

    fn write_in_steps(&self, state: &State, path: &Path) -> io::Result<()> {
        let new = path.with_extension("json.new");
        let mut file = File::create(&new)?;
        file.write_all(&serde_json::to_vec(state)?)?;
        file.sync_all()?;
        drop(file);
        fs::rename(&new, path)?;
        // The new name is on the disk once the folder is.
        File::open(&self.folder)?.sync_all()
    }
}

/// The sole use of a folder, as long as this lives.
///
/// The folder itself is locked, not a file in it: programs that clean up temporary folders leave a
/// locked folder alone, with all that is in it.
#[derive(Debug)]
pub(crate) struct FolderLock {
    folder: File,
    /// Locked instead, where the system does not lock folders.
    _file: Option<File>,
}

impl FolderLock {
    /// Makes the folder if it is missing, and locks it. None, when another process has it.
    pub(crate) fn take(path: &Path) -> io::Result<Option<Self>> {
        let mut tries = 0;
        loop {
            DirBuilder::new().recursive(true).mode(0o700).create(path)?;
            let folder = File::options()
                .read(true)
                .custom_flags(OFlags::DIRECTORY.bits() as i32)
                .open(path)?;
            let mut file = None;
            match flock(&folder, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => {}
                // A command that looks whether the folder is in use has it for a moment.
                Err(Errno::WOULDBLOCK) if tries < LOOKS_MAX => {
                    tries += 1;
                    std::thread::sleep(LOOK_PAUSE);
                    continue;
                }
                Err(Errno::WOULDBLOCK) => return Ok(None),
                // Network file systems lock only what is open for writing, which no folder is.
                Err(Errno::BADF | Errno::NOTSUP | Errno::NOLCK) => {
                    let lock = file.insert(File::create(path.join("service.lock"))?);
                    match flock(lock, FlockOperation::NonBlockingLockExclusive) {
                        Ok(()) => {}
                        Err(Errno::WOULDBLOCK) => return Ok(None),
                        Err(error) => return Err(error.into()),
                    }
                }
                Err(error) => return Err(error.into()),
            }
            let lock = Self { folder, _file: file };
            // It may have been removed and made again between the two calls.
            if lock.is_of(path) {
                return Ok(Some(lock));
            }
        }
    }

    /// Whether this folder is the locked one.
    pub(crate) fn is_of(&self, path: &Path) -> bool {
        match (self.folder.metadata(), fs::metadata(path)) {
            (Ok(locked), Ok(found)) => (locked.dev(), locked.ino()) == (found.dev(), found.ino()),
            _ => false,
        }
    }
}
