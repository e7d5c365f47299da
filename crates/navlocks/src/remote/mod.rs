//! Locks of a service: the same verbs, said over a connection.
//!
//! ```text
//!   Locks, guards, futures ──▶ session ──▶ outbox ──▶ driver ──▶ WebSocket ──▶ service
//!          ▲                      ▲                     │
//!          └────── wakers ────────┴──── receiving ◀─────┘
//! ```
//!
//! A [`Session`](session::Session) is what its users and its driver share: what was requested, what is held, what is still to be
//! said. The driver is one task that owns the connection. Users never wait for it: they note what they want, wake it, and are woken.
//!
//! What is said can be said again. After a connection broke, everything that is to be said follows from what the session knows, so
//! nothing is replayed: the service hears which requests are still wanted, and the rest follows.

// In reading order.
mod url;
mod connect;
mod begin;
mod own;
mod handle;
mod session;
mod changes;
mod entry;
mod link;
mod receiving;
mod asking;
mod translation;
mod lease;
mod silence;
mod driver;
mod pacing;
mod dial;
mod runtime;

pub use connect::{Connect, ConnectError};
pub(crate) use handle::Handle;
