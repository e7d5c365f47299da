//! The release models and the older APIs, on one thread and without a runtime unless a test says
//! otherwise.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed, and says where")]

mod support;
mod rows_auto;
mod rows_explicit;
mod rows_scoped;
mod rows_options;
mod rows_acquire;
mod rows_flag;
mod auto_lock;
mod auto_lock_threads;
mod bounds;
