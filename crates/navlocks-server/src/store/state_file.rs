//! The state file: the little that must outlive a service.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

use crate::config::explain;

/// What is written. A file of another version is as good as none.
const VERSION: u32 = 1;

/// What must outlive a service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct State {
    pub(crate) version: u32,
    /// Whether the last service ended in good order, so that nobody believes in a lock of it.
    pub(crate) clean: bool,
    /// No token above this was ever given.
    pub(crate) tokens_reserved_to: u64,
    /// For how long at most somebody may go on believing in a lock.
    pub(crate) lease_ms_max: u64,
}

impl State {
    pub(crate) fn new(clean: bool, tokens_reserved_to: u64, lease_ms_max: u64) -> Self {
        Self { version: VERSION, clean, tokens_reserved_to, lease_ms_max }
    }
}

/// The folder of a service's state file, held by this service alone.
#[derive(Debug)]
pub(crate) struct StateFile {
    folder: PathBuf,
    /// Its lock is held as long as it is open.
    _lock: File,
}

/// What an earlier service left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Earlier {
    /// There was none.
    None,
    /// This.
    State(State),
    /// Something that cannot be read; it was put aside.
    Unreadable,
}

impl StateFile {
    /// Takes the folder, which is made if it is missing.
    pub(crate) fn open(folder: &Path) -> io::Result<Self> {
        let unusable = |error| explain(error, "cannot use the state folder", folder);
        fs::create_dir_all(folder).map_err(unusable)?;
        let lock = File::create(folder.join("service.lock")).map_err(unusable)?;
        match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Self { folder: folder.to_owned(), _lock: lock }),
            Err(rustix::io::Errno::WOULDBLOCK) => {
                let folder = folder.display();
                let text = format!(
                    "another service remembers in {folder}: end it, or give this one a folder of its own with --state-dir"
                );
                Err(io::Error::new(io::ErrorKind::ResourceBusy, text))
            }
            Err(error) => Err(unusable(error.into())),
        }
    }

    fn path(&self) -> PathBuf {
        self.folder.join("service.json")
    }

    /// What an earlier service left.
    pub(crate) fn read(&self) -> io::Result<Earlier> {
        let path = self.path();
        let unreadable = |error| explain(error, "cannot read", &path);
        let bytes = match fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Earlier::None),
            Err(error) => return Err(unreadable(error)),
        };
        match serde_json::from_slice::<State>(&bytes) {
            Ok(state) if state.version == VERSION => Ok(Earlier::State(state)),
            _ => {
                fs::rename(&path, path.with_extension("json.bad")).map_err(unreadable)?;
                Ok(Earlier::Unreadable)
            }
        }
    }

    /// Writes the state so that a crash leaves the old or the new one, never half of one.
    pub(crate) fn write(&self, state: &State) -> io::Result<()> {
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
