//! The local backend: locks in this process.
//!
//! Each input locks a shard, asks its engine, collects wakers, unlocks, and only then wakes.

// In reading order.
mod space;
mod shard;
mod watchers;
mod registry;

pub(crate) use space::Space;
