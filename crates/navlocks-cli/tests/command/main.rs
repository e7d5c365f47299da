//! The command `navlocks`: the real program, real processes, a real terminal.

mod support;

mod child;
mod crowd;
mod death;
mod flock;
mod hanging;
mod help;
mod input;
mod install;
mod holds;
mod leading;
mod limits;
mod losing;
mod nesting;
mod operators;
mod pages;
mod place;
mod production;
mod questions;
mod restarts;
mod rules;
mod rust;
mod script;
mod settings;
mod starting;
mod supervision;
mod terminal;
mod tls;
mod units;
mod users;
mod waiting;
mod waits;
