//! Where connections come in.

use std::fs::File;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::rc::Rc;
use std::time::{Duration, Instant};

use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::time::timeout;

use super::http::{self, Door, Local};
use crate::audit::Act;
use crate::connection::{ConnectionPermit, Shared, in_turn, note_task};
use crate::hub::USER;
use crate::store::Process;

/// So long no connection is taken after the process has run out of file descriptors.
const PAUSE: Duration = Duration::from_millis(50);

/// The answer to a client for which there is no place. The WebSocket handshake is HTTP, so this is.
const FULL: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\n\
    Content-Type: text/plain; charset=utf-8\r\n\
    Retry-After: 1\r\n\
    Connection: close\r\n\r\n\
    the service has as many connections as it can have: try again later\n";

/// Where a service can be reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// A Unix socket.
    Unix(PathBuf),
    /// A TCP port.
    Tcp(SocketAddr),
}

/// A socket that listens.
pub(crate) enum Listener {
    Unix(UnixListener),
    Tcp(TcpListener),
}

/// A connection that came in.
enum Arrival {
    Unix(UnixStream),
    Tcp(TcpStream, IpAddr),
}

impl Listener {
    /// Takes connections until the task is dropped.
    pub(crate) async fn serve(self, shared: Rc<Shared>) {
        // Given up for a moment when there are no more, so that a client can be told.
        let mut spare = File::open("/dev/null").ok();
        let mut full = false;
        loop {
            if let Self::Tcp(..) = self {
                shared.room_for_stranger().await;
            }
            match self.accept().await {
                Ok(arrival) => {
                    full = false;
                    match shared.take_permit(arrival.address()) {
                        Some(permit) => Self::admit(arrival, &shared, permit),
                        None => {
                            shared.metrics().refused_connections.inc();
                            arrival.refuse();
                        }
                    }
                }
                Err(error) if is_out_of_descriptors(&error) => {
                    if !std::mem::replace(&mut full, true) {
                        tracing::error!(%error, "no more connections can be taken");
                    }
                    shared.metrics().refused_connections.inc();
                    drop(spare.take());
                    if let Ok(Ok(arrival)) = timeout(Duration::ZERO, self.accept()).await {
                        arrival.refuse();
                    }
                    spare = File::open("/dev/null").ok();
                    tokio::time::sleep(PAUSE).await;
                }
                // The client left before it was accepted.
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
                Err(error) => {
                    tracing::warn!(%error, "a connection could not be taken");
                    tokio::time::sleep(PAUSE).await;
                }
            }
        }
    }

    async fn accept(&self) -> io::Result<Arrival> {
        match self {
            Self::Unix(listener) => Ok(Arrival::Unix(listener.accept().await?.0)),
            Self::Tcp(listener) => {
                let (stream, from) = listener.accept().await?;
                // Answers are batched already; what is written is to be sent.
                let _slower = stream.set_nodelay(true);
                Ok(Arrival::Tcp(stream, from.ip()))
            }
        }
    }

    fn admit(arrival: Arrival, shared: &Rc<Shared>, permit: ConnectionPermit) {
        let (spawned, stranger) = (shared.clone(), permit.stranger());
        let shared = shared.clone();
        let tls = shared.tls.borrow().clone();
        let task = match (arrival, tls) {
            (Arrival::Unix(stream), _) => {
                let Some(door) = knock(&stream, &shared) else { return };
                tokio::task::spawn_local(http::serve(stream, door, shared, permit))
            }
            (Arrival::Tcp(stream, from), Some(tls)) => {
                let turns = shared.of_strangers.clone();
                tokio::task::spawn_local(in_turn(shared.clone(), turns, async move {
                    let greeted = timeout(shared.config.limits.handshake_max, tls.accept(stream));
                    match Box::pin(greeted).await {
                        Ok(Ok(stream)) => {
                            http::serve(stream, Door::Tcp(from), shared, permit).await
                        }
                        Ok(Err(error)) => tracing::debug!(%error, "no TLS connection came about"),
                        Err(_) => tracing::debug!("a TLS client said nothing"),
                    }
                }))
            }
            (Arrival::Tcp(stream, from), None) => {
                let turns = shared.of_strangers.clone();
                let served = http::serve(stream, Door::Tcp(from), shared.clone(), permit);
                tokio::task::spawn_local(in_turn(shared, turns, served))
            }
        };
        note_task(&spawned, stranger, task.abort_handle());
    }
}

impl Arrival {
    /// The address that it comes from; none over the Unix socket.
    fn address(&self) -> Option<IpAddr> {
        match self {
            Self::Unix(_) => None,
            Self::Tcp(_, address) => Some(*address),
        }
    }

    /// Says that there is no place, if that can be said without waiting.
    fn refuse(self) {
        let _unheard = match self {
            Self::Unix(stream) => stream.try_write(FULL),
            Self::Tcp(stream, _) => stream.try_write(FULL),
        };
    }
}

/// Returns the process at the other end of the Unix socket. Only the service's user and root may
/// come in, unless the socket is shared: then its permissions have decided already.
fn knock(stream: &UnixStream, shared: &Shared) -> Option<Door> {
    let peer = stream.peer_cred().ok()?;
    let me = rustix::process::geteuid().as_raw();
    let foreign = peer.uid() != me && peer.uid() != 0;
    if foreign && shared.config.shared_socket.is_none() {
        if shared.hubs.common.audit.admits(Act::Refusal, Instant::now()) {
            let (uid, pid) = (peer.uid(), peer.pid());
            tracing::warn!(
                audit = "refusal",
                from = "unix",
                uid,
                pid,
                "a process of another user was refused"
            );
        }
        return None;
    }
    // Found out here, while the client still prepares its first message.
    let pid = peer.pid().and_then(|pid| u32::try_from(pid).ok());
    let process = pid.map(Process::of);
    let tenant = shared.config.tenant_by_user.then(|| format!("{USER}{}", peer.uid()).into());
    Some(Door::Unix(Local { process, tenant, foreign }))
}

fn is_out_of_descriptors(error: &io::Error) -> bool {
    use rustix::io::Errno;
    let known = [Errno::MFILE, Errno::NFILE, Errno::NOBUFS, Errno::NOMEM];
    known.iter().any(|errno| error.raw_os_error() == Some(errno.raw_os_error()))
}
