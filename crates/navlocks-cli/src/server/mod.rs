//! The service: lock spaces behind sockets.
//!
//! ```text
//!   socket ── listener ── http ── connection          one task a connection, all on one thread
//!                                     │  messages in, frames out
//!                                     ▼
//!                                    hub              sessions, partitions, tokens; no socket, no clock
//!                                     │
//!                                 partition           one engine each
//! ```

mod config;
mod limits;
mod access;
mod service;
mod activation;
mod socket;
mod listener;
mod tls;
mod http;
mod origin;
mod peer;
mod connection;
mod closing;
mod outbox;
mod lease;
mod idle;
mod shared;
mod hub;
mod questions;
mod quotas;
mod rehearsal;
mod lineage;
mod resuming;
mod session;
mod sessions;
mod secret;
mod partition;
mod partitions;
mod early;
mod contention;
mod listeners;
mod tokens;
mod memory;
mod state_file;
mod metrics;

pub use access::{Access, read_secret};
pub use config::{Config, TlsFiles};
pub use limits::Limits;
pub use listener::Address;
pub use rehearsal::Rehearsal;
pub use service::Service;
