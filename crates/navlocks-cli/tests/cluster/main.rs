//! Clusters of real processes on a real etcd: the command as an operator and a client use it.

mod belief;
mod carrying;
mod client;
mod errors;
mod moving;
mod networks;
mod nodes;
mod restoring;
mod upgrading;
mod viewing;
