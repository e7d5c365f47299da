//! The embedding kit: what every embedder needs around the engine, written once.
//!
//! ```text
//!   Host      partitions × clients × request numbers made by the caller; groups, limits, memory
//!    │
//!   Space     one partition: notes, tags, since when, subscribers, contention, deadlock policy
//!    │
//!   LockManager                       decides
//! ```
//!
//! An embedder says what it attaches to a request ([`Embedder`]) and how it is notified ([`Sink`]):
//! it wakes a task, writes to an outbox, settles a promise. A sink is called in engine order, while
//! the embedder has exclusive access; it should collect, and wake or send once nothing is locked.
//!
//! # An embedding in thirty lines
//!
//! A browser engine has one process for locks. Pages number their own requests, because they cannot
//! wait for an answer before they send an abort; a page and its workers end together.
//!
//! ```
//! use navlocks_core::kit::{Address, Host, HostSink, Limits, Notice};
//! use navlocks_core::{Answer, DeadlockPolicy, HashKey, Request};
//!
//! #[derive(Default)]
//! struct Messages(Vec<String>); // to be sent to the pages' processes afterwards
//!
//! impl HostSink<u64, &str> for Messages {
//!     fn now(&self) -> u64 {
//!         0 // the time of a clock, in any unit
//!     }
//!
//!     fn notify(&mut self, to: Address, notice: &Notice<'_, u64>) {
//!         if let Notice::Granted { token, .. } = notice {
//!             self.0.push(format!("request {} is granted, token {token}", to.number));
//!         }
//!     }
//! }
//!
//! let key = HashKey::from_bytes([7; 16]); // random where names come from outside
//! let mut host = Host::new(key, Limits::default(), DeadlockPolicy::Ignore);
//! let mut messages = Messages::default();
//! let (page, tab) = (host.add_group(), host.add_group());
//! let worker = host.open(page, "https://shop.example")?;
//! let other = host.open(tab, "https://shop.example")?;
//! let cart = Request::exclusive("cart");
//! host.request(worker, 1, &cart, Some("checkout"), &mut messages)?;
//! let (_, answer) = host.request(other, 7, &cart, None, &mut messages)?;
//! assert_eq!(answer, Answer::Pending);
//! assert!(!host.release(other, 7, &mut messages)); // it waits, and holds nothing
//! host.end_group(page, &mut messages); // the page was closed, and its worker with it
//! assert_eq!(messages.0, ["request 1 is granted, token 1", "request 7 is granted, token 2"]);
//! # Ok::<(), navlocks_core::kit::HostError>(())
//! ```

mod contention;
#[cfg(test)]
mod cost;
mod host;
mod ids;
mod limits;
mod notes;
mod space;

pub use host::{Address, Group, Host, HostError, HostLock, HostSink, HostSnapshot, Member, Memory};
pub use limits::{LimitExceeded, Limits};
pub use notes::Notes;
pub use space::{About, Space, SpaceError};

use crate::{ClientId, Deadlock, FencingToken, LossCause, Mode, RequestId};

/// The types that an embedder attaches to each request.
pub trait Embedder {
    /// The embedder's own half of a request: a waker, the address of an outbox, the number of a
    /// promise.
    type Note: Default;
    /// A moment of the embedder's clock, for "since when".
    type Time: Copy;
    /// A text of the client, shown in queries and events.
    type Tag: Clone;
}

/// How an embedder is notified. Called in engine order.
pub trait Sink<E: Embedder> {
    /// False if the callers of [`Space::request`] and [`Space::release`] take their own grant or
    /// release from the answer alone. The fast path then does without a notice.
    const NOTIFIES_OWN: bool = true;

    /// Returns the time of the embedder's clock. Called once for each request and each grant.
    fn now(&self) -> E::Time;

    /// Notifies the client of a request. `notes` has what the embedder attached to it, and to
    /// others.
    ///
    /// The outcome of a request that was just made is notified too, in its place: after the losses
    /// that it caused and before later grants.
    fn notify(&mut self, request: RequestId, notes: &mut Notes<E>, notice: &Notice<'_, E::Time>);

    /// Publishes a notice to all subscribers. Called only between [`Space::describe`] and
    /// [`Space::stop_describing`].
    fn publish(
        &mut self,
        request: RequestId,
        about: &About<E::Tag>,
        notes: &Notes<E>,
        notice: &Notice<'_, E::Time>,
    ) {
        let _ = (request, about, notes, notice);
    }

    /// Returns true if the sink takes no more effects of this input for now, so that one input
    /// with many effects does not keep its thread. [`Space::go_on`] passes on the rest.
    #[inline]
    fn has_enough(&self) -> bool {
        false
    }

    /// A suspended client was evicted; the embedder may discard it.
    fn evicted(&mut self, client: ClientId) {
        let _ = client;
    }
}

/// Something that happened to a request.
///
/// Each request begins with `Requested`; `Granted` comes once at most; exactly one of
/// `Unavailable`, `Released`, `Withdrawn`, `Aborted`, `Lost` and `ClientEnded` is the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notice<'a, Time> {
    /// The request was made. For subscribers only.
    Requested,
    /// The request holds its lock.
    Granted {
        /// Larger than every token granted before.
        token: FencingToken,
        /// When it was requested.
        since: Time,
    },
    /// The request wanted the lock only if available, and it is not.
    Unavailable,
    /// The holder gave its lock this mode, which allows as many holders or more.
    Downgraded(Mode),
    /// The client released its lock.
    Released {
        /// When it was granted.
        since: Time,
    },
    /// The client aborted its pending request.
    Withdrawn,
    /// The pending request was aborted, not by its client.
    Aborted(LossCause),
    /// The lock was taken away.
    Lost {
        /// Why.
        cause: LossCause,
        /// When it was granted.
        since: Time,
    },
    /// The client ended, and its request with it.
    ClientEnded {
        /// When it was granted; none if it was pending.
        held_since: Option<Time>,
    },
    /// A request waits for this held lock, whose holder watches for that. Never published.
    Contended,
    /// The request waits, and thereby closes a cycle of requests that wait for each other.
    Deadlock(&'a Deadlock),
}

impl<Time> Notice<'_, Time> {
    /// Returns true if nothing happens to the request after this.
    pub fn is_last(&self) -> bool {
        match self {
            Self::Requested
            | Self::Granted { .. }
            | Self::Downgraded(_)
            | Self::Contended
            | Self::Deadlock(_) => false,
            Self::Unavailable
            | Self::Released { .. }
            | Self::Withdrawn
            | Self::Aborted(_)
            | Self::Lost { .. }
            | Self::ClientEnded { .. } => true,
        }
    }
}

/// Tries a few times before the thread goes to sleep: an operation takes a tenth of a microsecond,
/// and waking a thread takes twenty. For embedders that keep a [`Space`] behind a mutex.
#[inline]
pub fn spin<T>(mut try_lock: impl FnMut() -> Option<T>) -> Option<T> {
    for doublings in 0..10 {
        if let Some(locked) = try_lock() {
            return Some(locked);
        }
        for _ in 0..1 << doublings {
            core::hint::spin_loop();
        }
    }
    None
}
