//! Presence: the sockets at which clients listen to show that their processes live.
//!
//! No process accepts there. The kernel takes connections for as long as a process has the socket
//! open, whether that process runs or is stopped, and refuses them from then on.

use std::io::ErrorKind;
use std::path::Path;
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};
use tokio::io::AsyncReadExt as _;
use tokio::net::UnixStream;

/// How often a socket is tried whose queue of connections is full.
const FULL_PAUSE: Duration = Duration::from_millis(100);

/// Returns true if a process has the socket at this path open.
pub(crate) fn is_present(path: &Path) -> bool {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None);
    let (Ok(socket), Ok(address)) = (socket, SocketAddrUnix::new(path)) else {
        // This process has too many files: that says nothing of the other one.
        return true;
    };
    !matches!(connect(&socket, &address), Err(Errno::CONNREFUSED | Errno::NOENT))
}

/// Waits until no process has the socket at this path open.
pub(crate) async fn gone(path: &Path) {
    loop {
        match UnixStream::connect(path).await {
            // The connection ends with the socket that would accept it.
            Ok(mut stream) => {
                let _ended = stream.read(&mut [0]).await;
            }
            Err(error) => match error.kind() {
                ErrorKind::ConnectionRefused | ErrorKind::NotFound => return,
                _ => tokio::time::sleep(FULL_PAUSE).await,
            },
        }
    }
}
