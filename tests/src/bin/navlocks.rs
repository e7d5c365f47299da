//! The command `navlocks`, as users have it.

use std::process::ExitCode;

fn main() -> ExitCode {
    navlocks_cli::main(std::env::args_os())
}
