//! The command `navlocks`. For now it shows the engine at work on one worked example.

mod demo;
mod printer;

use std::process::ExitCode;

fn main() -> ExitCode {
    match demo::transcript().and_then(|text| Ok(printer::print(&text)?)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => printer::complain(error.as_ref()),
    }
}
