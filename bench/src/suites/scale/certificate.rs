//! A certificate for the nodes of a trial.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A certificate of its own authority, and its key. The files are removed when it is dropped.
pub(super) struct Certificate {
    folder: PathBuf,
    files: [PathBuf; 2],
}

impl Certificate {
    pub(super) fn make() -> io::Result<Self> {
        let folder = std::env::temp_dir().join(format!("navlocks-scale-{}", std::process::id()));
        fs::create_dir(&folder)?;
        let files = ["certificate.pem", "key.pem"].map(|name| folder.join(name));
        let made = Self { folder, files };
        let mut openssl = Command::new("openssl");
        openssl.args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]);
        openssl.args(["-nodes", "-days", "2", "-subj", "/CN=localhost"]);
        openssl.args(["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]);
        openssl.args(["-addext", "basicConstraints=critical,CA:FALSE"]);
        openssl.arg("-out").arg(&made.files[0]).arg("-keyout").arg(&made.files[1]);
        let output = openssl.output()?;
        match output.status.success() {
            true => Ok(made),
            false => Err(io::Error::other(String::from_utf8_lossy(&output.stderr).into_owned())),
        }
    }

    /// Returns the files of the certificate and of its key.
    pub(super) fn files(&self) -> [&Path; 2] {
        self.files.each_ref().map(PathBuf::as_path)
    }
}

impl Drop for Certificate {
    fn drop(&mut self) {
        // A folder that is gone already needs no removal.
        let _gone = fs::remove_dir_all(&self.folder);
    }
}
