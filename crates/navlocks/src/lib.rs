//! Named locks for async Rust: shared, exclusive or limited, fair, abortable, stealable, queryable.
//! The Web Locks API, in process.
//!
//! ```text
//!   locks.request("a")        one name, or ["a", "b"] at once
//!     .shared()               beside other shared ones
//!     .limit(4)               beside three others: a semaphore
//!     .timeout(…) .tag(…)     how long to wait, what to show in queries
//!     .steal()                take it away from its holders
//!     .if_available()         do not wait
//!        │
//!        ├─ .await            a Lock: dropping it releases it          explicit
//!        ├─ .with(async …)    runs the work under the lock             scoped
//!        └─ .lock_blocking()   blocks the thread                        without a runtime
//! ```
//!
//! # What to rely on
//!
//! - **Order.** First come, first served on each name. A shared request waits behind an earlier
//!   exclusive one. Several names are granted at once or not at all, so clients that request all
//!   names at once cannot deadlock.
//! - **Cancel safety.** Dropping the future of a request leaves the queue at once, and requests
//!   that waited for it alone are granted. If the lock was granted and the future not polled since,
//!   the lock is released.
//! - **Losses are reported.** A lock can be [stolen](Request::steal),
//!   [force-released](Locks::force_release), or its client [ended](Locks::end_client).
//!   [`Lock::guard`] ends the holder's work then, and [`Lock::lost`] and [`Lock::loss`] return the
//!   cause; a resource that checks the [fencing token](Lock::fencing_token) refuses a late write.
//! - **Any executor, or none.** Nothing is spawned. The first [timeout](Request::timeout) of a
//!   process starts one thread for timers.
//! - **Names are JavaScript strings**, any of them, compared exactly. See [`Name`].
//!
//! # Example
//!
//! ```
//! use navlocks::{Locks, RequestError};
//! use std::time::Duration;
//!
//! async fn transfer(locks: &Locks, from: &str, to: &str) -> Result<(), RequestError> {
//!     let both = locks.request([from, to]).timeout(Duration::from_secs(2)).tag("transfer").await?;
//!     // … both accounts are ours until `both` is dropped …
//!     drop(both);
//!     Ok(())
//! }
//! # navlocks::blocking::block_on(transfer(&Locks::new(), "wages", "rent")).unwrap();
//! ```
//!
//! # Through a service
//!
//! With the feature `service` processes and machines share the same locks: `Locks::connect` takes
//! `unix:/path/to/socket`, `ws://host:port` or `wss://host:port`, on Unix systems.
//!
#![cfg_attr(feature = "client", doc = "```no_run")]
#![cfg_attr(not(feature = "client"), doc = "```ignore")]
//! # async fn pay() -> Result<(), Box<dyn std::error::Error>> {
//! let locks = navlocks::Locks::connect("unix:/run/navlocks/socket").await?;
//! let lock = locks.request("invoice/42").await?;
//! # Ok(())
//! # }
//! ```
//!
//! # Features, platforms, versions
//!
//! | feature | default | adds |
//! |---|---|---|
//! | none | yes | locks in one process, with six small dependencies |
//! | `service` | no | `Locks::connect`: Unix sockets, WebSocket, TLS by `ring`; needs tokio |
//! | `client` | no | the same, without the runtime of several threads of tokio |
//!
//! | platform | in process | through a service |
//! |---|---|---|
//! | Linux (glibc, musl) | tested | tested |
//! | macOS | unit tests run | unit tests run |
//! | Windows, `wasm32-unknown-unknown` | compiles | no: it uses Unix sockets |
//!
//! Rust 1.88 or newer; a larger one is a minor version. [Compatibility] says what versions promise.
//!
//! [Compatibility]: https://github.com/navlocks/navlocks/blob/main/docs/compatibility.md
//!
//! The [guide] has recipes, and a comparison with the locks of tokio, std and the file system.
//!
//! The engine that decides is [`navlocks_core`]; the older APIs of the same lineage are in
//! [`lineage`].

#![forbid(unsafe_code)]
// The documentation labels items with their features.
#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(all(feature = "client", not(unix)))]
compile_error!(
    "the features `service` and `client` of navlocks need a Unix system, whose sockets it uses; \
     without them, locks in one process work on every system"
);

// In reading order: locks, a request, its guard, questions and events, the backends.
mod locks;
mod request;
mod connection;
mod lock;
mod error;
mod query;
pub mod events;
mod stream;
mod election;
pub mod deadlock;
pub mod blocking;
mod owner;
mod backend;
mod local;
#[cfg(feature = "client")]
mod remote;
mod sync;
// The older APIs and release styles, on the same engine.
pub mod lineage;

pub use connection::Connection;
pub use deadlock::DeadlockPolicy;
pub use election::{Leader, Leaders, Leadership};
pub use error::{
    DowngradeError, LossCause, QueryError, Refusal, RequestError, RequestErrorKind, Thief,
};
pub use events::{Event, EventKind};
pub use lock::watch::{ConnectionWatch, LossWatch};
pub use lock::{Contended, Lock, Lost};
pub use locks::{Builder, Locks};
pub use navlocks_core::{
    BadLimit, BlockedBy, Blockers, ClientId, EmptyScope, EscapeError, Explained, FencingToken,
    Limit, Mode, Name, RequestId, Scope,
};
#[cfg(feature = "client")]
pub use query::UnclaimedSession;
pub use query::{PartitionSnapshot, Place, RequestInfo, Snapshot, Waits};
#[cfg(feature = "client")]
#[doc(hidden)]
pub use remote::service_dir; // for the command
#[cfg(feature = "client")]
pub use remote::{Connect, ConnectError, Greeting};
pub use request::future::{RequestFuture, TryRequestFuture};
pub use request::reentrant::{Entered, Reentrant};
pub use request::{Request, TryRequest};
pub use stream::Events;

/// Documentation alone: this module is in no build.
#[cfg(any(doc, doctest))]
#[doc = include_str!("../GUIDE.md")]
pub mod guide {}

/// Runs the examples of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
