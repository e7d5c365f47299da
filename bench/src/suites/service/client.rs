//! What a case asks of a service.

use std::future::Future;
use std::io;
use std::time::Duration;

use servers::Address;

/// A way to use a lock service.
pub(crate) trait Service: Copy + Send + 'static {
    type Client: Client;

    /// Whether a second client waits for the first; not so for the bare round trip.
    const EXCLUDES: bool = true;

    /// How long a holder has the lock before it passes it on: long enough that the other one waits for it.
    const HOLD: Duration = Duration::from_millis(2);

    /// A new client with a connection of its own, ready to ask for locks.
    fn connect(self, address: &Address) -> impl Future<Output = io::Result<Self::Client>> + Send;
}

/// A client, which has one lock at most.
pub(crate) trait Client: Send + 'static {
    /// Waits until it has the lock of the name.
    fn acquire(&mut self, name: &str) -> impl Future<Output = io::Result<()>> + Send;

    /// Gives it back. Waits for the answer where the service's users do.
    fn release(&mut self) -> impl Future<Output = io::Result<()>> + Send;

    /// Goes, and so does its lock if it has one.
    fn close(self) -> impl Future<Output = io::Result<()>> + Send
    where
        Self: Sized,
    {
        async { Ok(()) }
    }
}
