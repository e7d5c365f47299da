//! The messages between a client and a service of navlocks: one JSON message in each WebSocket text
//! frame.
//!
//! The document `docs/wire.md` explains each message with examples. This crate is for authors of
//! another client or another service in Rust; other programs use `Locks::connect` of the crate
//! `navlocks`.
//!
//! A *connection* carries one *session*; a session has one or more *clients* in the standard's
//! sense, each in one partition. The client numbers its requests, from 1 upwards and never twice in
//! a session, so it can send the next message without an answer to the last one.
//!
//! The types are exhaustive on purpose: a new message is a new version of the protocol, and a
//! client or service that does not handle it should not compile. Within a version only
//! [`FaultCode`] and the members of messages grow: both sides ignore members that they do not know.
//!
//! ```
//! use navlocks_wire::{Granted, ToClient};
//!
//! let granted = ToClient::Granted(Granted::new(7, 41));
//! let text = navlocks_wire::write(&granted);
//! assert_eq!(text, r#"{"granted":{"id":7,"token":41}}"#);
//! assert_eq!(navlocks_wire::read::<ToClient>(&text)?, granted);
//! # Ok::<(), navlocks_wire::Fault>(())
//! ```

#![forbid(unsafe_code)]

mod fault;
mod id;
mod info;
mod name;
mod to_client;
mod to_service;
mod trace;
mod version;

pub use fault::{Fault, FaultCode};
pub use id::{ClientKey, RequestKey};
pub use info::{About, Cycle, Info, LossCause, RequestEvent, UnclaimedSession, What};
pub use name::Names;
pub use to_client::{
    Answer, BlockedBy, Event, EventText, Granted, Limits, Lost, NotWatching, Over, Partition,
    Pending, Place, Refused, Reply, ToClient, Waits, Welcome, Why,
};
pub use to_service::{
    Ask, Downgrade, Hello, LocksOf, Open, Question, QueuePlace, Request, Resume, ToService,
    WaitsOf, Watch, Within,
};
pub use trace::TraceParent;
pub use version::{
    OFFERED_SUBPROTOCOLS, SUBPROTOCOL, SUBPROTOCOLS, TOKEN_SUBPROTOCOL, VERSION, choose_subprotocol,
};

/// Names and modes as members of messages: `#[serde(with = "navlocks_wire::member::single")]`.
pub mod member {
    pub use crate::info::mode;
    pub use crate::name::{many, optional, single};
}

/// Reads the message in the text of a frame.
///
/// # Errors
///
/// The text says why it is not a message.
pub fn read<'a, M: serde::Deserialize<'a>>(text: &'a str) -> Result<M, Fault> {
    serde_json::from_str(text)
        .map_err(|error| Fault::new(FaultCode::BadMessage, format!("not a message: {error}")))
}

/// Writes a message as [`write()`] does, and stops at a limit. Returns none if it has more than
/// `bytes_max` bytes.
pub fn write_within(message: &impl serde::Serialize, bytes_max: usize) -> Option<String> {
    let mut bounded = Bounded { text: Vec::new(), bytes_max };
    serde_json::to_writer(&mut bounded, message).ok()?;
    String::from_utf8(bounded.text).ok()
}

/// A writer that stops at a limit.
struct Bounded {
    text: Vec<u8>,
    bytes_max: usize,
}

impl std::io::Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if self.text.len() + bytes.len() > self.bytes_max {
            return Err(std::io::ErrorKind::FileTooLarge.into());
        }
        self.text.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Writes a message as the text of a frame.
pub fn write(message: &impl serde::Serialize) -> String {
    match serde_json::to_string(message) {
        Ok(text) => text,
        // Serialising fails for maps with keys that are no strings, and no message has a map.
        Err(error) => unreachable!("a message that cannot be written: {error}"),
    }
}

/// Runs the examples of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
