//! A folder for the tables of a service.

use std::fs;
use std::path::{Path, PathBuf};

/// A folder for tables, in memory if possible, because each start syncs them.
pub(crate) struct Tables(PathBuf);

impl Tables {
    pub(crate) fn new(test: &str) -> Self {
        let memory = PathBuf::from("/dev/shm");
        let parent = if memory.is_dir() { memory } else { std::env::temp_dir() };
        Self(parent.join(format!("navlocks-{test}-{}", std::process::id())))
    }

    /// Returns the folder, empty.
    pub(crate) fn empty(&self) -> &Path {
        // The folder does not exist the first time.
        let _missing = fs::remove_dir_all(&self.0);
        fs::create_dir_all(&self.0).expect("a folder for tables");
        &self.0
    }
}

impl Drop for Tables {
    fn drop(&mut self) {
        // A folder that cannot be removed is no reason to fail.
        let _left = fs::remove_dir_all(&self.0);
    }
}
