//! A correct service and its clients, in virtual time: the engine decides, messages are delayed,
//! clients are killed and stopped, the service is restarted. Their records are the history of a
//! correct service, unless a [`Bug`] is seeded.

mod bug;
mod client;
mod events;
mod message;
mod service;
mod world;

pub(crate) use bug::Bug;
pub(crate) use events::Events;
pub(crate) use world::{Played, play};
