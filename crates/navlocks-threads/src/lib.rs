//! The embedding kit for the threads of one process.
//!
//! ```text
//!    thread 1: its runtime ── request, release, cancel, query ─┐            ┌── thread 2
//!        ▲                                                     ▼            ▼        ▲
//!        │ mail, returned                        ┌──────── SharedHost ─────────┐     │ wake,
//!        └───────────────────────────────────────┤ kit::Host, behind a mutex   ├─────┘ then mail
//!                                                └─────────────────────────────┘
//! ```
//!
//! A thread has a mailbox, and opens its clients with it. A call returns its effects on the own
//! mailbox to its caller. Its effects on other clients go into their mailboxes under the mutex, so
//! that every client receives them in engine order; their wakers are called after unlocking. No
//! code of another thread ever runs here.

mod inbox;
mod mail;
mod mailboxes;
mod shared;

pub use inbox::Event;
pub use mail::{Mail, News, Post};
pub use mailboxes::Wake;
pub use shared::{Census, Report, SharedHost};

/// Runs the example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
