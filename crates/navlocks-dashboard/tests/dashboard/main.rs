//! The dashboard of a service: its page, the views of a viewer, and what a viewer must not do.

#[allow(dead_code, reason = "the tests of the service need the rest")]
#[path = "../../../navlocks-server/tests/service/client.rs"]
mod client;
#[allow(dead_code, reason = "the tests of the service need the rest")]
#[path = "../../../navlocks-server/tests/service/running.rs"]
mod running;
mod documents;
mod page;
mod viewer;
mod views;
