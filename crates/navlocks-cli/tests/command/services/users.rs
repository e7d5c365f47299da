//! One service for the users of a machine, with real users of it.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use rustix::process::{Signal, kill_process};

use crate::support::{Talk, World, assert_ended, finish, program, text};

/// Users and a group that need no name.
const ANN: u32 = 65_534;
const BOB: u32 = 64_001;
const GROUP: u32 = 64_002;
const STRANGERS: u32 = 64_003;

/// A service for the users of a group.
struct Shared {
    world: World,
    _service: Talk,
}

impl Shared {
    /// Returns none and skips the test if this user cannot start processes of others.
    fn start(more: &str) -> Option<Self> {
        if !rustix::process::geteuid().is_root() {
            servers::skip("only root can start processes of other users");
            return None;
        }
        let world = World::new();
        // Other users need not be able to enter the folder of the build.
        let own = world.file("navlocks");
        if fs::hard_link(program(), &own).is_err() {
            fs::copy(program(), &own).expect("the program can be copied");
        }
        fs::set_permissions(&own, fs::Permissions::from_mode(0o755)).expect("it is ours");
        let serve =
            format!("serve --socket {} --socket-group {GROUP} {more}", Self::socket(&world));
        let mut service = Talk::start(world.navlocks(&serve));
        service.line_after("listening on ");
        Some(Self { world, _service: service })
    }

    fn socket(world: &World) -> String {
        world.file("run/socket").display().to_string()
    }

    /// Returns the command of a user, in this group.
    fn command(&self, (user, group): (u32, u32), arguments: &str) -> Command {
        let mut command = Command::new(self.world.file("navlocks"));
        command.args(arguments.split_whitespace());
        self.world.settle(&mut command);
        command.env("NAVLOCKS_URL", format!("unix:{}", Self::socket(&self.world)));
        command.current_dir("/").uid(user).gid(group);
        command
    }

    /// Starts a command of a user that holds a lock. It has a process of its own that reads lines.
    fn hold(&self, who: (u32, u32), name: &str) -> Talk {
        let mut command = self.command(who, &format!("run {name}"));
        let script = "exec 3<&0; (echo held; read line <&3; exit 0) & wait";
        command.args(["--", "sh", "-c", script]);
        let mut talk = Talk::start(command);
        talk.line_after("held");
        talk
    }
}

#[test]
fn c09_users_of_a_group_share_locks_and_others_are_kept_out() {
    let Some(shared) = Shared::start("") else { return };
    let holder = shared.hold((ANN, GROUP), "x");
    let mut taken = shared.command((BOB, GROUP), "run -n x");
    taken.args(["--", "true"]);
    assert_ended(&finish(taken), 1, "'x' is not free");
    let stranger = finish(shared.command((BOB, STRANGERS), "query"));
    assert!(!stranger.status.success());
    assert!(String::from_utf8_lossy(&stranger.stderr).contains("ermission denied"), "{stranger:?}");
    // A process of the command outlives a killed `navlocks` until its input ends, and keeps the
    // lock.
    let mut waiter = shared.command((BOB, GROUP), "run x");
    waiter.args(["--", "true"]);
    let waiter = Talk::start(waiter);
    kill_process(holder.pid(), Signal::KILL).expect("it runs");
    let mut taken = shared.command((BOB, GROUP), "run -n x");
    taken.args(["--", "true"]);
    assert_ended(&finish(taken), 1, "'x' is not free");
    drop(holder);
    waiter.wait().assert(0, "");
}

#[test]
fn c10_users_as_tenants_have_locks_apart_and_see_their_own() {
    let Some(shared) = Shared::start("--tenant-by-user") else { return };
    let _ann = shared.hold((ANN, GROUP), "x");
    let _bob = shared.hold((BOB, GROUP), "x");
    let seen = |who| {
        let output = finish(shared.command(who, "query --all-partitions"));
        assert!(output.status.success(), "{output:?}");
        [ANN, BOB].map(|user| text(&output).contains(&format!("of tenant uid:{user}")))
    };
    assert_eq!(seen((ANN, GROUP)), [true, false]);
    assert_eq!(seen((BOB, GROUP)), [false, true]);
    assert_eq!(seen((0, 0)), [true, true]);
}

#[test]
fn c11_permissions_that_are_none_of_a_socket_are_refused() {
    let world = World::new();
    let said = [
        ("--socket-mode 0777", "'0777' is no mode of a socket: give 0600, 0660 or 0666"),
        ("--socket-mode 0066", "'0066' is no mode of a socket"),
        ("--socket-mode rw", "'rw' is no mode of a socket"),
        ("--socket-group no-such-group", "the machine has no group 'no-such-group'"),
    ];
    for (options, why) in said {
        assert_ended(&world.run(&format!("serve {options}")), 64, why);
    }
    // The folder of a shared socket must keep others from replacing the socket.
    fs::create_dir(world.file("open")).expect("a folder");
    fs::set_permissions(world.file("open"), fs::Permissions::from_mode(0o777)).expect("ours");
    let socket = world.file("open/socket");
    let open = world.run(&format!("serve --socket {} --socket-mode 0666", socket.display()));
    let why = String::from_utf8_lossy(&open.stderr);
    assert!(!open.status.success() && why.contains("others can write into it"), "{why}");
}

#[test]
fn c12_doctor_tells_of_services_of_other_users() {
    if !rustix::process::geteuid().is_root() {
        return servers::skip("only root can make the folder of another user");
    }
    let world = World::new();
    let other = world.file(&format!("navlocks-{ANN}"));
    fs::create_dir(&other).expect("a folder");
    chown(&other, Some(ANN), None).expect("root can");
    let mut doctor = world.navlocks("doctor");
    doctor.env("NAVLOCKS_DIR", world.file("navlocks-0"));
    let output = finish(doctor);
    let said = format!("user {ANN} has a service of their own, and the same name there is another");
    assert!(text(&output).contains(&said), "{output:?}");
    assert!(text(&output).contains("give --system"), "{output:?}");
    let alone = text(&world.run("doctor")).to_owned();
    assert!(!alone.contains("--system"), "{alone}");
}
