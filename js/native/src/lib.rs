//! The native addon of the npm package navlocks: locks for all threads of one Node process.
//!
//! ```text
//!    thread 1: locks.js ── request, release, abort, query ──┐            ┌── thread 2: locks.js
//!        ▲                                                  ▼            ▼        ▲
//!        │ mail, by return                    ┌──────────── space ───────────┐    │ bell, then mail
//!        └────────────────────────────────────┤ the engine, behind a mutex   ├────┘
//!                                             └──────────────────────────────┘
//! ```
//!
//! Each environment, the main thread or a worker, that opens a space is a client of it. What a call
//! causes for its own client it gives back by return, as numbers in an array that both sides know;
//! what it causes for others is put into their mailboxes, and their event loops are woken to fetch
//! it. Nothing is settled from a foreign thread.
//!
//! When an environment ends, however it ends, its clients do, and those who waited for their locks
//! are woken.

mod functions;
mod inbox;
mod napi;
mod report;
mod space;

pub(crate) use functions::{Instance, export_all};
