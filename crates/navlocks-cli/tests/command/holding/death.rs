//! Locks of processes that are killed, stopped or interrupted.

use std::os::unix::process::ExitStatusExt as _;

use rustix::process::Signal;

use crate::support::{Talk, World, assert_ended, eventually, left_behind, lives};

#[test]
fn f125_killed_navlocks_kills_its_command_and_releases_its_lock() {
    let world = World::new();
    let mut holder = Talk::start(world.script("run x", "echo $$; read line"));
    let child: i32 = holder.line().parse().unwrap();
    let waiter = Talk::start(world.navlocks("run x -- true"));
    world.until(1, 1);
    holder.signal(Signal::KILL);
    waiter.wait().assert(0, "");
    eventually("the end of the command", || !lives(child));
    assert_eq!(holder.end().status.code(), None);
}

#[test]
fn killed_waiter_leaves_the_queue() {
    let world = World::new();
    let holder = world.hold("run x");
    let waiter = Talk::start(world.navlocks("run x -- true"));
    world.until(1, 1);
    waiter.signal(Signal::KILL);
    world.until(1, 0);
    drop(waiter);
    holder.end().assert(0, "");
}

#[test]
fn ended_waiter_over_tcp_leaves_the_queue_before_its_lease_ends() {
    let world = World::new();
    let mut serve =
        world.navlocks("serve --no-socket --fresh --listen 127.0.0.1:0 --lease 60s --state-dir");
    serve.arg(world.file("state"));
    let mut service = Talk::start(serve);
    let run = format!("run --url {}", service.line_after("listening on "));
    let holder = world.hold(&format!("{run} x"));
    for signal in [Signal::TERM, Signal::INT, Signal::HUP] {
        let mut waiter = Talk::start(world.navlocks(&format!("{run} x -- true")));
        waiter.line_after("navlocks: waiting for 'x', held by");
        waiter.signal(signal);
        assert_eq!(waiter.wait().status.signal(), Some(signal.as_raw()));
    }
    // The command would wait behind the other requests for their leases.
    let next = Talk::start(world.navlocks(&format!("{run} -w 30 x -- true")));
    holder.end().assert(0, "");
    next.wait().assert(0, "");
    service.signal(Signal::TERM);
    service.wait().assert(0, "");
}

#[test]
fn interrupted_waiter_leaves_the_queue_and_runs_nothing() {
    let world = World::new();
    let holder = world.hold("run x");
    let waiter = Talk::start(world.navlocks("run x -- echo never"));
    world.until(1, 1);
    waiter.signal(Signal::INT);
    let ended = waiter.wait();
    assert_eq!(ended.lines, Vec::<String>::new());
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&ended.status), Some(2));
    world.until(1, 0);
    holder.end().assert(0, "");
}

/// Over TCP a stopped process looks like a broken network, so its lease decides.
#[test]
fn navlocks_that_is_stopped_beyond_its_lease_loses_its_lock_and_ends_its_command() {
    let world = World::new();
    let mut serve =
        world.navlocks("serve --no-socket --fresh --listen 127.0.0.1:0 --lease 1s --state-dir");
    serve.arg(world.file("state"));
    let mut service = Talk::start(serve);
    let url = service.line_after("listening on ");
    let over_tcp = |arguments: &str, script: &str| {
        let mut command = world.script(arguments, script);
        command.env("NAVLOCKS_URL", &url);
        Talk::start(command)
    };
    let mut holder = over_tcp("run x", "echo held; sleep 1000 & wait");
    assert_eq!(holder.line(), "held");
    holder.signal(Signal::STOP);
    // The waiter is granted when the lease of the stopped holder ends, and not later.
    let mut waiter = over_tcp("run x", "echo mine");
    assert_eq!(waiter.line(), "mine");
    waiter.wait().assert(0, "");
    holder.signal(Signal::CONT);
    holder.wait().assert(90, "longer than the lease");
    service.signal(Signal::TERM);
    service.wait().assert(0, "");
}

/// Processes that a killed `navlocks` leaves behind still hold its lock.
#[test]
fn lock_of_a_killed_navlocks_is_held_until_all_processes_of_its_command_have_ended() {
    // The second limit has no room for the usual number of the inherited descriptor.
    for words in ["", "ulimit -Sn 64;"] {
        let world = World::new();
        let left = left_behind(&world, words);
        assert!(lives(left.as_raw_nonzero().get()));
        assert_ended(&world.run("run -n x -- true"), 1, "'x' is not free");
        let waiter = Talk::start(world.navlocks("run x -- true"));
        world.until(1, 1);
        rustix::process::kill_process(left, Signal::KILL).unwrap();
        waiter.wait().assert(0, "");
    }
}
