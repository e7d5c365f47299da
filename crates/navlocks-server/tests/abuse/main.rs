//! Trials: clients that take all they can get of a real service, beside a bystander of another
//! tenant.

#[path = "../service/client.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod client;
#[path = "../service/running.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod running;
mod crowds;
mod panics;
mod trials;
mod turns;
