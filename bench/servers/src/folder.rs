//! A temporary folder that is removed when it is dropped.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// The folder.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
}

impl Folder {
    /// Makes a folder with a short name: the path of a Unix socket has at most about a hundred
    /// bytes.
    pub fn new(name: &str) -> io::Result<Self> {
        Self::below(&std::env::temp_dir(), name)
    }

    /// A new one in memory, where the system has such a place: nothing waits for a disk there.
    pub fn in_memory(name: &str) -> io::Result<Self> {
        let memory = Path::new("/dev/shm");
        if memory.is_dir() { Self::below(memory, name) } else { Self::new(name) }
    }

    fn below(parent: &Path, name: &str) -> io::Result<Self> {
        static NUMBERS: AtomicUsize = AtomicUsize::new(0);
        let number = NUMBERS.fetch_add(1, Relaxed);
        let path = parent.join(format!("bench-{}-{number}-{name}", std::process::id()));
        fs::create_dir(&path)?;
        Ok(Self { path })
    }

    /// Returns its path.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.path) {
            eprintln!("bench: {} stays: {error}", self.path.display());
        }
    }
}
