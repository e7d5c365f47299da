//! Where connections come in.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::rc::Rc;

use tokio::net::{TcpListener, UnixListener};

use super::http::{self, Door};
use super::shared::Shared;

/// Where a service can be reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// A Unix socket.
    Unix(PathBuf),
    /// A TCP port.
    Tcp(SocketAddr),
}

/// A socket that listens.
#[derive(Debug)]
pub(crate) enum Listener {
    Unix(UnixListener),
    Tcp(TcpListener),
}

impl Listener {
    /// Takes connections until the task is dropped.
    pub(crate) async fn serve(self, shared: Rc<Shared>) {
        loop {
            if self.accept(&shared).await.is_err() {
                tokio::time::sleep(std::time::Duration::from_millis(50)).await;
            }
        }
    }

    async fn accept(&self, shared: &Rc<Shared>) -> io::Result<()> {
        match self {
            Self::Unix(listener) => {
                let (stream, _) = listener.accept().await?;
                let pid = stream.peer_cred().ok().and_then(|peer| peer.pid());
                let door = Door::Unix(pid.and_then(|pid| u32::try_from(pid).ok()));
                if let Some(seat) = shared.take_seat() {
                    tokio::task::spawn_local(http::serve(stream, door, shared.clone(), seat));
                }
            }
            Self::Tcp(listener) => {
                let (stream, _) = listener.accept().await?;
                // Answers are batched already; what is written is to be sent.
                let _slower = stream.set_nodelay(true);
                if let Some(seat) = shared.take_seat() {
                    tokio::task::spawn_local(http::serve(stream, Door::Tcp, shared.clone(), seat));
                }
            }
        }
        Ok(())
    }
}
