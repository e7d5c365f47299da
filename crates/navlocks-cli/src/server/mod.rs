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
mod service;
mod listener;
mod http;
mod peer;
mod connection;
mod closing;
mod lease;
mod outbox;
mod shared;
mod hub;
mod questions;
mod session;
mod sessions;
mod secret;
mod partition;
mod partitions;
mod early;
mod contention;
mod listeners;
mod tokens;
mod metrics;

pub use config::Config;
pub use limits::Limits;
pub use listener::Address;
pub use service::Service;
