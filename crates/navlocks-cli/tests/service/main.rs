//! The service as its wire shows it: raw frames in, raw frames out.

mod client;
mod running;
mod basics;
mod endings;
mod leases;
mod restarts;
