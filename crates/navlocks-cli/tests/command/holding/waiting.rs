//! Waiting commands print the holder and the queue.

use crate::support::{Talk, World};

#[test]
fn waiting_command_prints_its_holder_once_without_a_terminal() {
    let world = World::new();
    let holder = world.hold("run --tag nightly x");
    let mut first = Talk::start(world.navlocks("run x -- true"));
    world.until(1, 1);
    let mut second = Talk::start(world.navlocks("run x -- true"));
    let pid = holder.pid().as_raw_nonzero();
    let start = format!("navlocks: waiting for 'x', held by nightly (pid {pid}) for ");
    assert!(first.line_after(&start).ends_with("s; next in the queue"));
    assert!(second.line_after(&start).ends_with("s; one waits before this"));
    holder.end().assert(0, "");
    for waiter in [first, second] {
        let ended = waiter.wait();
        ended.assert(0, "");
        assert_eq!(ended.lines, Vec::<String>::new(), "nothing more is said");
    }
}

#[test]
fn quiet_command_prints_nothing() {
    let world = World::new();
    let holder = world.hold("run x");
    let mut loud = Talk::start(world.navlocks("run x -- true"));
    let quiet = Talk::start(world.navlocks("run -q x -- true"));
    world.until(1, 2);
    // A later request has waited long enough to print its line.
    loud.line_after("navlocks: waiting");
    let mut late = Talk::start(world.navlocks("run x -- true"));
    late.line_after("navlocks: waiting");
    holder.end().assert(0, "");
    loud.wait().assert(0, "");
    late.wait().assert(0, "");
    let ended = quiet.wait();
    ended.assert(0, "");
    assert_eq!(ended.lines, Vec::<String>::new());
}
