//! Many commands that wait for one lock: they cost their service little, and other clients nothing.

use std::process::Stdio;
use std::time::Instant;

use crate::support::{Guarded, World};

/// Returns the processor time of the service in seconds.
fn processor_seconds(world: &World) -> f64 {
    let path = format!("/proc/{}/stat", world.service().as_raw_nonzero());
    let stat = std::fs::read_to_string(path).expect("it runs");
    let fields: Vec<&str> = stat.rsplit(") ").next().expect("fields").split(' ').collect();
    let ticks = |field: usize| fields[field].parse::<f64>().expect("a number");
    // The kernel shows hundredths of a second, independent of its own clock.
    (ticks(11) + ticks(12)) / 100.0
}

#[test]
fn many_waiting_commands_cost_little_and_all_get_their_turns() {
    // With `./test soak`, as many as a large machine may have.
    let soaks = std::env::var_os("NAVLOCKS_SOAK").is_some();
    let count = if soaks { 5_000 } else { 100 };
    let world = World::new();
    let holder = world.hold("run x");
    let mut waiters: Vec<Guarded> = (0..count)
        .map(|_| {
            let mut command = world.navlocks("run x -- true");
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            Guarded(command.spawn().expect("the program starts"))
        })
        .collect();
    world.until(1, count);
    let (before, begun) = (processor_seconds(&world), Instant::now());
    // A bystander is granted its lock at once, again and again.
    for _ in 0..20 {
        assert_eq!(world.run("run -w 10 y -- true").status.code(), Some(0));
    }
    let used = processor_seconds(&world) - before;
    let time = begun.elapsed().as_secs_f64();
    assert!(used < time / 2.0, "the service used {used} s of the processor in {time} s");
    holder.end().assert(0, "");
    for waiter in &mut waiters {
        assert_eq!(waiter.wait().code(), Some(0));
    }
}
