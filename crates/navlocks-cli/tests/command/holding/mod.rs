//! Commands under locks, and the ways in which these end.

mod child;
mod crowd;
mod death;
mod flock;
mod holds;
mod leading;
mod limits;
mod losing;
mod nesting;
mod script;
mod waiting;
mod rust;
