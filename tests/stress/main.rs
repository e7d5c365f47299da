//! A million operations on real threads: exclusion, order, and no lost wakeup.
//!
//! `NAVLOCKS_STRESS_OPS` sets how many operations all tests make together (1,000,000),
//! `NAVLOCKS_SEED` which ones; a failure prints the seed. The interleaving of the threads differs
//! each time all the same.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed, and says where")]
#![allow(clippy::print_stdout, reason = "seed and counts, shown when a test has failed")]

mod fair;
mod unfair;
mod blocking;

mod worker;
mod dice;
mod supervisor;
