//! The command `navlocks`: the real program, real processes, a real terminal.

mod support;

mod holding;
mod services;
mod documents;
mod input;
mod questions;
mod terminal;
mod waits;
