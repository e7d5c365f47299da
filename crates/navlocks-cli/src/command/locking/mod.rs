//! Locks from a command line: requests, and the ends of locks.

mod acquire;
pub(crate) mod run;
pub(crate) mod lock;
pub(crate) mod unlock;
pub(crate) mod leader;
pub(crate) mod steal;
pub(crate) mod release;
