//! Tests about the project itself: its source, its conformance list, its documents, its
//! dependencies.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed, and says where")]

mod conformance;
mod crates;
mod files;
mod javascript;
mod modules;
mod no_std;
mod packages;
mod documents;
mod source;
mod suites;
mod tables;
mod tidy;
mod unsafe_code;
mod workflows;
