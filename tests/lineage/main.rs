//! The release styles and the older APIs, on one thread and without a runtime unless a test uses
//! one.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed, and says where")]

mod support;
mod auto;
mod explicit;
mod scoped;
mod options;
mod acquire;
mod flag;
mod auto_lock;
mod auto_lock_threads;
mod bounds;
