//! The members of a cluster: how a node stays one, and what it learns of the others.

pub(crate) mod member;
pub(crate) mod driver;
mod renewal;
mod renewer;
mod sighting;
mod hearing;
pub(crate) mod inspection;
