//! The subcommands `why` and `graph`.

use crate::support::{Talk, World, program, text};

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
    let mut middle = Talk::start(world.script(
        "run --tag middle a",
        &format!("echo held; exec {} run --tag middle b -- true", program().display()),
    ));
    assert_eq!(middle.line(), "held");
    let waiter = Talk::start(world.navlocks("run --tag waiter a -- true"));
    world.until(2, 2);
    let said = world.run("why a");
    let lines: Vec<&str> = text(&said).lines().collect();
    assert!(lines[0].starts_with("'a' is held by middle (pid "), "{lines:?}");
    assert_eq!(lines[1], "1 request waits for it:");
    assert!(lines[2].starts_with("  1. waiter (pid ") && lines[2].ends_with("behind 1 held lock"));
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
fn deadlock_of_two_processes_is_shown_with_a_remedy() {
    let world = World::new();
    let program = program().display();
    let start = |own: &str, other: &str| {
        let script = format!("echo held; read line; exec {program} run {other} -- true");
        let mut talk = Talk::start(world.script(&format!("run --tag {own} {own}"), &script));
        assert_eq!(talk.line(), "held");
        talk
    };
    let (mut one, mut two) = (start("a", "b"), start("b", "a"));
    one.say_line();
    two.say_line();
    world.until(2, 2);
    for question in ["why a", "graph"] {
        let said = world.run(question);
        assert!(text(&said).contains("deadlock of 4 clients: "), "{}", text(&said));
    }
    let broken = world.run("release --force a");
    assert!(text(&broken).starts_with("took 'a' from client "), "{}", text(&broken));
    drop((one, two));
}
