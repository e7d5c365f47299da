//! Sessions in virtual time: the shipped hub with its tables or with slots of a cluster, the
//! machine of the shipped client, and a model of etcd, all from one seed. Processes are killed at
//! any message and machines sleep; connections break, close, go silent, are delayed and flap; etcd
//! loses its quorum; a disk is full; a stranger sends each message with the numbers of others.
//!
//! One unit of time is a millisecond of the hub and a nanosecond of the record. `NAVLOCKS_SEED`
//! sets the seed, which is printed, and `NAVLOCKS_HISTORIES` the number of random histories.
#![allow(clippy::print_stdout, reason = "seeds and counts, shown when a test has failed")]

mod bug;
mod client;
mod etcd;
mod events;
mod folder;
mod histories;
mod member;
mod plan;
mod scale;
mod seeded;
mod services;
mod stranger;
mod tally;
mod errands;
mod world;
