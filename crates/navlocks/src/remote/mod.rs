//! Locks of a service: the same verbs, sent over a connection.
//!
//! ```text
//!   Locks, guards, futures ──▶ session ──▶ outbox ──▶ driver ──▶ WebSocket ──▶ service
//!          ▲                      ▲                     │
//!          └────── wakers ────────┴──── receiving ◀─────┘
//! ```
//!
//! A [`Session`](session::Session) is the state that users and driver share: requests, locks and
//! messages to send. The driver is one task that owns the connection. Users never wait for it: they
//! change the state, wake it, and are woken.
//!
//! After a connection broke, all messages follow from the state of the session, so nothing is
//! replayed: a resumed session claims all its live requests, held ones with their tokens.
//!
//! The parts that need no clock, no socket and no task are in the crate `navlocks-client`.

// In reading order.
mod connect;
mod begin;
mod open;
mod own;
mod handle;
mod partitions;
mod session;
mod changes;
mod entry;
mod link;
mod claim;
mod presence;
mod receiving;
mod asking;
mod translation;
mod clock;
mod silence;
mod driver;
mod greeting;
mod carrier;
mod alarm;
mod dial;
mod early;
mod runtime;
mod secret;

pub use connect::{Connect, ConnectError};
pub(crate) use handle::Handle;
pub use open::Greeting;
