//! The dashboard: a page whose files are part of the program, the rules under which a browser gets
//! them, and a gateway from a loopback port to a Unix socket.

mod files;
mod gateway;
mod guard;

pub(crate) use files::file;
pub use gateway::Gateway;
pub(crate) use gateway::switch_protocols;
pub(crate) use guard::{Refusal, admit, is_same_origin};
