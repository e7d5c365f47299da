//! The service as a process: signals, descriptors, logs, inherited sockets.

#[allow(dead_code, reason = "the tests of the crate navlocks-server use the rest")]
#[path = "../../../navlocks-server/tests/service/client.rs"]
mod client;
mod pings;
mod process;
#[allow(dead_code, reason = "the tests of the crate navlocks-server use the rest")]
#[path = "../../../navlocks-server/tests/service/running.rs"]
mod running;
