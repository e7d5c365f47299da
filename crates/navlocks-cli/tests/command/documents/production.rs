//! The example of a whole service.

use std::path::Path;
use std::process::Command;

use crate::support::{World, assert_ended, finish, program, text};

/// Returns a port that was free a moment ago.
fn free_port() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.local_addr().expect("it has an address").port()
}

#[test]
fn production_example_starts_and_grants_locks() {
    if !Command::new("curl").arg("--version").output().is_ok_and(|it| it.status.success()) {
        return servers::skip("there is no curl");
    }
    let world = World::new();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/production/run");
    let mut command = Command::new(script);
    world.settle(&mut command);
    command.env("NAVLOCKS", program()).env("PORT", free_port().to_string());
    let output = finish(command);
    assert_ended(&output, 0, "");
    for said in [
        "the settings are right",
        "dashboard at https://localhost:",
        "locked, token ",
        "navlocks_requests_total{outcome=\"granted\"} 1",
        "the tenant bakery sees nothing of the tenant shop",
    ] {
        assert!(text(&output).contains(said), "{said}: {output:?}");
    }
}
