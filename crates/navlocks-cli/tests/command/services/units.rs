//! The packaged units for systemd.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::support::{World, assert_ended, finish, program, text};

/// Returns the text of a packaged file.
fn packaged(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/systemd");
    fs::read_to_string(folder.join(name)).expect("a packaged file")
}

/// Returns the value of a setting that the unit has once.
fn setting<'a>(unit: &'a str, name: &str) -> &'a str {
    let mut values = unit.lines().filter_map(|line| line.strip_prefix(name)?.strip_prefix('='));
    let value = values.next().expect("the setting is there");
    assert_eq!(values.next(), None, "{name} is there once");
    value
}

#[test]
fn units_are_without_mistakes_to_systemd() {
    let world = World::new();
    let program = format!("\"{}\"", program().to_str().expect("a path of ours"));
    for (scope, name) in [("--system", "navlocks"), ("--user", "navlocks-user")] {
        let files = [format!("{name}.service"), format!("{name}.socket")];
        for file in &files {
            let unit = packaged(file).replace("/usr/bin/navlocks", &program);
            fs::write(world.file(file), unit).unwrap();
        }
        let mut verify = Command::new("systemd-analyze");
        verify.args([scope, "verify", "--man=no", "--recursive-errors=no"]);
        verify.args(files.map(|file| world.file(&file)));
        verify.env("XDG_RUNTIME_DIR", world.file(""));
        let output = finish(verify);
        assert_ended(&output, 0, "");
        // An unknown setting is a warning of systemd, not an error.
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!said.contains("navlocks"), "{said}");
    }
}

#[test]
fn reload_of_a_unit_is_the_signal_by_which_a_service_reads_its_files() {
    for name in ["navlocks.service", "navlocks-user.service"] {
        assert_eq!(setting(&packaged(name), "ExecReload"), "/bin/kill -HUP $MAINPID", "{name}");
    }
}

#[test]
fn service_of_the_user_unit_has_the_place_of_one_that_a_command_starts() {
    let world = World::new();
    fs::create_dir(world.file("var-tmp")).unwrap();
    let (socket, service) = (packaged("navlocks-user.socket"), packaged("navlocks-user.service"));
    assert_eq!(
        (setting(&socket, "SocketMode"), setting(&socket, "DirectoryMode")),
        ("0600", "0700")
    );
    let path = setting(&socket, "ListenStream").replace("%U", "0");
    let start = setting(&service, "ExecStart").replace("/usr/bin/navlocks", r#""$NL""#);
    let script = format!(
        r#"mount --bind var-tmp /var/tmp; cover tmp; umask 077
        token() {{ "$NL" run x -- sh -c 'echo $NAVLOCKS_FENCING_TOKEN'; }}
        first=$(token); "$NL" stop >/dev/null
        systemd-socket-activate -l {path} {start} >/dev/null 2>&1 &
        until [ -S {path} ]; do :; done; chmod 600 {path}
        second=$(token); "$NL" doctor; "$NL" stop; wait; third=$(token); "$NL" stop
        [ "$first" -lt "$second" ] && [ "$second" -lt "$third" ] && echo tokens grow
        cd /var/tmp; ls navlocks-0"#
    );
    let Some(mut command) = world.mounting("tmp", &script) else { return };
    command.env_remove("NAVLOCKS_DIR");
    let output = finish(command);
    assert_ended(&output, 0, "");
    for said in ["tokens grow", "/navlocks-0", "service.json", "serves"] {
        assert!(text(&output).contains(said), "{said}: {output:?}");
    }
}

/// systemd makes the folder as root, and the programs that use the socket run as the user of the
/// service.
#[test]
fn folder_of_the_system_socket_can_be_entered_by_its_users() {
    let socket = packaged("navlocks.socket");
    assert_eq!(setting(&socket, "DirectoryMode"), "0755");
    assert_eq!(setting(&socket, "SocketMode"), "0660");
    assert_eq!(setting(&socket, "SocketGroup"), setting(&socket, "SocketUser"));
    let user = setting(&socket, "SocketUser");
    assert_eq!(user, setting(&packaged("navlocks.service"), "User"));
    assert!(packaged("navlocks.sysusers").contains(&format!("u {user} ")));
}

#[test]
fn units_are_sandboxed_to_systemd() {
    let world = World::new();
    for (scope, name) in [("--system", "navlocks.service"), ("--user", "navlocks-user.service")] {
        fs::write(world.file(name), packaged(name)).unwrap();
        let mut security = Command::new("systemd-analyze");
        // In tenths: 2.0 is the worst that passes.
        security.args([scope, "security", "--offline=yes", "--threshold=19"]);
        security.arg(world.file(name)).env("XDG_RUNTIME_DIR", world.file(""));
        assert_ended(&finish(security), 0, "");
    }
}
