//! The command `navlocks`. A library for this project's tests and measurements, not a stable
//! interface.

#[cfg(not(target_os = "linux"))]
compile_error!(
    "the command navlocks needs Linux, whose calls it uses to end a command with its lock; the \
     crate `navlocks` works in a process on every system"
);

// In reading order: what people type, how a command runs under its lock, where the service lives.
mod command;
mod run;
pub mod place;
pub mod exit;
mod printer;
mod system;

pub use command::main;
