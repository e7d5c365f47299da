//! The command `navlocks`. A library for this project's tests and measurements, not a stable
//! interface.

// In reading order: what people type, how a command runs under its lock, where the service lives.
mod command;
mod run;
pub mod place;
pub mod exit;
mod printer;
mod system;

pub use command::main;
