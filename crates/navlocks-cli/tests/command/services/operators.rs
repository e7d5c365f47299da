//! Input of operators, accepted or refused with a remedy.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use rustix::process::Signal;

use crate::support::{Talk, World, assert_ended, finish, program, text};

const TOKEN: &str = "0123456789abcdef";

fn write(path: &Path, text: &str, mode: u32) {
    fs::write(path, text).expect("the folder is there");
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("the file is ours");
}

/// Starts a service over TCP, and returns its address.
fn over_tcp(world: &World, arguments: &str) -> (Talk, String) {
    let mut serve = world.navlocks(&format!("serve --no-socket --fresh {arguments} --state-dir"));
    serve.arg(world.file("state"));
    let mut service = Talk::start(serve);
    let url = service.line_after("listening on ");
    (service, url)
}

#[test]
fn help_is_a_subcommand() {
    let world = World::new();
    assert!(text(&world.run("help")).contains("Usage: navlocks"));
    assert!(text(&world.run("help run")).contains("Usage: navlocks run"));
}

#[test]
fn options_of_flock_and_compound_durations_are_accepted() {
    let world = World::new();
    for arguments in ["run -x x -- true", "run -e x -- true", "run -w 1m30s --exclusive x -- true"]
    {
        assert_ended(&world.run(arguments), 0, "");
    }
    assert_ended(&world.run("run -x -s x -- true"), 64, "contradict each other");
}

#[test]
fn service_listens_on_a_name_and_refuses_tls_with_a_remedy() {
    let world = World::new();
    let (service, url) = over_tcp(&world, "--listen localhost:0");
    assert!(url.starts_with("ws://127.0.0.1:"), "{url}");
    let tls = url.replace("ws://", "wss://");
    assert_ended(&world.run(&format!("query --url {tls}")), 69, "or it takes no TLS (ws://)");
    service.signal(Signal::TERM);
    service.wait().assert(0, "");
    assert_ended(&world.run("serve --no-socket --listen 7400"), 64, "HOST:PORT");
}

#[test]
fn service_with_a_dashboard_prints_its_address() {
    let world = World::new();
    let (mut service, url) = over_tcp(&world, "--dashboard --listen 127.0.0.1:0");
    assert_eq!(service.line_after("dashboard at "), format!("{}/", url.replace("ws:", "http:")));
    service.signal(Signal::TERM);
    service.wait().assert(0, "");
    let (mut service, url) = over_tcp(&world, "--dashboard --listen 127.0.0.1:0 --host locks.test");
    let port = url.rsplit(':').next().expect("a port");
    assert_eq!(service.line_after("dashboard at "), format!("http://locks.test:{port}/"));
    service.signal(Signal::TERM);
    service.wait().assert(0, "");
}

#[test]
fn token_files_that_others_can_read_are_refused() {
    let world = World::new();
    let tokens = world.file("tokens");
    write(&tokens, TOKEN, 0o644);
    let file = format!("--token-file {}", tokens.display());
    let refused = world.run(&format!("serve --no-socket --listen 127.0.0.1:0 {file}"));
    assert_ended(&refused, 64, "others can use it (its mode is 644)");
    let refused = world.run(&format!("query --url ws://127.0.0.1:1 {file}"));
    assert_ended(&refused, 64, "others can use it (its mode is 644)");
    write(&tokens, TOKEN, 0o600);
    let (mut service, url) = over_tcp(&world, &format!("--listen 127.0.0.1:0 {file}"));
    let mut command = world.navlocks("run x -- true");
    command.env("NAVLOCKS_URL", &url).env("NAVLOCKS_TOKEN_FILE", &tokens);
    assert_ended(&finish(command), 0, "");
    let refused = world.run(&format!("query --url {url}"));
    assert_ended(&refused, 77, &format!("{url} refuses this client: the service takes an access"));
    assert_ended(&refused, 77, "--token-file names a file");
    while !service.line().contains("an access was refused") {}
    service.signal(Signal::TERM);
    service.wait().assert(0, "");
}

#[test]
fn token_does_not_go_to_another_machine_in_clear() {
    let world = World::new();
    let tokens = world.file("tokens");
    write(&tokens, TOKEN, 0o600);
    let file = format!("--token-file {}", tokens.display());
    let url = "ws://locks.invalid:7400";
    let refused = world.run(&format!("query --url {url} {file}"));
    assert_ended(&refused, 64, "would go to locks.invalid unencrypted: use wss://");
    let allowed = world.run(&format!("query --url {url} {file} --token-in-clear"));
    assert_ended(&allowed, 69, "cannot be reached");
}

#[test]
fn file_without_a_certificate_is_an_error() {
    let world = World::new();
    let file = world.file("ca.pem");
    for content in ["", "no certificate\n"] {
        write(&file, content, 0o600);
        let mut command = world.navlocks("query --url wss://127.0.0.1:1");
        command.env("NAVLOCKS_CA_FILE", &file);
        let refused = finish(command);
        assert_ended(&refused, 64, &format!("cannot use {}: ", file.display()));
        assert_ended(&refused, 64, "there is none in the PEM text");
    }
}

#[test]
fn question_before_a_clean_end_does_not_hold_up_the_next_service() {
    let world = World::new();
    for command in ["query", "query --all-partitions", "doctor"] {
        let (service, url) = over_tcp(&world, "--listen 127.0.0.1:0");
        assert_ended(&world.run(&format!("{command} --url {url}")), 0, "");
        service.signal(Signal::TERM);
        service.wait().assert(0, "");
        let state = fs::read_to_string(world.file("state/service.json")).unwrap();
        assert!(state.contains(r#""clean":true"#), "{command}: {state}");
    }
}

#[test]
fn commands_name_the_reason_while_a_service_without_tables_grants_nothing() {
    const REASON: &str = "the one before did not end in good order";
    let world = World::new();
    let leases = "--lease 40s --listen";
    let (service, url) = over_tcp(&world, &format!("{leases} 127.0.0.1:0"));
    let address = url.trim_start_matches("ws://").to_owned();
    let run = format!("run --url {url}");
    let holder = world.hold(&format!("{run} x"));
    let mut waiter = Talk::start(world.navlocks(&format!("{run} x -- true")));
    waiter.line_after("navlocks: waiting for 'x', held by");
    service.signal(Signal::KILL);
    assert_eq!(service.wait().status.code(), None);
    // The tables are missing, as after a start of the machine.
    for table in ["sessions.table", "requests.table"] {
        fs::remove_file(world.file("state").join(table)).unwrap();
    }
    let (service, _) = over_tcp(&world, &format!("{leases} {address}"));
    assert!(waiter.line_after("navlocks: waiting for 'x': ").contains(REASON));
    let query = world.run(&format!("query --url {url}"));
    assert_ended(&query, 0, "");
    assert!(text(&query).contains(REASON), "{}", text(&query));
    let query = world.run(&format!("query --json --url {url}"));
    let query: serde_json::Value = serde_json::from_slice(&query.stdout).unwrap();
    assert!(query["reason"].as_str().unwrap().contains(REASON), "{query}");
    let doctor = world.run(&format!("doctor --url {url}"));
    assert_ended(&doctor, 1, "");
    assert!(text(&doctor).contains(REASON), "{}", text(&doctor));
    for how in ["-n --answer-timeout 1s", "-w 1"] {
        assert_ended(&world.run(&format!("{run} {how} x -- true")), 1, REASON);
    }
    waiter.signal(Signal::TERM);
    waiter.wait();
    // A query names the reason also if no request waits.
    let missed = world.run(&format!("{run} --partition other -n x -- true"));
    assert_ended(&missed, 1, REASON);
    for question in
        ["query", "query --json", "query --all-partitions", "query --all-partitions --json"]
    {
        let answer = world.run(&format!("{question} --url {url}"));
        assert_ended(&answer, 0, "");
        assert!(text(&answer).contains(REASON), "{question}: {}", text(&answer));
    }
    holder.wait().assert(90, "");
    service.signal(Signal::TERM);
    service.wait().assert(0, "");
}

#[test]
fn manual_has_exit_codes_variables_and_files() {
    let world = World::new();
    for page in ["man", "man run"] {
        let page = world.run(page);
        for said in
            [".SH \"EXIT STATUS\"", ".SH ENVIRONMENT", ".SH FILES", "NAVLOCKS_ANSWER_TIMEOUT"]
        {
            assert!(text(&page).contains(said), "{said}: {}", text(&page));
        }
    }
}

#[test]
fn too_few_file_descriptors_are_an_error_and_no_panic() {
    let world = World::new();
    for limit in 5..14 {
        let mut command = std::process::Command::new("sh");
        let script = format!(r#"ulimit -n {limit}; exec "$0" run x -- true"#);
        command.arg("-c").arg(script).arg(program());
        world.settle(&mut command);
        let output = finish(command);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!said.contains("panicked") && said.contains("raise ulimit -n"), "{limit}: {said}");
        assert!(
            output.status.code().is_some_and(|code| (1..101).contains(&code)),
            "{limit}: {said}"
        );
    }
}

/// The script has the form for the middle of a script from `run --help`.
#[test]
fn script_that_locks_itself_runs_once_at_a_time() {
    let world = World::new();
    let script = world.file("deploy");
    let line = r#"[ "$NAVLOCKS_NAME" = deploy ] || exec "$navlocks" run deploy -- "$0" "$@""#;
    write(&script, &format!("#!/bin/sh\n{line}\necho \"$NAVLOCKS_NAME $1\"\nread line\n"), 0o700);
    let run = |argument: &str| {
        let mut command = std::process::Command::new(&script);
        command.arg(argument).env("navlocks", program());
        world.settle(&mut command);
        Talk::start(command)
    };
    let mut first = run("one");
    assert_eq!(first.line(), "deploy one");
    let mut second = run("two");
    world.until(1, 1);
    first.end();
    assert_eq!(second.line(), "deploy two");
    second.end();
}
