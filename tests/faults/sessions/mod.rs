//! Sessions that outlive their service, in virtual time: the shipped hub, its tables in a folder,
//! and the machine of the shipped client. The service is killed at any moment and restarted, also
//! while it waits for claims; messages are delayed or lost; clients are killed and stopped, steal,
//! force-release, abort and break off their claims.
//!
//! One unit of time is a millisecond of the hub and a nanosecond of the record.

mod bug;
mod client;
mod service;
mod world;

pub(crate) use bug::Bug;
pub(crate) use world::{Played, play};
