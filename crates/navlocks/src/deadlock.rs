//! Deadlocks: clients that wait for each other, and the policy of a lock space about them.
//!
//! # One client for each unit of work
//!
//! The search for deadlocks knows clients, not tasks: a client is taken to keep its locks until all
//! its requests are granted. Tasks that share one client, as clones of [`Locks`](crate::Locks) do,
//! look like one worker, so under [`DeadlockPolicy::Refuse`] the second task that wants a name of
//! the first is refused although it only had to wait. Give each task a client of its own: in a web
//! server one for each request that it handles. A client costs little, and ends with the last
//! handle, request and lock of it.
//!
//! ```
//! # navlocks::blocking::block_on(async {
//! use navlocks::{DeadlockPolicy, Locks, RequestError, RequestErrorKind};
//!
//! async fn handle(locks: Locks, from: &str, to: &str) -> Result<(), RequestError> {
//!     let first = locks.request(from).await?;
//!     let second = locks.request(to).await?; // refused if that client waits for `from`
//!     drop((first, second));
//!     Ok(())
//! }
//!
//! let locks = Locks::builder().deadlocks(DeadlockPolicy::Refuse).build();
//! // For each HTTP request, and not `locks.clone()`:
//! handle(locks.new_client(), "a", "b").await?;
//!
//! // Two tasks of one client look like one that waits for itself.
//! let held = locks.request("a").await?;
//! let refused = locks.clone().request("a").await.unwrap_err();
//! assert!(matches!(refused.kind(), RequestErrorKind::Deadlock(_)));
//! # drop(held);
//! # Ok::<(), RequestError>(())
//! # }).unwrap();
//! ```
//!
//! Code that requests all names it needs [at once](crate::Locks::request) cannot deadlock and needs
//! no policy.

use std::fmt;

use navlocks_core::{ClientId, Deadlock, RequestId};

pub use navlocks_core::DeadlockPolicy;

/// Clients that wait for each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cycle(Box<Deadlock>);

impl Cycle {
    /// Returns the clients, in order of their serials. One client alone waits for itself.
    pub fn clients(&self) -> &[ClientId] {
        &self.0.clients
    }

    /// Returns the requests, held and pending, that make the cycle.
    pub fn requests(&self) -> &[RequestId] {
        &self.0.requests
    }
}

impl From<Deadlock> for Cycle {
    fn from(deadlock: Deadlock) -> Self {
        Self(Box::new(deadlock))
    }
}

impl fmt::Display for Cycle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |items: Vec<String>| items.join(", ");
        let clients = list(self.clients().iter().map(ToString::to_string).collect());
        let requests = list(self.requests().iter().map(ToString::to_string).collect());
        match self.clients() {
            [_] => write!(f, "{clients} waits for itself (requests {requests})"),
            _ => write!(f, "{clients} wait for each other (requests {requests})"),
        }
    }
}
