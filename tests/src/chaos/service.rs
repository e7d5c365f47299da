//! The service that a conductor disturbs.

use std::io;
use std::process::Child;

/// How to start a service and to see that it answers.
pub trait Service: Send {
    /// Returns the address for clients. The same for every start.
    fn url(&self) -> String;

    /// Starts it; it need not answer yet. The conductor ends it.
    ///
    /// # Errors
    ///
    /// It could not be started.
    fn start(&mut self) -> io::Result<Child>;

    /// Returns true if it answers now, for example to a query. Returns soon.
    fn answers(&mut self) -> bool;
}
