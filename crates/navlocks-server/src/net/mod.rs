//! Sockets and HTTP: where connections come in, until each of them is a WebSocket.

mod activation;
mod http;
mod listener;
mod origin;
mod socket;
mod tls;
pub mod web;

pub(crate) use activation::{Inherited, sockets as inherited_sockets};
pub use listener::Address;
pub(crate) use listener::Listener;
pub(crate) use socket::{SocketFile, check_path};
pub(crate) use tls::{acceptor as tls_acceptor, expiry as certificate_expiry};
