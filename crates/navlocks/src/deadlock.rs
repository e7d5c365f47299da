//! Deadlocks: clients that wait for each other, and the policy of a lock space about them.
//!
//! # One client for each unit of work
//!
//! The search for deadlocks knows clients, not tasks. A wait of a client for itself is no deadlock,
//! because another task may release, so tasks that share a client, as clones of
//! [`Locks`](crate::Locks) do, hide the deadlocks among them. Between two clients, each is taken to
//! keep its locks until all its requests are granted. Give each task a client of its own: in a web
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
//! // A task that wants a lock of another task of its client waits.
//! let held = locks.request("a").await?;
//! let waits = locks.clone().request("a").timeout(std::time::Duration::from_millis(1));
//! assert!(matches!(waits.await.unwrap_err().kind(), RequestErrorKind::TimedOut { .. }));
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
    /// Returns the clients, two or more, in order of their serials.
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
        write!(f, "{clients} wait for each other (requests {requests})")
    }
}
