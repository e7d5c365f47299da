//! Services that hang: a service that does not answer is never taken for one without locks.

use std::process::{Command, Output};
use std::time::Duration;

use navlocks::{Locks, QueryError, RequestErrorKind};
use rustix::process::{Pid, Signal, kill_process};

use crate::support::{Talk, World, assert_ended, finish, text};

/// The exit code of a command whose service hangs.
const SILENT: i32 = 92;

/// A service that is stopped as by SIGSTOP, and goes on when this is dropped.
pub(crate) struct Stopped(Pid);

impl Stopped {
    pub(crate) fn service_of(world: &World) -> Self {
        let service = world.service();
        kill_process(service, Signal::STOP).expect("it runs");
        Self(service)
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        let _killed = kill_process(self.0, Signal::CONT);
    }
}

fn impatient(world: &World, arguments: &str) -> Command {
    let mut command = world.navlocks(arguments);
    command.env("NAVLOCKS_ANSWER_TIMEOUT", "300ms");
    command
}

fn run(world: &World, arguments: &str) -> Output {
    finish(impatient(world, arguments))
}

#[test]
fn hung_service_has_its_own_exit_code_for_every_subcommand() {
    let world = World::new();
    let holder = world.hold("run x");
    let stopped = Stopped::service_of(&world);
    let commands = [
        "query",
        "query --json",
        "query --all-partitions",
        "run -n x -- true",
        "run -w 0 x -- true",
        "run x -- true",
        "run -w 1h x -- true",
        "stop",
        "steal x",
        "release --force x",
        "watch",
    ];
    let ended = commands.map(|arguments| Talk::start(impatient(&world, arguments)));
    for (ended, arguments) in ended.into_iter().zip(commands) {
        let ended = ended.wait();
        ended.assert(SILENT, "did not answer within 300 ms");
        ended.assert(SILENT, "navlocks stop --force ends it");
        assert_eq!(ended.lines.len(), 1, "{arguments} says nothing else: {ended:?}");
    }
    let doctor = run(&world, "doctor");
    assert_ended(&doctor, 1, "not as it should be");
    assert!(text(&doctor).contains("did not answer within 300 ms"), "{}", text(&doctor));
    drop(stopped);
    world.until(1, 0);
    holder.end().assert(0, "");
}

#[test]
fn service_that_hangs_under_a_waiter_is_distinguished_from_a_lock_that_is_not_free() {
    let world = World::new();
    let holder = world.hold("run x");
    let waiter = Talk::start(world.navlocks("run -w 1 x -- true"));
    world.until(1, 1);
    let stopped = Stopped::service_of(&world);
    // The command ends within its timeout.
    waiter.wait().assert(SILENT, "did not answer within ");
    drop(stopped);
    assert_ended(
        &world.run("run -w 100ms x -- true"),
        1,
        "'x' was not free within 100 ms: held by sh (pid ",
    );
    holder.end().assert(0, "");
}

#[test]
fn forced_stop_kills_a_hung_service() {
    let world = World::new();
    assert_ended(&world.run("run x -- true"), 0, "");
    let _stopped = Stopped::service_of(&world);
    let stop = run(&world, "stop --force");
    assert_ended(&stop, 0, "");
    assert_eq!(text(&stop), "the service did not end by itself and was killed\n");
    assert_eq!(world.services().len(), 0);
    assert_ended(&world.run("run x -- true"), 0, "");
}

#[test]
fn rust_client_is_not_held_up_by_a_hung_service() {
    let world = World::new();
    assert_ended(&world.run("run x -- true"), 0, "");
    let url = format!("unix:{}", world.place().join("socket").display());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let locks =
            Locks::connect(&url).unreachable_after(Duration::from_millis(300)).await.unwrap();
        let held = locks.request("held").await.unwrap();
        let stopped = Stopped::service_of(&world);
        let (question, request, tried) =
            tokio::join!(locks.query(), async { locks.request("x").await }, async {
                locks.request("y").if_available().await
            },);
        assert_eq!(question.unwrap_err(), QueryError::Unreachable);
        assert_eq!(request.unwrap_err(), RequestErrorKind::Unreachable);
        assert_eq!(tried.unwrap_err(), RequestErrorKind::Unreachable);
        let timed_out = locks.request("x").timeout(Duration::from_millis(100)).await.unwrap_err();
        let said = timed_out.to_string();
        assert_eq!(said, "no lock on 'x' within 100ms: the lock service does not answer");
        let silent = Locks::connect(&url).unreachable_after(Duration::from_millis(300)).await;
        assert!(silent.is_err_and(|error| error.to_string().contains("did not answer")));
        assert_eq!(held.loss(), None);
        drop(stopped);
        drop(locks.request("x").await.unwrap());
        locks.disconnect().await;
    });
}
