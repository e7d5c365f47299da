//! Deadlocks: locks that wait for each other, and the policy of a lock space about them.
//!
//! # Requests within a lock
//!
//! A task that holds a lock and requests another one keeps the first until it has the second. Only
//! the task knows that, so it says so: [`Lock::request`](crate::Lock::request) makes a request
//! within a lock. A cycle of such waits is [certain](Cycle::is_certain), and a policy reports or
//! refuses the request that closes it. Tasks that share a client, as clones of
//! [`Locks`](crate::Locks) do, need no care.
//!
//! Where requests are made within no lock, a cycle of clients is only possible, because one of them
//! may have another task that releases. [`Locks::deadlocks`](crate::Locks::deadlocks) returns it
//! after the certain ones, and no policy refuses it.
//!
//! ```
//! # navlocks::blocking::block_on(async {
//! use navlocks::{DeadlockPolicy, Locks, RequestError, RequestErrorKind};
//!
//! async fn handle(locks: Locks, from: &str, to: &str) -> Result<(), RequestError> {
//!     let first = locks.request(from).await?;
//!     let second = first.request(to).await?; // refused if its holder waits for `from`
//!     drop((first, second));
//!     Ok(())
//! }
//!
//! let locks = Locks::builder().deadlocks(DeadlockPolicy::Refuse).build();
//! handle(locks.clone(), "a", "b").await?;
//!
//! // A task that wants a lock of another task waits.
//! let held = locks.request("a").await?;
//! let waits = locks.request("a").timeout(std::time::Duration::from_millis(1));
//! assert!(matches!(waits.await.unwrap_err().kind(), RequestErrorKind::TimedOut { .. }));
//! // One that holds it would wait for itself.
//! assert!(matches!(held.request("a").await.unwrap_err().kind(), RequestErrorKind::Deadlock(_)));
//! # Ok::<(), RequestError>(())
//! # }).unwrap();
//! ```
//!
//! Code that requests all names it needs [at once](crate::Locks::request) cannot deadlock and needs
//! no policy.

use std::fmt;

use navlocks_core::{ClientId, Deadlock, RequestId};

pub use navlocks_core::DeadlockPolicy;

/// Requests that wait for each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cycle(Box<Deadlock>);

impl Cycle {
    /// Returns true if none of its pending requests is granted unless a holder gives up. False if
    /// it is a cycle only because requests share a client, and it is not known which lock waits.
    pub fn is_certain(&self) -> bool {
        self.0.certain
    }

    /// Returns the lock that waits for itself, if the cycle is of one holder: a request within that
    /// lock needs one of its names.
    pub fn outer(&self) -> Option<RequestId> {
        self.0.outer
    }

    /// Returns the clients, in order of their serials.
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
        if let Some(outer) = self.outer() {
            return f.write_str(&Deadlock::describe_own(outer));
        }
        let list = |items: Vec<String>| items.join(", ");
        let clients = list(self.clients().iter().map(ToString::to_string).collect());
        let requests = list(self.requests().iter().map(ToString::to_string).collect());
        write!(f, "{clients} wait for each other (requests {requests})")
    }
}
