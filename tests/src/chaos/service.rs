//! The service that a conductor disturbs.

use std::io;
use std::process::Child;

/// How to start a service and how to know that it is there.
pub trait Service: Send {
    /// What clients connect to. The same for every start.
    fn url(&self) -> String;

    /// Starts it; it need not answer yet. The conductor ends it.
    ///
    /// # Errors
    ///
    /// It could not be started.
    fn start(&mut self) -> io::Result<Child>;

    /// Whether it answers now, for example to a query. Returns soon.
    fn answers(&mut self) -> bool;
}
