//! Clusters of real nodes on a real etcd.

mod clustered;
pub(crate) mod failovers;
pub(crate) mod nodes;
mod storage;
