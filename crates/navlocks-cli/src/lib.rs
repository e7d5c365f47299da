//! The command `navlocks`. A library for this project's tests and measurements, not a stable
//! interface.

// In reading order: the subcommands, a command under its lock, the place of the service.
mod command;
mod run;
pub mod place;
pub mod exit;
mod printer;
mod system;

pub use command::main;
