//! The native addon of the npm package navlocks: locks for all threads of one Node process.
//!
//! ```text
//!    thread 1: locks.js ── request, release, abort, query ──┐            ┌── thread 2: locks.js
//!        ▲                                                  ▼            ▼        ▲
//!        │ mail, returned                     ┌──────────── space ───────────┐    │ wake, then mail
//!        └────────────────────────────────────┤ navlocks_threads::SharedHost ├────┘
//!                                             └──────────────────────────────┘
//! ```
//!
//! Each environment, the main thread or a worker, that opens a space is a client of it. A call
//! returns its effects on its own client as numbers in a shared array. Its effects on other clients
//! go into their mailboxes, and their event loops are woken to take them. A promise is never
//! settled from another thread.
//!
//! When an environment ends, for whatever reason, its clients end too, and clients that waited for
//! their locks are woken.
//!
//! Compiled to WebAssembly, the crate is the same lock space for one thread, which other threads
//! reach by messages.

#[cfg(not(target_family = "wasm"))]
mod functions;
mod mail;
#[cfg(not(target_family = "wasm"))]
mod napi;
mod report;
mod request;
#[cfg(target_family = "wasm")]
mod wasm;

#[cfg(not(target_family = "wasm"))]
pub(crate) use functions::{Instance, export_all};
