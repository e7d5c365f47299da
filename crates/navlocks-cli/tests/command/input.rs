//! Bad input: each kind has one sentence and one exit code, and leaves no file or process.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;

use crate::support::{Talk, World, assert_ended, finish, text};

/// Runs the command. Asserts its exit code, one line of error, and that no service is left.
#[track_caller]
fn refused(arguments: &[&str], code: i32, said: &str) {
    let world = World::new();
    let mut command = world.navlocks("");
    command.args(arguments);
    let output = finish(command);
    assert_ended(&output, code, said);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(stderr.starts_with("navlocks: ") && stderr.lines().count() == 1, "{stderr}");
    assert_eq!(text(&output), "");
    assert!(!world.place().exists(), "something was left behind");
}

#[test]
fn missing_subcommand_is_refused() {
    refused(&[], 64, "say what to do, such as: navlocks run NAME -- COMMAND");
}

#[test]
fn unknown_subcommand_is_refused() {
    refused(&["rum"], 64, "there is no command 'rum', did you mean run?");
    refused(&["rnu"], 64, "there is no command 'rnu', did you mean run?");
    refused(&["wy", "x"], 64, "there is no command 'wy', did you mean why?");
    refused(&["frobnicate"], 64, "there is no command 'frobnicate'; see navlocks --help");
}

#[test]
fn unknown_option_is_refused() {
    refused(
        &["run", "--shard", "x", "--", "true"],
        64,
        "no option '--shard', did you mean --shared?",
    );
    refused(&["run", "x", "make", "-j4"], 64, "'-j' (a command goes after --); see");
    refused(&["run", "-j", "x", "--", "make"], 64, "there is no option '-j'; see");
    refused(&["steal", "-j"], 64, "'-j' (a name that starts with '-' goes after --); see");
    refused(&["stop", "--now"], 64, "there is no option '--now'; see navlocks stop --help");
}

#[test]
fn bad_value_is_refused() {
    refused(&["run", "--timeout", "soon", "x", "--", "true"], 64, "cannot be 'soon'");
    refused(&["run", "-E", "256", "x", "--", "true"], 64, "cannot be '256'");
    refused(&["run", "x", "--timeout"], 64, "needs a value");
    refused(&["completions", "dos"], 64, "cannot be 'dos': one of bash");
}

#[test]
fn contradicting_options_are_refused() {
    refused(&["run", "-n", "-w", "1", "x", "--", "true"], 64, "contradict each other");
    refused(&["run", "--steal", "--shared", "x", "--", "true"], 64, "contradict each other");
    refused(&["run", "-n", "--steal", "x", "--", "true"], 64, "contradict each other");
}

#[test]
fn missing_name_is_refused() {
    refused(&["run", "--", "true"], 80, "no name was given");
    refused(&["run"], 80, "no name was given");
    refused(&["steal"], 80, "no name was given");
    refused(&["release", "--force"], 80, "no name was given");
}

#[test]
fn missing_command_is_refused() {
    refused(&["run", "x", "--"], 81, "no command was given after --");
}

#[test]
fn missing_separator_is_refused() {
    refused(&["run", "x"], 82, "the command goes after --");
    refused(&["run", "x", "echo", "hello"], 82, "the command goes after --");
}

#[test]
fn empty_name_is_refused() {
    refused(&["run", "", "--", "true"], 83, "a name is empty");
    refused(&["run", "x", "", "--", "true"], 83, "a name is empty");
}

#[test]
fn f03_name_that_starts_with_a_hyphen_is_refused() {
    refused(&["run", "-", "--", "true"], 84, "the name '-' starts with '-'");
}

#[test]
fn name_that_is_not_text_is_refused() {
    let world = World::new();
    let mut command = world.navlocks("run");
    command.arg(std::ffi::OsStr::from_bytes(b"a\xff")).args(["--", "true"]);
    assert_ended(&finish(command), 85, "is not UTF-8");
}

#[test]
fn long_name_is_cut_in_an_error() {
    let world = World::new();
    let name = "n".repeat(100_000);
    let shown = format!("'{}…'", "n".repeat(100));
    for (words, code) in [("run", 88), ("why", 0), ("steal", 1), ("release --force", 1), ("", 64)] {
        let mut command = world.navlocks(words);
        command.arg(&name);
        if words == "run" {
            command.args(["--", "true"]);
        }
        let output = finish(command);
        assert_eq!(output.status.code(), Some(code), "{words}");
        let said = [&output.stdout[..], &output.stderr[..]].concat();
        let said = String::from_utf8(said).unwrap();
        assert!(said.contains(&shown) && said.len() < 500, "{words}: {said}");
    }
}

#[test]
fn time_without_end_is_no_error() {
    let world = World::new();
    let long = "9223372036854775808";
    let mut holder = Talk::start(world.script(
        &format!("run --timeout {long} --answer-timeout {long} --grace {long} x"),
        "echo held; sleep 1000 & wait",
    ));
    assert_eq!(holder.line(), "held");
    let waiter = Talk::start(world.navlocks(&format!("run --timeout {long} x -- true")));
    world.until(1, 1);
    assert_ended(&world.run("steal x"), 0, "");
    holder.wait().assert(90, "stolen");
    waiter.wait().assert(0, "");
}

#[test]
fn surplus_argument_is_refused() {
    refused(&["steal", "a", "b"], 64, "'b' is one argument too many");
    refused(&["query", "a"], 64, "'a' is one argument too many");
}

#[test]
fn release_without_force_is_refused() {
    refused(&["release", "x"], 64, "only its holder releases a lock");
}

#[test]
fn bad_address_is_refused() {
    refused(&["query", "--url", "http://localhost"], 64, "is no address of a service");
    refused(&["query", "--url", "unix:"], 64, "has no path");
}

#[test]
fn unreadable_token_file_is_refused() {
    refused(
        &["query", "--url", "ws://127.0.0.1:1", "--token-file", "/nowhere/token"],
        64,
        "cannot use the token file /nowhere/token",
    );
}

#[test]
fn address_without_a_service_is_refused() {
    refused(&["query", "--url", "unix:/nowhere/socket"], 69, "there is no such socket");
    refused(
        &["run", "--url", "unix:/nowhere/socket", "x", "--", "true"],
        69,
        "there is no such socket",
    );
    // Port 1 belongs to a service that is out of use.
    refused(&["query", "--url", "ws://127.0.0.1:1"], 69, "the connection is refused");
}

#[test]
fn stale_socket_is_refused() {
    let world = World::new();
    let socket = world.file("stale");
    drop(UnixListener::bind(&socket).unwrap());
    let output = world.run(&format!("query --url unix:{}", socket.display()));
    assert_ended(&output, 86, "its service has ended and left the socket behind");
    assert!(socket.exists(), "it is not ours to remove");
}

/// Starts a server that answers the handshake with `answer`, and returns its address.
fn answering(world: &World, answer: &'static str) -> String {
    let socket = world.file("other");
    let listener = UnixListener::bind(&socket).expect("a new socket");
    std::thread::spawn(move || {
        while let Ok((mut stream, _)) = listener.accept() {
            let mut request = [0; 4096];
            let _ = stream.read(&mut request);
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    format!("unix:{}", socket.display())
}

#[test]
fn service_of_another_version_is_refused() {
    let world = World::new();
    let url = answering(
        &world,
        "HTTP/1.1 426 Upgrade Required\r\ncontent-length: 33\r\n\r\nthis service speaks version 2 now",
    );
    for arguments in ["query", "run x -- true"] {
        let (command, rest) = arguments.split_once(' ').unwrap_or((arguments, ""));
        let output = world.run(&format!("{command} --url {url} {rest}"));
        assert_ended(&output, 76, "this service speaks version 2 now");
    }
}

#[test]
fn other_server_is_refused() {
    let world = World::new();
    let url = answering(&world, "220 mail.example ESMTP\r\n");
    assert_ended(
        &world.run(&format!("query --url {url}")),
        76,
        "is no lock service of this version",
    );
}

#[test]
fn token_that_the_service_refuses_is_an_error() {
    let world = World::new();
    let url = answering(
        &world,
        "HTTP/1.1 401 Unauthorized\r\ncontent-length: 20\r\n\r\na token is required.",
    );
    assert_ended(&world.run(&format!("query --url {url}")), 77, "a token is required.");
}

#[test]
fn folder_that_cannot_be_made_is_an_error() {
    let world = World::new();
    let mut command = world.navlocks("run x -- true");
    // A folder below a file cannot be made, not even by root.
    fs::write(world.file("file"), "").unwrap();
    command.env("NAVLOCKS_DIR", world.file("file").join("place"));
    assert_ended(&finish(command), 73, "cannot use the folder");
}

#[test]
fn folder_that_others_can_enter_is_refused() {
    let world = World::new();
    fs::create_dir(world.place()).unwrap();
    fs::set_permissions(world.place(), fs::Permissions::from_mode(0o755)).unwrap();
    for arguments in ["run x -- true", "query", "watch", "stop"] {
        assert_ended(&world.run(arguments), 73, "others can enter");
    }
    assert_eq!(fs::read_dir(world.place()).unwrap().count(), 0);
}

#[test]
fn folder_that_is_a_link_is_refused() {
    let world = World::new();
    std::os::unix::fs::symlink(world.file(""), world.place()).unwrap();
    assert_ended(&world.run("run x -- true"), 73, "is not a folder");
}

#[test]
fn output_that_cannot_be_written_is_an_error() {
    let world = World::new();
    let mut command = world.navlocks("query --json");
    let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let output = command.stdout(full).stderr(std::process::Stdio::piped()).output().unwrap();
    assert_ended(&output, 74, "cannot write the output");
}
