//! The local backend: locks in this process.
//!
//! Each input locks a shard, gives its engine one input, collects wakers, unlocks, and then wakes.

// In reading order.
mod space;
mod shard;
mod watchers;
mod holds;
mod registry;

pub(crate) use space::Space;
