//! A folder for the records of one test. It stays when the test fails.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process;
use std::thread;

pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new(test: &str) -> Self {
        // A short path, because a socket is in it.
        let folder = env::temp_dir().join(format!("navlocks-{test}-{}", process::id()));
        // An earlier process may have had this number.
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).expect("a folder for records");
        Self(folder)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if thread::panicking() {
            println!("the records are in {}", self.0.display());
        } else {
            // A folder that cannot be removed is no reason to fail.
            let _ = fs::remove_dir_all(&self.0);
        }
    }
}
