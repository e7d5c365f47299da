//! The command `navlocks` and the service behind it. A library for this project's tests and measurements, not a stable
//! interface.

// In reading order: what people type, how a command runs under its lock, where the service lives and what it is.
mod command;
mod run;
pub mod place;
pub mod server;
pub mod exit;
mod printer;
mod system;

pub use command::main;
