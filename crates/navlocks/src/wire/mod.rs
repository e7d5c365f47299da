//! What travels between a client and a service: one JSON message in each WebSocket text frame.
//!
//! Message by message, with examples, in `docs/wire.md`. This module is for those who write another client or another
//! service in Rust; everybody else uses [`Locks::connect`](crate::Locks::connect).
//!
//! A *connection* carries one *session*; a session has one or more *clients* in the standard's sense, each in one partition.
//! Requests are numbered by whoever makes them, from 1 upwards and never twice in a session, so that nothing has to be waited for
//! before the next message is sent.

mod fault;
mod id;
mod info;
mod name;
mod to_client;
mod to_service;

pub use fault::{Fault, FaultCode};
pub use id::{ClientKey, RequestKey};
pub use info::{About, Cause, Cycle, Event, Info, What};
pub use name::Names;
pub use to_client::{Answer, Granted, Limits, Lost, Partition, Refused, Reply, ToClient, Welcome};
pub use to_service::{Ask, Hello, Open, Question, Request, Resume, ToService};

/// The version of the protocol that is spoken here. It is part of the subprotocol's name and of the first message each way.
pub const VERSION: u32 = 1;

/// The WebSocket subprotocol, asked for by clients and confirmed by the service.
pub const SUBPROTOCOL: &str = "navlocks.1";

/// A subprotocol that starts with this carries an access token in base64url, for browsers, which cannot set headers.
pub const TOKEN_SUBPROTOCOL: &str = "navlocks.token.";

/// The message in a frame's text.
///
/// # Errors
///
/// A sentence that says what is wrong with it.
pub fn read<'a, M: serde::Deserialize<'a>>(text: &'a str) -> Result<M, Fault> {
    serde_json::from_str(text)
        .map_err(|error| Fault::new(FaultCode::BadMessage, format!("not a message: {error}")))
}

/// The text of the frame that carries a message.
pub fn write(message: &impl serde::Serialize) -> String {
    match serde_json::to_string(message) {
        Ok(text) => text,
        // Serialising fails for maps with keys that are no strings, and no message has a map.
        Err(error) => unreachable!("a message that cannot be written: {error}"),
    }
}
