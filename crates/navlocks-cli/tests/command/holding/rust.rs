//! Rust programs beside the command: real processes that use the crate, and end as programs do.

use std::future::IntoFuture as _;
use std::process::Command;

use navlocks::blocking::block_on;
use navlocks::{Locks, RequestErrorKind};
use rustix::process::Signal;

use crate::support::{Talk, World, assert_ended, eventually, finish, program};

/// The variable that makes a test the program, with the service that it uses.
const SERVICE: &str = "NAVLOCKS_TEST_SERVICE";

/// Runs the test with this name as a program of its own.
fn as_program(test: &str, service: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    command.args(["--exact", test, "--nocapture"]).env(SERVICE, service);
    command
}

/// A service over TCP with a lease that no test waits for.
fn over_tcp(world: &World) -> (Talk, String) {
    let mut serve =
        world.navlocks("serve --no-socket --fresh --listen 127.0.0.1:0 --lease 60s --state-dir");
    serve.arg(world.file("state"));
    let mut service = Talk::start(serve);
    let url = service.line_after("listening on ");
    (service, url)
}

/// Runs a program that ends. Asserts that its lock is free before its lease ends.
fn assert_takes_leave(test: &str) {
    let world = World::new();
    let (service, url) = over_tcp(&world);
    let output = finish(as_program(test, &url));
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("it is held"), "{said}");
    assert_ended(&world.run(&format!("run --url {url} -w 30 x -- true")), 0, "");
    service.signal(Signal::TERM);
    service.wait().assert(0, "");
}

#[test]
fn program_without_a_runtime_releases_its_lock_when_it_ends() {
    if let Ok(url) = std::env::var(SERVICE) {
        let locks = block_on(Locks::connect(url).into_future()).expect("a service");
        let _lock = locks.request("x").lock_blocking().expect("a lock");
        println!("it is held");
        return;
    }
    assert_takes_leave("holding::rust::program_without_a_runtime_releases_its_lock_when_it_ends");
}

#[test]
fn program_that_panics_releases_its_lock() {
    if let Ok(url) = std::env::var(SERVICE) {
        let locks = block_on(Locks::connect(url).into_future()).expect("a service");
        let _lock = locks.request("x").lock_blocking().expect("a lock");
        println!("it is held");
        panic!("as programs do");
    }
    assert_takes_leave("holding::rust::program_that_panics_releases_its_lock");
}

#[test]
fn program_with_a_runtime_releases_its_lock_when_it_ends() {
    if let Ok(url) = std::env::var(SERVICE) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime").block_on(async {
            let locks = Locks::connect(url).await.expect("a service");
            let _lock = locks.request("x").await.expect("a lock");
            println!("it is held");
        });
        return;
    }
    assert_takes_leave("holding::rust::program_with_a_runtime_releases_its_lock_when_it_ends");
}

#[test]
fn wait_in_the_runtime_of_the_connection_fails_with_a_remedy() {
    let world = World::new();
    assert_ended(&world.run("run x -- true"), 0, "");
    let url = format!("unix:{}", world.place().join("socket").display());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let locks = Locks::connect(&url).await.unwrap();
        assert_eq!(
            locks.request("x").lock_blocking().unwrap_err(),
            RequestErrorKind::BlocksConnection
        );
        let tried = locks.request("x").if_available().lock_blocking();
        assert_eq!(tried.unwrap_err(), RequestErrorKind::BlocksConnection);
        drop(locks.request("x").await.unwrap());
        locks.disconnect().await;
    });
}

#[test]
fn doctor_right_after_a_restart_does_not_call_a_living_client_bad() {
    let world = World::new();
    assert_ended(&world.run("run x -- true"), 0, "");
    let url = format!("unix:{}", world.place().join("socket").display());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let lock = runtime.block_on(async {
        let locks = Locks::connect(&url).unreachable_after(None).await.unwrap();
        locks.request("x").await.unwrap()
    });
    rustix::process::kill_process(world.service(), Signal::KILL).unwrap();
    assert_ended(&world.run("run y -- true"), 0, "");
    let doctor = Talk::start(world.navlocks("doctor --answer-timeout 60s"));
    // Meanwhile the doctor has asked. The client reconnects as soon as its runtime goes on.
    (0..5).for_each(|_| drop(world.query()));
    let ended = std::thread::spawn(|| doctor.end());
    runtime.block_on(async {
        while !ended.is_finished() {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    });
    ended.join().unwrap().assert(0, "the service answers: 1 held");
    assert_eq!(lock.loss(), None);
}

#[test]
fn program_with_a_folder_too_long_for_the_sockets_in_it_gets_an_error() {
    if std::env::var(SERVICE).is_ok() {
        let error =
            block_on(Locks::connect_user_service().start().into_future()).expect_err("too long");
        assert!(error.to_string().contains("NAVLOCKS_DIR to one of at most 87 bytes"), "{error}");
        return;
    }
    let test = "holding::rust::program_with_a_folder_too_long_for_the_sockets_in_it_gets_an_error";
    let mut command = as_program(test, "long");
    command.env("NAVLOCKS_DIR", format!("/{}", "x".repeat(87))).env(SERVICE, "long");
    assert_ended(&finish(command), 0, "");
}

#[test]
fn program_starts_the_users_own_service_and_shares_its_locks() {
    if std::env::var(SERVICE).is_ok() {
        assert!(block_on(Locks::connect_user_service().into_future()).is_err(), "none runs");
        let missing = Locks::connect_user_service().start_by("/nowhere/navlocks");
        let error = block_on(missing.into_future()).expect_err("there is no such command");
        assert!(error.to_string().contains("NAVLOCKS_BIN"), "{error}");
        let locks =
            block_on(Locks::connect_user_service().start().into_future()).expect("a service");
        let lock = locks.request("x").lock_blocking().expect("a lock");
        block_on(Locks::connect_user_service().start()).expect("the service that runs");
        println!("it is held");
        let mut line = String::new();
        std::io::stdin().read_line(&mut line).expect("a line or the end");
        assert_eq!(lock.loss(), None);
        return;
    }
    let world = World::new();
    let test = "holding::rust::program_starts_the_users_own_service_and_shares_its_locks";
    let mut command = as_program(test, "own");
    world.settle(&mut command);
    command.env("NAVLOCKS_BIN", program()).env(SERVICE, "own");
    let mut talk = Talk::start(command);
    while !talk.line().contains("it is held") {}
    assert_ended(&world.run("run -n x -- true"), 1, "'x' is not free");
    // The program starts the service again, and keeps its lock.
    let before = world.service();
    rustix::process::kill_process(before, Signal::KILL).unwrap();
    eventually("the claim", || world.query()["held"][0]["names"] == serde_json::json!(["x"]));
    assert_ne!(world.service(), before);
    assert_ended(&world.run("run -n x -- true"), 1, "'x' is not free");
    talk.end().assert(0, "");
    assert_ended(&world.run("run -n x -- true"), 0, "");
}
