//! The engine for C and C++.
//!
//! Every function checks its handles and copies its inputs. A panic inside an `extern "C"` function
//! ends the process, because no caller in C could handle it.

mod functions;
mod hosts;
mod memory;
mod query;
mod types;

pub use functions::*;
pub use query::*;
pub use types::*;
