//! The service as its wire shows it: raw frames in, raw frames out.

mod client;
mod running;
mod access;
mod basics;
mod compat;
mod documents;
mod downgrade;
mod endings;
mod holds;
mod hostile;
mod http;
mod leases;
mod reclaim;
mod restarts;
