//! The service as a process: signals, descriptors, logs, sockets that were opened for it.

#[allow(dead_code, reason = "the tests of the crate navlocks-server use the rest")]
#[path = "../../../navlocks-server/tests/service/client.rs"]
mod client;
mod pings;
mod process;
#[allow(dead_code, reason = "the tests of the crate navlocks-server use the rest")]
#[path = "../../../navlocks-server/tests/service/running.rs"]
mod running;
