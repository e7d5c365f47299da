//! The lock service of navlocks as a library: a program binds a [`Service`] and runs it beside its
//! other work.
//!
//! ```text
//!   net          sockets, TLS, HTTP         until a connection is a WebSocket
//!    │
//!   connection   one task a connection      reads messages, writes frames; all on one thread
//!    │  messages in              ▲ frames
//!   hub          sessions, partitions       no socket, no clock: time is an argument; one engine a partition
//!    │
//!   store        the state file             what must outlive the service
//! ```
//!
//! The messages are those of [`navlocks_wire`], and [`navlocks_core`] decides which request is
//! granted.
//!
//! # Example
//!
//! ```
//! use navlocks_server::{Address, Config, Service};
//! use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut config = Config::default();
//! config.tcp.push("127.0.0.1:0".parse()?);
//! let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
//! runtime.block_on(async {
//!     let service = Service::bind(config).await?;
//!     let Address::Tcp(address) = service.addresses()[0].clone() else { unreachable!() };
//!     // The service ends in good order when this future does.
//!     let until = async move {
//!         let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
//!         stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n").await.unwrap();
//!         let mut answer = String::new();
//!         stream.read_to_string(&mut answer).await.unwrap();
//!         assert!(answer.starts_with("HTTP/1.1 200 OK"));
//!     };
//!     service.run(until).await
//! })?;
//! # Ok(())
//! # }
//! ```

#![deny(unsafe_code)] // one function of `store` maps a file

#[cfg(not(target_os = "linux"))]
compile_error!(
    "navlocks-server needs Linux, whose clocks, sockets and file notices it uses; the crate \
     `navlocks` works in a process on every system, and as a client on every Unix system"
);

// The way of a message, from the outside in.
mod audit;
mod config;
mod service;
mod net;
mod dialing;
mod connection;
mod reload;
pub mod cluster;
pub mod hub;
mod hubs;
pub mod inspect;
mod node;
mod store;

pub use config::{Access, Config, Limits, SharedOrigins, SharedSocket, TlsFiles, read_secret};
pub use navlocks_core::DeadlockPolicy;
pub use net::{Address, web};
pub use service::Service;

/// Runs the examples of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
