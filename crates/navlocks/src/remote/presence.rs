//! A socket that shows that a session is alive although its connection is gone.
//!
//! The client listens there and never accepts. The kernel closes the socket with the last process
//! that has it open, so a service can tell a client that is gone from one that is stopped.

use std::fs;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixListener;
use std::path::Path;

/// The socket at the path of a welcome.
#[derive(Debug)]
pub(super) struct Presence {
    path: String,
    listener: UnixListener,
}

impl Presence {
    /// Listens at this path. Returns none where that is not possible: the session then ends with
    /// its process.
    pub(super) fn bind(path: String) -> Option<Self> {
        // The service may have another working folder, and an empty path is no path.
        let absolute = Path::new(&path).is_absolute();
        let listener = absolute.then(|| UnixListener::bind(&path).ok())??;
        // The service may belong to another user, and must be able to look. Its folder decides
        // which users can.
        let _unchanged = fs::set_permissions(&path, fs::Permissions::from_mode(0o666));
        Some(Self { path, listener })
    }

    pub(super) fn is_at(&self, path: &str) -> bool {
        self.path == path
    }

    /// Returns a copy of the socket, for another process.
    pub(super) fn liveness_fd(&self) -> Option<OwnedFd> {
        self.listener.as_fd().try_clone_to_owned().ok()
    }
}
