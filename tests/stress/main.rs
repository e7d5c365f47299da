//! A million operations on real threads: exclusion, order, and nobody forgotten.
//!
//! `NAVLOCKS_STRESS_OPS` sets how many operations all tests make together (1,000,000),
//! `NAVLOCKS_SEED` which ones; a failure prints the seed. How the threads meet is different each
//! time all the same.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed, and says where")]
#![allow(clippy::print_stdout, reason = "seed and counts, shown when a test has failed")]

mod fair;
mod unfair;
mod blocking;

mod worker;
mod dice;
mod supervisor;
