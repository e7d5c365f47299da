//! The command `navlocks` and the service behind it. A library for this project's tests and measurements, not a stable
//! interface.

pub mod server;
