//! Real processes, their records, and the checker that reads them. The tests show that the checker
//! finds each violation, and nothing else.
//!
//! `NAVLOCKS_SEED` sets the seed, which is printed; `NAVLOCKS_CHAOS_SECONDS` how long processes are
//! disturbed.
#![allow(clippy::print_stdout, reason = "seed and counts, shown when a test has failed")]

mod checker;

mod folder;
mod processes;
mod served;
mod serve;
mod restarted;
mod outages;

mod cluster;
mod limits;
mod fenced;
mod example;
