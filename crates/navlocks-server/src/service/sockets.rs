//! The sockets of a service, and their listeners.

use std::io;
use std::net::SocketAddr;

use tokio::net::{TcpListener, TcpSocket, UnixListener};
use tokio_rustls::TlsAcceptor;

use crate::config::{Config, Origins};
use crate::connection::Shared;
use crate::net;
use crate::net::{Address, Listener, SocketFile};

/// Reads the certificate and the origins of a configuration.
pub(super) fn read_files(config: &Config) -> io::Result<(Option<TlsAcceptor>, Origins)> {
    if config.dashboard_actions && !config.access.has_operators() {
        let text =
            "a dashboard that acts takes operators: name their tokens with --operator-token-file";
        return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
    }
    let tls = config.tls.as_ref().map(net::tls_acceptor).transpose()?;
    Ok((tls, Origins::new(config)?))
}

/// Checks a TCP address. Beyond this machine it takes tokens to know who comes in, and TLS to keep
/// them secret.
pub(super) fn check_reach(address: SocketAddr, config: &Config, has_tls: bool) -> io::Result<()> {
    if address.ip().is_loopback() || (!config.access.is_open() && has_tls) {
        return Ok(());
    }
    let text = format!(
        "{address} can be reached from other machines: that takes access tokens (--token-file) and TLS (--tls-cert, --tls-key)"
    );
    Err(io::Error::new(io::ErrorKind::InvalidInput, text))
}

/// Listens on an address. All clients of a node that has died connect to the others at once.
pub(super) fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    const QUEUE_MAX: u32 = 65_535;
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(QUEUE_MAX)
}

/// Listens at the path whose socket was removed. Connections that are there stay.
pub(super) fn listen_again(file: &mut SocketFile, shared: &Shared) -> io::Result<Listener> {
    let listener = match shared.hubs.single() {
        None => file.bind_again(None)?,
        Some(hub) => {
            let mut hub = hub.borrow_mut();
            hub.store.kept_file()?;
            hub.keep_registry()?;
            file.bind_again(hub.store.kept_file()?)?
        }
    };
    tracing::warn!("the socket was removed, and made again");
    Ok(Listener::Unix(listener))
}

/// The sockets of a service that is about to start.
pub(super) struct Sockets {
    pub(super) tls: Option<TlsAcceptor>,
    pub(super) listeners: Vec<Listener>,
    pub(super) addresses: Vec<Address>,
}

impl Sockets {
    pub(super) fn add_unix(&mut self, listener: UnixListener) -> io::Result<()> {
        let path = listener.local_addr()?.as_pathname().map(ToOwned::to_owned);
        // First, because it is the one that people look for.
        self.addresses.insert(0, Address::Unix(path.unwrap_or_default()));
        self.listeners.push(Listener::Unix(listener));
        Ok(())
    }

    /// Adds a TCP port.
    pub(super) fn add_tcp(&mut self, listener: TcpListener, config: &Config) -> io::Result<()> {
        let address = listener.local_addr()?;
        check_reach(address, config, self.tls.is_some())?;
        self.addresses.push(Address::Tcp(address));
        self.listeners.push(Listener::Tcp(listener));
        Ok(())
    }
}
