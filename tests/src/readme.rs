//! The Rust snippets of the front documents, compiled and run as doctests.

#[doc = include_str!("../../README.md")]
mod readme {}

#[doc = include_str!("../../ARCHITECTURE.md")]
mod architecture {}
