//! The machine's commands to the driver, and its events for the user.

use navlocks_wire as wire;

#[cfg(doc)]
use super::Machine;
use crate::url::Url;

/// A command to the driver. Commands are carried out in their order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// Connect a socket to this address, and then call [`Machine::dialed`].
    Dial(Url),
    /// Begin the handshake over this socket, and call [`Machine::opened`] after its answer. The
    /// messages that follow this command at once may travel with it.
    Open,
    /// Send this message.
    Send(String),
    /// Listen at this path, and then call [`Machine::present`].
    Present(String),
    /// Close the connection behind the last message.
    Close,
    /// Read until the service closes the connection, and ignore what it sends.
    Drain,
    /// Drop the connection, or the attempt to make one, without a further message.
    Drop,
    /// Start the service, and then call [`Machine::service_started`].
    StartService,
}

/// An event for the user of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(clippy::large_enum_variant, reason = "an event is read in place and never kept")]
pub enum Event {
    /// A request was granted.
    Granted(u64),
    /// A request is over, or its lock is lost.
    Over(u64),
    /// The service has answered all downgrades of this lock.
    Downgraded(u64),
    /// A request waits for this lock.
    Contended(u64),
    /// A question has its answer, or will get none.
    Answered(u64),
    /// The next subscription of a client was answered: it receives events from here on.
    Listening(u64),
    /// The next subscription of a client was refused.
    NotListening(u64),
    /// All subscriptions of a client begin anew, with one answer.
    ListensAgain(u64),
    /// An event of a subscription.
    Happened(wire::RequestEvent),
    /// The state of the link has changed.
    Link,
}
