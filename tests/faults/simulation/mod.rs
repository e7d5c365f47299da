//! A service and its clients as they should be, in virtual time: the engine decides, messages take
//! their time, clients are killed and stopped, the service is restarted. What they write down is
//! the history of a service that is right, unless a [`Bug`] is put into it.

mod bug;
mod client;
mod events;
mod message;
mod service;
mod world;

pub(crate) use bug::Bug;
pub(crate) use events::Events;
pub(crate) use world::{Played, play};
