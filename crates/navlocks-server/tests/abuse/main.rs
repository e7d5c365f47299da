//! Trials: clients that take all they can get of a real service, beside a bystander of another
//! tenant.

#[path = "../service/client.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod client;
#[path = "../service/running.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod running;
mod bystander;
mod crowds;
mod memory;
mod panics;
mod process;
mod recovery;
mod shares;
mod turns;
