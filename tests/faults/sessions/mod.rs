//! Sessions that outlive their service, in virtual time: the hub as it is shipped, its tables in a
//! folder, and clients that keep to the protocol. The service is killed at any moment and started
//! again, also while it waits for claims; messages take their time or get lost; clients are killed
//! and stopped, steal, force, give up and break off their claims.
//!
//! One unit of time is a millisecond of the hub and a nanosecond of the record.

mod bug;
mod client;
mod link;
mod service;
mod world;

pub(crate) use bug::Bug;
pub(crate) use world::{Played, play};
