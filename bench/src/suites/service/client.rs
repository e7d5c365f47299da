//! The interface of a service to the cases.

use std::future::Future;
use std::io;
use std::time::Duration;

use servers::Address;

/// A way to use a lock service.
pub(super) trait Service: Copy + Send + 'static {
    type Client: Client;

    /// True if a second client waits for the first; false for the bare round trip.
    const EXCLUDES: bool = true;

    /// How long a holder keeps the lock before it releases: long enough that the other one waits.
    const HOLD: Duration = Duration::from_millis(2);

    /// Connects a client that is ready to request locks.
    fn connect(self, address: &Address) -> impl Future<Output = io::Result<Self::Client>> + Send;
}

/// A client, which has at most one lock.
pub(super) trait Client: Send + 'static {
    /// Waits until it holds the lock of the name.
    fn acquire(&mut self, name: &str) -> impl Future<Output = io::Result<()>> + Send;

    /// Releases the lock. Awaits the answer where the users of the service do.
    fn release(&mut self) -> impl Future<Output = io::Result<()>> + Send;

    /// Returns true if the client still has its lock, as far as it can know. Asked after a restart
    /// of its server, and only where a client survives one.
    fn keeps(&mut self) -> impl Future<Output = io::Result<bool>> + Send {
        async { Ok(true) }
    }

    /// Goes, and so does its lock if it has one.
    fn close(self) -> impl Future<Output = io::Result<()>> + Send
    where
        Self: Sized,
    {
        async { Ok(()) }
    }
}
