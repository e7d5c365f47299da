//! The settings of `navlocks serve` in a file and in the environment.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::process::Output;

use crate::support::{Talk, World, assert_ended, finish, text};

/// Runs `navlocks serve --check` with this file and these variables.
fn check(world: &World, file: &str, variables: &[(&str, &str)], arguments: &str) -> Output {
    fs::write(world.file("settings.toml"), file).expect("a folder of the test");
    let mut command = world.navlocks(&format!("serve --check {arguments}"));
    command.env("NAVLOCKS_CONFIG", world.file("settings.toml"));
    finish({
        command.envs(variables.iter().copied());
        command
    })
}

#[test]
fn settings_that_are_right_are_checked_and_nothing_is_served() {
    let world = World::new();
    let file = "listen = [\"127.0.0.1:0\"]\nlease = \"20s\"\ndashboard = true\n";
    let output = check(&world, file, &[], "");
    assert_ended(&output, 0, "");
    assert_eq!(text(&output), "the settings are right\n");
    assert!(!world.place().exists(), "no folder is made");
}

#[test]
fn mistake_in_a_setting_names_the_setting_and_its_origin() {
    let world = World::new();
    for (file, variables, said) in [
        ("lisen = 'x'", [].as_slice(), "'--lisen', did you mean --listen?"),
        ("lisen = ['x']", &[], "'--lisen', did you mean --listen?"),
        ("lisen = 'x'", &[], "--lisen is set in /"),
        ("lease = '3 years'", &[], "--lease <TIME> is set in /"),
        ("lease = true", &[], "lease in /"),
        ("dashboard = 'yes'", &[], "needs true or false"),
        ("socket = ['a', 'b']", &[], "needs a text or a number"),
        ("listen = [true]", &[], "needs a text, or a list of texts"),
        ("check = true", &[], "check is an argument alone"),
        ("lease = ", &[], "line 1"),
        ("listen = '0.0.0.0:1'", &[], "takes access tokens"),
        ("tls-cert = 'a.pem'", &[], "--tls-key"),
        ("token-file = '/nowhere'", &[], "/nowhere"),
        ("", &[("NAVLOCKS_LEASE", "7 m")], "--lease <TIME> is set in the environment"),
        (
            "",
            &[("NAVLOCKS_DASHBOARD", "maybe")],
            "dashboard in the environment needs true or false",
        ),
    ] {
        assert_ended(&check(&world, file, variables, ""), 64, said);
    }
    let missing = world.run("serve --check --config /nowhere/navlocks.toml");
    assert_ended(&missing, 64, "cannot use the settings in /nowhere/navlocks.toml");
}

/// A lease above the maximum is an error, so the check tells which value won.
#[test]
fn argument_wins_over_variable_and_variable_over_file() {
    let world = World::new();
    let (file, high) = ("lease = '20s'\nlease-max = '30s'", "--lease must be");
    assert_ended(&check(&world, file, &[], ""), 0, "");
    let variables = [("NAVLOCKS_LEASE", "40s")];
    assert_ended(&check(&world, file, &variables, ""), 64, high);
    assert_ended(&check(&world, file, &variables, "--lease 25s"), 0, "");
    assert_ended(&check(&world, file, &[("NAVLOCKS_LEASE_MAX", "60s")], "--lease=40s"), 0, "");
    let variables = [("NAVLOCKS_DASHBOARD", "false"), ("NAVLOCKS_DASHBOARD_ACTIONS", "0")];
    let acts = "dashboard = true\ndashboard-actions = true";
    assert_ended(&check(&world, acts, &[], ""), 64, "--operator-token-file");
    assert_ended(&check(&world, acts, &variables, ""), 0, "");
    // A setting that contradicts an argument gives way, too.
    assert_ended(&check(&world, "socket = '/nowhere/socket'", &[], "--no-socket"), 0, "");
    let variables = [("NAVLOCKS_TOKEN_FILE", "/of-the-variable")];
    let output = check(&world, "token-file = '/of-the-file'", &variables, "");
    assert_ended(&output, 64, "/of-the-variable");
}

#[test]
fn service_listens_at_all_addresses_of_its_file() {
    let world = World::new();
    let file = "fresh = true\nlisten = [\"127.0.0.1:0\", \"localhost:0\"]\n";
    fs::write(world.file("settings.toml"), file).unwrap();
    let mut command = world.navlocks("serve --no-socket --config");
    command.arg(world.file("settings.toml"));
    let mut service = Talk::start(command);
    let line = service.line_with("listening on");
    assert_eq!(line.matches("ws://127.0.0.1:").count(), 2);
}

#[test]
fn state_folder_that_others_can_write_is_refused() {
    let world = World::new();
    let folder = world.file("open");
    fs::create_dir(&folder).unwrap();
    let serve = format!("serve --no-socket --listen 127.0.0.1:0 --state-dir {}", folder.display());
    for (mode, code) in [(0o777, 73), (0o1777, 73), (0o770, 73), (0o755, 0), (0o700, 0)] {
        fs::set_permissions(&folder, Permissions::from_mode(mode)).unwrap();
        let said = if code == 0 { "" } else { "others can write into it" };
        assert_ended(&world.run(&format!("{serve} --check")), code, said);
        if code != 0 {
            assert_ended(&world.run(&serve), code, said);
        }
    }
}

#[test]
fn socket_in_a_folder_that_is_open_to_others_is_refused() {
    let world = World::new();
    let folder = world.file("open");
    fs::create_dir(&folder).unwrap();
    let serve = format!("serve --socket {} --check", folder.join("socket").display());
    for (mode, code, said) in [(0o755, 73, "is open to others"), (0o700, 0, "")] {
        fs::set_permissions(&folder, Permissions::from_mode(mode)).unwrap();
        assert_ended(&world.run(&serve), code, said);
    }
}
