//! Services: their start, their end, their clusters and their dashboard.

pub(crate) mod serve;
pub(crate) mod stop;
pub(crate) mod dashboard;
pub(crate) mod cluster;
pub(crate) mod etcd;
mod joining;
pub(crate) mod recovery;
