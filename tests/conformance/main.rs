//! What the async API promises, as one body of tests that every backend passes.
//!
//! The body stands in `body/` and is written against whatever the including module calls `Arm`. To
//! give it another arm, add a file such as `local.rs`: a type `Arm` that is a [`backend::Backend`],
//! and the body by its path. `local::` before a test's name says which arm it ran on.
//!
//! An answer may take a round trip to somebody else's process. So nothing here is expected to have
//! happened because it was asked for: tests await outcomes, or ask [`watch`] until the state is as
//! it should be.

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed, and says where")]
#![allow(clippy::duplicate_mod, reason = "the body is a module of every arm")]

mod backend;
mod patience;
mod task;
mod watch;
mod transaction;

mod local;
mod service;
mod service_unix;
mod service_tcp;

mod examples;
