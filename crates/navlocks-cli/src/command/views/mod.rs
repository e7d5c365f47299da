//! Questions about locks and waits, and their answers as text, tables and screens.

pub(crate) mod query;
pub(crate) mod watch;
pub(crate) mod why;
pub(crate) mod graph;
pub(crate) mod waits;
mod queues;
mod table;
mod screen;
mod json;
pub(crate) mod doctor;
