//! The subcommands `why` and `graph`.

use std::pin::pin;
use std::task::{Context, Waker};

use navlocks::Locks;
use navlocks::blocking::block_on;
use rustix::process::Signal;

use crate::support::{Talk, World, assert_ended, text};

#[test]
fn free_name_is_shown_as_free_and_no_service_is_started() {
    let world = World::new();
    let free = "'a' is free: no request holds it or waits for it\n";
    assert_eq!(text(&world.run("why a")), free);
    assert_eq!(text(&world.run("graph")), "no request waits\n");
    assert!(!world.place().exists());
    let holder = world.hold("run b");
    assert_eq!(text(&world.run("why a")), free);
    holder.end().assert(0, "");
}

#[test]
fn why_shows_holder_queue_and_waits_of_the_holder() {
    let world = World::new();
    let elder = world.hold("run --tag elder b");
    let mut middle = Talk::start(
        world.script("run --tag middle a", r#"echo held; exec "$NL" run --tag middle b -- true"#),
    );
    assert_eq!(middle.line(), "held");
    let waiter = Talk::start(world.navlocks("run --tag waiter a -- true"));
    world.until(2, 2);
    let said = world.run("why a");
    let lines: Vec<&str> = text(&said).lines().collect();
    assert!(lines[0].starts_with("'a' is held by middle (pid "), "{lines:?}");
    assert_eq!(lines[1], "1 request waits for it:");
    assert!(lines[2].starts_with("  1. waiter (pid ") && lines[2].ends_with("behind 1 held lock"));
    assert!(lines[3].starts_with("middle (pid ") && lines[3].contains(" waits for its command "));
    assert!(lines[4].contains(" itself waits for 'b' for ") && lines[4].contains("held by elder"));
    let graph = world.run("graph");
    assert!(text(&graph).contains("elder (pid "), "{}", text(&graph));
    assert!(text(&graph).contains(" waits for b for "), "{}", text(&graph));
    let dot = world.run("graph --format dot");
    assert!(text(&dot).starts_with("digraph navlocks {\n") && text(&dot).ends_with("}\n"));
    assert!(text(&dot).contains(" -> "), "{}", text(&dot));
    elder.end().assert(0, "");
    drop(middle.wait());
    waiter.wait().assert(0, "");
}

#[test]
fn two_requests_of_one_client_for_one_name_are_no_deadlock() {
    let world = World::new();
    let mut service = Talk::start(world.navlocks("serve --deadlocks refuse"));
    let url = service.line_after("listening on ");
    let locks = block_on(Locks::connect(&url).into_future()).expect("the service listens");
    let first = locks.request("a").tag("web").lock_blocking().expect("a free lock");
    let mut second = pin!(locks.request("a").tag("web").into_future());
    let mut context = Context::from_waker(Waker::noop());
    assert!(second.as_mut().poll(&mut context).is_pending());
    world.until(1, 1);
    let doctor = world.run("doctor");
    assert_ended(&doctor, 0, "");
    assert!(text(&doctor).contains("no client is deadlocked"), "{}", text(&doctor));
    let why = world.run("why a");
    assert!(text(&why).contains("1 request waits for it:\n  1. web "), "{}", text(&why));
    let graph = world.run("graph");
    let lines: Vec<&str> = text(&graph).lines().collect();
    assert!(lines[0].starts_with("web ") && lines[0].contains(" holds a for "), "{lines:?}");
    assert!(lines[1].starts_with("  web ") && lines[1].contains(" waits for a "), "{lines:?}");
    assert!(![text(&why), text(&graph)].concat().contains("deadlock"), "{lines:?}");
    drop(first);
    drop(block_on(second).expect("its turn"));
    drop(locks);
    service.signal(Signal::TERM);
    service.wait().assert(0, "");
}

#[test]
fn deadlock_of_two_processes_is_shown_with_a_remedy() {
    let world = World::new();
    let start = |own: &str, other: &str| {
        let script = format!(r#"echo held; read line; exec "$NL" run {other} -- true"#);
        let mut talk = Talk::start(world.script(&format!("run --tag {own} {own}"), &script));
        assert_eq!(talk.line(), "held");
        talk
    };
    let (mut one, mut two) = (start("a", "b"), start("b", "a"));
    one.say_line();
    two.say_line();
    world.until(2, 2);
    let remedies = ["why a", "graph", "doctor"].map(|question| {
        let said = world.run(question);
        let remedy = text(&said).split("to break it, release the lock").nth(1);
        let remedy = remedy.and_then(|rest| rest.split_once(" of ")?.1.lines().next());
        if question != "doctor" {
            assert!(text(&said).contains("deadlock of 4 clients: "), "{}", text(&said));
        }
        remedy.unwrap_or_else(|| panic!("{question}: {}", text(&said))).to_owned()
    });
    assert!(remedies[0].contains(": navlocks release --force '"), "{remedies:?}");
    assert!(remedies.iter().all(|remedy| *remedy == remedies[0]), "{remedies:?}");
    // A client that holds a lock waits for its command, so the ring is whole.
    let graph = world.run("graph");
    let lines: Vec<&str> = text(&graph).lines().filter(|it| it.contains("[deadlock]")).collect();
    let own = lines.iter().filter(|line| line.contains(" and waits for this command"));
    assert_eq!((lines.len(), own.count()), (5, 2), "{lines:?}");
    let last = lines[4].trim_start().split(") ").next();
    assert_eq!(last, lines[0].split(") ").next(), "{lines:?}");
    let dot = world.run("graph --format dot");
    let edges: Vec<(&str, &str)> = text(&dot)
        .lines()
        .filter(|line| line.contains("color=red"))
        .filter_map(|line| line.trim().split_once(" [")?.0.split_once(" -> "))
        .collect();
    assert_eq!(edges.len(), 4, "{}", text(&dot));
    let mut at = edges[0].0;
    for _ in 0..edges.len() {
        at = edges.iter().find(|(from, _)| *from == at).expect("a further edge").1;
    }
    assert_eq!(at, edges[0].0, "{edges:?}");
    // Another name is not concerned, unless its queue waits for the ring.
    let other = world.hold("run cache");
    assert!(!text(&world.run("why cache")).contains("deadlock"));
    other.end().assert(0, "");
    let waiter = Talk::start(world.navlocks("run a cache -- true"));
    world.until(2, 3);
    let said = world.run("why cache");
    assert!(text(&said).contains("deadlock of 4 clients: "), "{}", text(&said));
    drop(waiter);
    let broken = world.run("release --force a");
    assert!(text(&broken).starts_with("took 'a' from client "), "{}", text(&broken));
    drop((one, two));
}
