//! Clusters of real processes on a real etcd: the command as an operator and a client use it.

mod carrying;
mod client;
mod errors;
mod moving;
mod nodes;
mod viewing;
