//! One place, one service, one order of fencing tokens, however the service is started.

use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::os::unix::net::UnixListener;
use std::process::Command;

use rustix::process::{Signal, kill_process};

use crate::support::{Talk, World, assert_ended, eventually, finish, program, text};

/// The exit code of a service that finds another one in its place.
const BUSY: i32 = 91;

/// Returns the fencing token of a new command.
fn token(world: &World) -> u64 {
    let output = world.run_script("run x", "echo $NAVLOCKS_FENCING_TOKEN");
    assert_ended(&output, 0, "");
    text(&output).trim().parse().expect("a token")
}

/// `navlocks serve`, with a home folder of the test's own.
fn serve(world: &World, arguments: &str) -> Command {
    let mut command = world.navlocks(&format!("serve {arguments}"));
    command.env("HOME", world.file("home")).env_remove("XDG_STATE_HOME");
    command
}

fn started(command: Command) -> Talk {
    let mut service = Talk::start(command);
    service.line_after("listening on ");
    service
}

/// Starts a service that inherits its socket as from systemd: descriptor 3, and two variables.
fn activated(world: &World) -> Talk {
    let _made = fs::DirBuilder::new().mode(0o700).create(world.place());
    let listener = UnixListener::bind(world.place().join("socket")).expect("a socket");
    let mut command = Command::new("sh");
    let words = "exec 3<&0 </dev/null; LISTEN_FDS=1 LISTEN_PID=$$; export LISTEN_FDS LISTEN_PID;";
    command.arg("-c").arg(format!(r#"{words} exec "$0" "$@""#)).arg(program()).arg("serve");
    world.settle(&mut command);
    command.env("HOME", world.file("home")).env_remove("XDG_STATE_HOME");
    let mut service = Talk::with_input(command, OwnedFd::from(listener).into());
    service.line_after("listening on ");
    service
}

#[test]
fn tokens_grow_however_the_service_is_started() {
    let world = World::new();
    let mut tokens = Vec::new();
    for _ in 0..3 {
        tokens.push(token(&world));
        assert_ended(&world.run("stop"), 0, "");
    }
    let service = started(serve(&world, ""));
    tokens.push(token(&world));
    service.signal(Signal::TERM);
    service.wait().assert(0, "");
    let service = activated(&world);
    tokens.push(token(&world));
    service.signal(Signal::TERM);
    service.wait().assert(0, "");
    fs::remove_file(world.place().join("socket")).unwrap();
    tokens.push(token(&world));
    assert!(tokens.is_sorted_by(|a, b| a < b), "{tokens:?}");
}

#[test]
fn services_with_folders_of_their_own_do_not_know_each_other() {
    let (one, other) = (World::new(), World::new());
    for arguments in ["", "--no-socket --listen 127.0.0.1:0"] {
        let command = |world: &World| {
            let mut command = serve(world, arguments);
            command.env("HOME", one.file("home"));
            command
        };
        let services = [started(command(&one)), started(command(&other))];
        for service in services {
            service.signal(Signal::TERM);
            service.wait().assert(0, "");
        }
    }
}

/// Without a socket of presence, the lock of a killed command would be free while its processes
/// work.
#[test]
fn folder_too_long_for_the_sockets_of_clients_is_refused_and_the_longest_one_works() {
    let world = World::new();
    let folder = |bytes: usize| {
        let base = world.file("");
        base.join("x".repeat(bytes - base.as_os_str().len()))
    };
    for (bytes, code, said) in [(88, 73, "is too long for the sockets in it"), (87, 0, "")] {
        let run = |arguments: &str| {
            let mut command = world.navlocks(arguments);
            command.env("NAVLOCKS_DIR", folder(bytes));
            finish(command)
        };
        assert_ended(&run("run x -- true"), code, said);
        assert_ended(&run("stop --force"), code, said);
    }
    let mut long = serve(&world, "--state-dir");
    long.arg(folder(88));
    assert_ended(&finish(long), 64, "is too long for the sockets of clients in it");
}

/// A client with another working folder listens there.
#[test]
fn state_folder_below_the_working_folder_has_sockets_of_presence() {
    let world = World::new();
    let mut serve = serve(&world, "--state-dir state");
    serve.current_dir(world.file(""));
    let service = started(serve);
    let holder = world.hold("run x");
    assert_eq!(fs::read_dir(world.file("state/presence")).unwrap().count(), 1);
    holder.end().assert(0, "");
    service.signal(Signal::TERM);
    service.wait().assert(0, "");
}

#[test]
fn second_service_is_refused_although_lock_files_were_cleaned_away() {
    let world = World::new();
    let holder = world.hold("run x");
    for entry in fs::read_dir(world.place()).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "lock") {
            fs::remove_file(path).unwrap();
        }
    }
    assert_ended(&finish(serve(&world, "")), BUSY, "another service");
    world.until(1, 0);
    holder.end().assert(0, "");
}

#[test]
fn removed_socket_is_made_again_and_holders_stay() {
    let world = World::new();
    let holder = world.hold("run x");
    let service = world.service();
    fs::remove_file(world.place().join("socket")).unwrap();
    world.until(1, 0);
    assert_ended(&world.run("run -n x -- true"), 1, "held by");
    // The service may make its socket again before the folder is gone.
    eventually("a removed folder", || fs::remove_dir_all(world.place()).is_ok());
    world.until(1, 0);
    assert_ended(&world.run("run -n x -- true"), 1, "held by");
    assert_eq!(world.service(), service);
    assert_ended(&world.run("stop"), 1, "is held");
    holder.end().assert(0, "");
    assert_ended(&world.run("stop"), 0, "");
    assert_ended(&world.run("run x -- true"), 0, "");
}

/// The sockets of presence are gone with the folder, so the process of the holder counts.
#[test]
fn folders_that_were_removed_are_made_again_with_all_that_the_next_service_needs() {
    for arguments in ["", "--state-dir"] {
        let world = World::new();
        let state = if arguments.is_empty() { world.place() } else { world.file("state") };
        let serve = || {
            let mut serve = serve(&world, arguments);
            serve.args((!arguments.is_empty()).then_some(&state));
            started(serve)
        };
        let service = serve();
        let holder = world.hold("run x");
        let before = world.query();
        fs::remove_dir_all(&state).unwrap();
        let files = ["service.json", "sessions.table", "requests.table", "presence"];
        eventually("the state", || files.iter().all(|file| state.join(file).exists()));
        world.until(1, 0);
        service.signal(Signal::KILL);
        assert_eq!(service.wait().status.code(), None);
        // The holder starts the next service if it is the user's own.
        let _service = (!arguments.is_empty()).then(serve);
        world.until(1, 0);
        assert_eq!(world.query()["held"][0]["token"], before["held"][0]["token"]);
        holder.end().assert(0, "");
    }
}

#[test]
fn service_without_its_socket_is_not_taken_for_none() {
    let world = World::new();
    let holder = world.hold("run x");
    let service = world.service();
    kill_process(service, Signal::STOP).unwrap();
    fs::remove_file(world.place().join("socket")).unwrap();
    let commands = [
        ("query", 92, "its socket"),
        ("stop", 92, "its socket"),
        ("stop --force", 92, "its socket"),
        ("doctor", 1, "its socket"),
        ("run -n x -- true", BUSY, "another service"),
    ];
    let ended = commands.map(|(arguments, ..)| Talk::start(world.navlocks(arguments)));
    for (ended, (_, code, said)) in ended.into_iter().zip(commands) {
        ended.wait().assert(code, said);
    }
    kill_process(service, Signal::CONT).unwrap();
    world.until(1, 0);
    holder.end().assert(0, "");
}

#[test]
fn live_socket_is_asked_before_it_is_replaced() {
    let world = World::new();
    let holder = world.hold("run x");
    let mut beside = serve(&world, "--socket");
    beside.arg(world.place().join("socket")).arg("--state-dir").arg(world.file("state"));
    assert_ended(&finish(beside), BUSY, "another service listens on");
    world.until(1, 0);
    holder.end().assert(0, "");
    assert_ended(&world.run("stop"), 0, "");
    // The connection is the only sign of a socket that no service has taken over yet.
    let path = world.place().join("socket");
    let listener = UnixListener::bind(&path).unwrap();
    let before = fs::metadata(&path).unwrap().ino();
    assert_ended(&finish(serve(&world, "")), BUSY, "another service listens on");
    assert_eq!(fs::metadata(&path).unwrap().ino(), before);
    // The unit that the message names is one of the packaging.
    let unit = "navlocks-user.socket";
    assert_ended(&world.run("stop --force"), 1, &format!("systemctl --user stop {unit}"));
    let packaging = concat!(env!("CARGO_MANIFEST_DIR"), "/../../packaging/systemd");
    assert!(std::path::Path::new(packaging).join(unit).exists());
    drop(listener);
}

#[test]
fn service_whose_socket_was_replaced_gives_way_in_good_order() {
    let world = World::new();
    let holder = world.hold("run x");
    let before = world.service();
    let first: u64 = world.query()["held"][0]["token"].as_u64().unwrap();
    // A socket unit of systemd replaces the socket like this.
    fs::remove_file(world.place().join("socket")).unwrap();
    kill_process(before, Signal::STOP).unwrap();
    let _gone = fs::remove_file(world.place().join("socket"));
    let making = std::thread::scope(|scope| {
        let service = scope.spawn(|| activated(&world));
        eventually("the socket of the other", || world.place().join("socket").exists());
        kill_process(before, Signal::CONT).unwrap();
        service.join().unwrap()
    });
    eventually("the claim", || world.query()["held"][0]["token"] == first);
    holder.end().assert(0, "");
    assert!(token(&world) > first);
    making.signal(Signal::TERM);
    making.wait().assert(0, "");
}

#[test]
fn folders_and_files_are_private_and_usable_whatever_the_umask() {
    for umask in ["0", "777"] {
        let world = World::new();
        let mut command = Command::new("sh");
        let script = format!(r#"umask {umask}; exec "$0" run x -- sh -c umask"#);
        command.arg("-c").arg(script).arg(program());
        world.settle(&mut command);
        let output = finish(command);
        assert_ended(&output, 0, "");
        assert_eq!(text(&output).trim().trim_start_matches('0'), umask.trim_matches('0'));
        let mode = |name: &str| fs::metadata(world.place().join(name)).unwrap().mode() & 0o777;
        assert_eq!(mode(""), 0o700);
        for name in ["socket", "log", "service.json", "start.lock"] {
            assert_eq!(mode(name), 0o600, "{name} with umask {umask}");
        }
        assert_ended(&world.run("stop"), 0, "");
        assert_ended(&world.run("run x -- true"), 0, "");
    }
}

/// Other users can make the folders first. A fallback would let them split a user's jobs between
/// two services.
#[test]
fn folder_that_another_user_made_first_is_an_error_with_a_remedy() {
    const NOBODY: u32 = 65534;
    for taken in ["tmp", "var-tmp"] {
        let world = World::new();
        for folder in ["tmp/navlocks-0", "var-tmp/navlocks-0"] {
            fs::DirBuilder::new().recursive(true).mode(0o700).create(world.file(folder)).unwrap();
        }
        // A test without the right to change owners uses a private folder of root.
        let foreign = world.file("foreign");
        fs::DirBuilder::new().mode(0o700).create(&foreign).unwrap();
        let given = std::os::unix::fs::chown(&foreign, Some(NOBODY), None).is_ok();
        let private = |path: &&str| fs::metadata(path).is_ok_and(|it| it.mode() & 0o77 == 0);
        let foreign = match ["/root", "/lost+found", "/var/lib/private"].into_iter().find(private) {
            _ if given => foreign,
            Some(path) => path.into(),
            None => return servers::skip("there is no private folder of another user"),
        };
        let script = format!(
            r#"mount --rbind "$FOREIGN" {taken}/navlocks-0
            mount --rbind var-tmp /var/tmp; cover tmp
            "$NL" doctor || echo "doctor $?"; "$NL" run x -- true || echo "run $?"
            "$NL" doctor || echo "again $?"; "$NL" query || echo "query $?"; "$NL" serve || echo "serve $?"
            NAVLOCKS_DIR=own NAVLOCKS_IDLE_EXIT=1ms "$NL" run x -- echo with its own"#
        );
        let Some(mut command) = world.mounting("tmp", &script) else { return };
        command.env_remove("NAVLOCKS_DIR").env("FOREIGN", foreign);
        let output = finish(command);
        let folder = format!("/{}/navlocks-0 belongs to user", taken.replace('-', "/"));
        assert_ended(&output, 0, &folder);
        assert_ended(&output, 0, "root to remove it, or set NAVLOCKS_DIR to a folder of your own");
        for said in ["run ", "doctor 1", "again 1", "query 73", "serve 73", &folder, "with its own"]
        {
            assert!(text(&output).contains(said), "{taken}, {said}: {output:?}");
        }
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(said.matches("ask that user or root to remove it").count(), 3, "{said}");
        // Also after a failed start, whose log ends with the same.
        assert_eq!(said.matches("one thing is not as it should be").count(), 2, "{output:?}");
        assert!(!said.contains("start: navlocks:"), "the prefix of the log is left out: {said}");
    }
}
