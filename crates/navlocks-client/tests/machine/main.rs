//! The machine of a session against a scripted service, in virtual time.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed, and says where")]

mod peer;

mod attempts;
mod holds;
mod limits;
mod stories;
