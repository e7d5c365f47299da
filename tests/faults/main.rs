//! Real processes, their records, and the checker that reads them. The tests show that the checker
//! finds each violation, and nothing else.
//!
//! `NAVLOCKS_SEED` sets the seed, which is printed; `NAVLOCKS_CHAOS_SECONDS` how long processes are
//! disturbed.
#![allow(clippy::print_stdout, reason = "seed and counts, shown when a test has failed")]

mod handwritten;
mod violations;
mod no_violations;

mod folder;
mod records;
mod processes;
mod served;
mod serve;
mod restarted;
mod outages;

mod nodes;
mod failovers;
mod limits;
mod storage;
mod fenced;
mod clustered;
mod example;
