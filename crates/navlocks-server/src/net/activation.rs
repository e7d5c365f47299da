//! Sockets that systemd, or another starter of the service, has opened.

use std::io;
use std::net::TcpListener;
use std::os::unix::net::UnixListener;

use listenfd::ListenFd;

/// A socket that was handed over.
#[derive(Debug)]
pub(crate) enum Inherited {
    Unix(UnixListener),
    Tcp(TcpListener),
}

/// The sockets that were handed over to this process, by `LISTEN_FDS` and `LISTEN_PID`. They are
/// taken once.
pub(crate) fn sockets() -> io::Result<Vec<Inherited>> {
    let mut handed = ListenFd::from_env();
    let mut sockets = Vec::new();
    for index in 0..handed.len() {
        // Whatever it is not, it may still be something else.
        if let Ok(Some(listener)) = handed.take_unix_listener(index) {
            listener.set_nonblocking(true)?;
            sockets.push(Inherited::Unix(listener));
        } else if let Ok(Some(listener)) = handed.take_tcp_listener(index) {
            listener.set_nonblocking(true)?;
            sockets.push(Inherited::Tcp(listener));
        } else {
            let text = format!("socket {index} that was handed over is no listening stream socket");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
    }
    Ok(sockets)
}
