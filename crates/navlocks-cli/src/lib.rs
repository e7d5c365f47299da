//! The command `navlocks`. A library for this project's tests and measurements, not a stable
//! interface.

#[cfg(not(target_os = "linux"))]
compile_error!(
    "the command navlocks needs Linux, whose calls it uses to end a command with its lock; the \
     crate `navlocks` works in a process on every system"
);

// In reading order: the subcommands, a command under its lock, the place of the service.
mod command;
mod run;
pub mod service_dir;
pub mod exit;
mod printer;
mod process;
mod system;

pub use command::main;
pub use system::enter;
