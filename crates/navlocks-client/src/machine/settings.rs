//! The settings of a session.

use std::time::Duration;

use crate::addresses::Addresses;

/// The settings of a session.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The addresses of the service.
    pub addresses: Addresses,
    /// The session has a token that must not go to other machines unencrypted.
    pub hides_token: bool,
    /// The partition of client 0.
    pub partition: String,
    /// The process of the client, for people on other machines.
    pub process: Option<String>,
    /// The lease that the client prefers.
    pub lease: Option<Duration>,
    /// How long the service may be out of reach until waits fail.
    pub unreachable_after: Option<Duration>,
    /// How long a connected service may send nothing until waits fail.
    pub answer_timeout: Option<Duration>,
    /// The driver can start the service.
    pub starts_service: bool,
    /// How the first connection is made.
    pub begin: Begin,
}

impl Settings {
    /// Makes settings that say nothing else.
    pub fn new(addresses: Addresses, begin: Begin) -> Self {
        Self {
            addresses,
            hides_token: false,
            partition: String::new(),
            process: None,
            lease: None,
            unreachable_after: None,
            answer_timeout: None,
            starts_service: false,
            begin,
        }
    }
}

/// How the first connection of a session is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Begin {
    /// Each address is dialled once.
    Once,
    /// Each address is dialled once, and the hello waits for
    /// [`Machine::greet`](super::Machine::greet). Requests until then travel with it.
    Dial,
    /// It is dialled until it is reached, as after a broken connection.
    Persist,
}
