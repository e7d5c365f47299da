//! The dashboard of a lock service of navlocks: a page whose files are part of the program, the
//! answers to its questions, and a gateway from a loopback port to a Unix socket.
//!
//! ```text
//!   page ── question ─▶ viewer ─▶ jobs ─▶ surveyor: one question at a time, in steps
//!    ▲                                       │ views
//!    └────── answer ─────────────────────────┤
//!                                            ▼
//!   service ── recorders ─▶ histories     Inspect: read access at one moment
//! ```
//!
//! A viewer is no session of the service. The service gives it read access to its locks
//! ([`Inspect`](navlocks_server::inspect::Inspect)), writes what happens into recorders, and does
//! the actions of operators.

#![forbid(unsafe_code)]

mod acting;
mod dashboard;
mod files;
mod gateway;
mod history;
mod jobs;
mod recording;
pub mod shown;
pub mod view;
mod viewer;
mod views;

pub use dashboard::Dashboard;
pub use gateway::Gateway;

/// Runs the examples of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
