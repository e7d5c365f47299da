//! Locks of a service: the same verbs, sent over a connection.
//!
//! ```text
//!   Locks, guards, futures ──verbs──▶ machine ──commands──▶ driver ──▶ WebSocket ──▶ service
//!          ▲                          │     ▲                  │
//!          └─────── wakers ◀──events──┘     └──messages, time──┘
//! ```
//!
//! The machine of `navlocks-client` has all state of the session. Users and driver share it in a
//! [`Session`](wakers::Session), with the tasks that wait for its events. The driver is one task
//! that owns the connection. Users never wait for it: they change the state, wake it, and are
//! woken.

// In reading order.
mod connect;
mod errors;
mod begin;
mod open;
pub mod service_dir;
mod user_service;
mod backend;
mod partitions;
mod wakers;
mod presence;
mod convert;
mod driver;
mod dial;
mod zero_rtt;
mod secret;

pub(crate) use backend::Handle;
pub use connect::Connect;
pub use errors::ConnectError;
pub use open::Greeting;
