//! The Web Locks API as a state machine.
//!
//! ```text
//!            request  release  abort  terminate  force_release  suspend  resume  query
//!                │       │       │        │            │            │       │      │
//!                ▼       ▼       ▼        ▼            ▼            ▼       ▼      ▼
//!   ┌──────────────────────────────── LockManager ─────────────────────────────────────┐
//!   │                                                                                  │
//!   │   name    its queue: every entry that wants the name, in order                   │
//!   │   ────    ──────────────────────────────────────────────────────                 │
//!   │   "a"  →  [ X r1 ]   X r4                                                        │
//!   │   "b"  →  [ S r2     S r3 ]   X r4   S r5       r4 wants a and b at once         │
//!   │   "c"  →  [ X r6 ]                                                               │
//!   │              └─ clear: nothing earlier conflicts                                 │
//!   │                                                                                  │
//!   │   An entry is held exactly when it is clear in all its queues.                   │
//!   └──────────────────────────────────────┬───────────────────────────────────────────┘
//!                                          ▼
//!        the answer to the input itself;  poll_event for others:  Granted  Lost  Aborted  Evicted
//! ```
//!
//! # Purpose
//!
//! This crate decides which request holds a lock, and does nothing else: no I/O, no clock, no
//! threads, no `async`, no `unsafe`, no `std`. The same inputs always give the same answers and
//! events. It is made to be embedded: in a browser engine behind `navigator.locks`, in a JavaScript
//! runtime, in a lock service, under an async API.
//!
//! Embedders use the [`kit`]: it adds what every embedder needs around the engine. [`LockManager`]
//! is the engine alone.
//!
//! # The engine alone
//!
//! ```
//! use navlocks_core::{Answer, Event, HashKey, LockManager, Request};
//!
//! let mut manager = LockManager::new(HashKey::from_bytes([7; 16])); // random where names come from outside
//! let (one, two) = (manager.add_client(), manager.add_client());
//!
//! let (first, answer) = manager.request(one, Request::exclusive("a")).unwrap();
//! assert!(matches!(answer, Answer::Granted(_)));
//! let (second, answer) = manager.request(two, Request::shared(["a", "b"])).unwrap();
//! assert_eq!(answer, Answer::Pending);
//!
//! assert!(manager.release(first)); // or manager.terminate(one): its socket closed, its worker ended
//! let event = manager.poll_event();
//! assert!(matches!(event, Some(Event::Granted { request, client, .. }) if (request, client) == (second, two)));
//! ```

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

// In reading order: requests, events, how entries are stored, the rule, the verbs, the kit around
// them.
mod name;
mod scope;
mod id;
mod limit;
mod request;
mod event;
mod slots;
mod entry;
mod hash;
mod queue;
mod seating;
mod nests;
mod client;
mod numbers;
mod manager;
pub mod kit;

pub use client::SuspendPolicy;
pub use event::{Event, LossCause};
pub use hash::HashKey;
pub use id::{ClientId, FencingToken, RequestId, TokenTooLarge};
pub use limit::Limit;
pub use manager::{BlockedBy, ExplainBounds, Explained, Explanation, Step};
pub use manager::{Blockers, Deadlock, DeadlockPolicy, LockManager, RequestInfo, Snapshot, State};
pub use manager::{QueueView, Queued, Waiter};
pub use name::{EscapeError, Name};
pub use request::{Answer, BadLimit, DowngradeError, Mode, Request, RequestError, Wait};
pub use scope::{EmptyScope, Scope};

/// Runs the examples of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
