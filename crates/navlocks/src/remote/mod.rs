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
//! After a connection broke, everything that is to be sent follows from the state of the session,
//! so nothing is replayed. A service that goes on is told which requests are still wanted; its
//! successor gets a claim of all requests, held ones with their tokens.

// In reading order.
mod url;
mod connect;
mod begin;
mod open;
mod own;
mod handle;
mod session;
mod changes;
mod entry;
mod link;
mod claim;
mod presence;
mod receiving;
mod asking;
mod translation;
mod lease;
mod silence;
mod driver;
mod pacing;
mod dial;
mod early;
mod runtime;

pub use connect::{Connect, ConnectError};
pub(crate) use handle::Handle;
pub use open::Greeting;
