//! The promises of the async API, as one body of tests that every backend passes.
//!
//! The body is in `body/` and uses the `Arm` of the module that includes it. To add an arm, add a
//! file such as `local.rs`: a type `Arm` that is a [`backend::Backend`], and the body by its path.
//! `local::` before the name of a test is its arm.
//!
//! An answer may take a round trip to another process. So a test never assumes an effect right
//! after a call: it awaits outcomes, or uses [`watch`] until the state is as it should be.

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
mod cluster;
mod cluster_one;
mod cluster_three;

mod examples;
mod web_server;
