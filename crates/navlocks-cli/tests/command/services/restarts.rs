//! A service that ends under holders and waiters, and its successor.

use std::fs;
use std::time::{Duration, Instant};

use rustix::process::{Signal, kill_process};

use crate::support::{Talk, World, assert_ended, eventually, left_behind, lives, text};

/// Kills the service, and waits until it has ended.
fn kill_service(world: &World) {
    let service = world.service();
    kill_process(service, Signal::KILL).expect("it is there");
    eventually("the end of the service", || !lives(service.as_raw_nonzero().get()));
}

/// Returns the tokens of all held locks.
fn tokens(world: &World) -> Vec<u64> {
    let now = world.query();
    let held = now["held"].as_array().expect("a list");
    held.iter().map(|lock| lock["token"].as_u64().expect("a token")).collect()
}

#[test]
fn holder_keeps_its_lock_when_the_service_is_killed() {
    let world = World::new();
    let mut holder = Talk::start(world.script(
        "run x",
        "trap 'echo asked' TERM; echo $NAVLOCKS_FENCING_TOKEN; read line; exit 0",
    ));
    let token: u64 = holder.line().parse().unwrap();
    for _ in 0..3 {
        kill_service(&world);
        // The holder starts the service again: no other command runs.
        eventually("the claim", || tokens(&world) == [token]);
        assert_ended(&world.run("run -n x -- true"), 1, "'x' is not free");
    }
    let ended = holder.end();
    ended.assert(0, "");
    assert_eq!(ended.lines, Vec::<String>::new(), "the command was not disturbed");
    let later = world.run_script("run x", "echo $NAVLOCKS_FENCING_TOKEN");
    assert!(text(&later).trim().parse::<u64>().unwrap() > token);
}

#[test]
fn waiters_get_the_lock_in_order_when_the_service_is_killed() {
    let world = World::new();
    let holder = world.hold("run x");
    let order = world.file("order");
    let waiters: Vec<Talk> = (0..6)
        .map(|number| {
            let script = format!("echo {number} >> {}", order.display());
            let waiter = Talk::start(world.script("run x", &script));
            world.until(1, number + 1);
            waiter
        })
        .collect();
    kill_service(&world);
    world.until(1, 6);
    kill_service(&world);
    world.until(1, 6);
    holder.end().assert(0, "");
    waiters.into_iter().for_each(|waiter| waiter.wait().assert(0, ""));
    assert_eq!(fs::read_to_string(order).unwrap(), "0\n1\n2\n3\n4\n5\n");
}

#[test]
fn holder_that_ends_while_no_service_runs_lets_waiters_go_on() {
    let world = World::new();
    let holder = world.hold("run x");
    let waiter = Talk::start(world.navlocks("run x -- echo mine"));
    world.until(1, 1);
    waiter.signal(Signal::STOP);
    kill_service(&world);
    holder.end().assert(0, "");
    waiter.signal(Signal::CONT);
    waiter.wait().assert(0, "mine");
}

#[test]
fn stop_by_force_costs_no_command_its_lock() {
    let world = World::new();
    let holder = world.hold("run x");
    let waiter = Talk::start(world.navlocks("run x -- true"));
    world.until(1, 1);
    let before = world.service();
    assert_ended(&world.run("stop --force"), 0, "");
    assert_ended(&world.run("run -n x -- true"), 1, "'x' is not free");
    assert_ended(&world.run("run y -- true"), 0, "");
    assert_ne!(world.service(), before);
    world.until(1, 1);
    holder.end().assert(0, "");
    waiter.wait().assert(0, "");
}

#[test]
fn service_that_is_terminated_leaves_locks_to_its_successor() {
    let world = World::new();
    let holder = world.hold("run x");
    let token = tokens(&world);
    let before = world.service();
    kill_process(before, Signal::TERM).unwrap();
    eventually("its end", || !lives(before.as_raw_nonzero().get()));
    eventually("the claim", || tokens(&world) == token);
    holder.end().assert(0, "");
}

#[test]
fn holder_that_ignores_signals_is_never_beside_another() {
    let world = World::new();
    let log = world.file("log");
    let script = format!("trap '' TERM; echo held; read line; echo first >> {}", log.display());
    let mut holder = Talk::start(world.script("run --grace 100ms x", &script));
    assert_eq!(holder.line(), "held");
    let script = format!("echo second >> {}", log.display());
    let waiter = Talk::start(world.script("run x", &script));
    world.until(1, 1);
    kill_service(&world);
    world.until(1, 1);
    assert_ended(&world.run("stop --force"), 0, "");
    world.until(1, 1);
    holder.end().assert(0, "");
    waiter.wait().assert(0, "");
    assert_eq!(fs::read_to_string(log).unwrap(), "first\nsecond\n");
}

/// Stops a holder, kills its service, and starts a command that requests a lock.
fn stopped_holder(world: &World) -> Talk {
    let holder = world.hold("run x");
    holder.signal(Signal::STOP);
    kill_service(world);
    // The service holds back the names of the stopped holder alone.
    assert_ended(&world.run("run -w 30 y -- true"), 0, "");
    holder
}

#[test]
fn stopped_holder_keeps_its_lock_over_a_restart_and_is_named() {
    let world = World::new();
    let holder = stopped_holder(&world);
    let pid = holder.pid().as_raw_nonzero();
    let reason = "and has not come back";
    assert_ended(&world.run("run -w 300ms x -- true"), 1, reason);
    assert_ended(&world.run("run -n --answer-timeout 300ms x -- true"), 1, reason);
    let query = world.run("query");
    assert!(text(&query).contains(&format!("(pid {pid}) had a lock")), "{}", text(&query));
    assert_eq!(world.query()["unclaimed"][0]["pid"], pid.get());
    let all = world.run("query --all-partitions --json");
    let all: serde_json::Value = serde_json::from_slice(&all.stdout).unwrap();
    assert_eq!(all["unclaimed"][0]["pid"], pid.get());
    assert_ended(&world.run("query --names"), 0, &format!("(pid {pid}) had a lock"));
    assert_ended(&world.run("stop"), 1, &format!("(pid {pid}) had a lock"));
    let why = world.run("why x");
    assert_ended(&why, 0, "");
    let held = "'x' may be held: session ";
    assert!(text(&why).starts_with(held) && text(&why).contains(reason), "{}", text(&why));
    let doctor = world.run("doctor");
    assert_ended(&doctor, 1, "");
    assert!(text(&doctor).contains("navlocks steal NAME"), "{}", text(&doctor));
    let mut waiter = Talk::start(world.navlocks("run x -- echo mine"));
    waiter.line_after("navlocks: waiting for 'x': session");
    holder.signal(Signal::CONT);
    world.until(1, 1);
    holder.end().assert(0, "");
    waiter.wait().assert(0, "mine");
}

#[test]
fn stopped_holder_is_named_by_the_first_command_after_a_kill() {
    for command in ["query", "query --all-partitions", "why x", "steal x"] {
        let world = World::new();
        let holder = world.hold("run x");
        holder.signal(Signal::STOP);
        kill_service(&world);
        let doctor = world.run("doctor");
        assert_ended(&doctor, 0, "");
        assert!(text(&doctor).contains("may hold locks"), "{}", text(&doctor));
        assert_eq!(world.services().len(), 0, "doctor changes nothing");
        let output = world.run(command);
        assert_ended(&output, 0, "");
        let pid = format!("(pid {})", holder.pid().as_raw_nonzero());
        assert!(text(&output).contains(&pid), "{command}: {}", text(&output));
        holder.signal(Signal::CONT);
        match command {
            "steal x" => holder.wait().assert(90, "stolen"),
            _ => holder.end().assert(0, ""),
        }
    }
}

#[test]
fn steal_gets_past_a_stopped_holder_of_an_earlier_service() {
    let world = World::new();
    let holder = stopped_holder(&world);
    // The service waits for a client, but not for one that held this name.
    assert_ended(&world.run("steal free"), 1, "'free' is not held");
    let steal = world.run("steal x");
    assert_ended(&steal, 0, "");
    assert!(text(&steal).starts_with("took 'x' from session"), "{}", text(&steal));
    assert_ended(&world.run("run -w 30 x -- true"), 0, "");
    // The theft also counts if the service is killed before the victim receives the loss.
    kill_service(&world);
    assert_ended(&world.run("run -w 30 x -- true"), 0, "");
    holder.signal(Signal::CONT);
    holder.wait().assert(90, "stolen");
}

#[test]
fn processes_of_a_killed_navlocks_keep_its_lock_over_a_restart() {
    let world = World::new();
    let left = left_behind(&world, "");
    kill_service(&world);
    assert_ended(&world.run("run -w 300ms x -- true"), 1, "'x' was not free");
    assert!(lives(left.as_raw_nonzero().get()));
    let waiter = Talk::start(world.navlocks("run x -- true"));
    kill_process(left, Signal::KILL).unwrap();
    waiter.wait().assert(0, "");
}

#[test]
fn lost_command_does_not_take_the_service_along_that_it_started() {
    let world = World::new();
    let mut victim = Talk::start(world.script("run x", "echo held; sleep 1000 & wait"));
    assert_eq!(victim.line(), "held");
    kill_service(&world);
    // The supervisor of the command starts the next service.
    world.until(1, 0);
    let service = world.service();
    assert_ended(&world.run("steal x"), 0, "");
    victim.wait().assert(90, "stolen");
    assert_eq!(world.service(), service);
}

/// A command that started a service in its place would leave it without its options, such as the
/// address over TCP.
#[test]
fn service_of_a_supervisor_is_waited_for_before_a_command_starts_one() {
    use rustix::fs::{FlockOperation, flock};
    let world = World::new();
    let start = |address: &str| {
        let mut serve = Talk::start(world.navlocks(&format!("serve --fresh --listen {address}")));
        let listening = serve.line_after("listening on ");
        (serve, listening.rsplit("ws://").next().unwrap().to_owned())
    };
    let (service, address) = start("127.0.0.1:0");
    let holder = world.hold("run x");
    let remote = world.hold(&format!("run --url ws://{address} y"));
    let tokens_before = tokens(&world);
    service.signal(Signal::KILL);
    assert_eq!(service.wait().status.code(), None);
    // The holder has the right to start a service, and waits for the supervisor.
    let lock = world.place().join("start.lock");
    eventually("the start by the holder", || {
        let file = fs::File::open(&lock);
        file.is_ok_and(|file| flock(&file, FlockOperation::NonBlockingLockShared).is_err())
    });
    for _ in 0..20 {
        assert_eq!(world.services(), [], "no command starts one meanwhile");
    }
    let (service, _) = start(&address);
    eventually("the claims", || tokens(&world) == tokens_before);
    assert_eq!(world.services(), [], "no command has started another");
    holder.end().assert(0, "");
    remote.end().assert(0, "");
    service.signal(Signal::TERM);
    service.wait().assert(0, "");
    // Without a supervisor the next command starts a service after a while, and has no more to
    // wait for.
    assert_ended(&world.run("run x -- true"), 0, "");
    assert_eq!(world.services().len(), 1);
    assert!(!world.place().join("serve").exists());
}

/// Starts a service over TCP, and returns its address.
fn serve(world: &World, address: &str, lease: &str) -> (Talk, String) {
    let arguments =
        format!("serve --no-socket --fresh --listen {address} --lease {lease} --state-dir");
    let mut serve = world.navlocks(&arguments);
    serve.arg(world.file("state"));
    let mut service = Talk::start(serve);
    let url = service.line_after("listening on ");
    (service, url)
}

#[test]
fn locks_over_tcp_outlive_their_service_within_the_lease() {
    let world = World::new();
    let (service, url) = serve(&world, "127.0.0.1:0", "30s");
    let address = url.strip_prefix("ws://").unwrap().trim_end_matches('/').to_owned();
    let holder = world.hold(&format!("run --url {url} x"));
    let waiter = Talk::start(world.navlocks(&format!("run --url {url} x -- echo mine")));
    let held = |pending: usize| {
        let output = world.run(&format!("query --json --url {url}"));
        let now: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        let count = |what: &str| now[what].as_array().map_or(0, Vec::len);
        (count("held"), count("pending")) == (1, pending)
    };
    eventually("the waiter", || held(1));
    service.signal(Signal::KILL);
    drop(service);
    let (service, _) = serve(&world, &address, "30s");
    eventually("the claims", || held(1));
    holder.end().assert(0, "");
    waiter.wait().assert(0, "mine");
    service.signal(Signal::TERM);
    service.wait().assert(0, "");
}

#[test]
fn command_is_killed_before_its_lease_is_over_whatever_its_grace() {
    const LEASE: Duration = Duration::from_secs(4);
    let world = World::new();
    let (service, url) = serve(&world, "127.0.0.1:0", "4s");
    let script = "trap '' TERM; echo $$; while :; do sleep 1000; done";
    let mut holder = Talk::start(world.script(&format!("run --grace 1h --url {url} x"), script));
    let command: i32 = holder.line().parse().unwrap();
    service.signal(Signal::KILL);
    // The service answers nothing after this.
    let killed = Instant::now();
    holder.wait().assert(90, "longer than the lease");
    let took = killed.elapsed();
    assert!(!lives(command));
    assert!(took < LEASE, "{took:?}");
    drop(service);
}
