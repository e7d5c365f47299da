//! The subcommands `query`, `watch`, `stop` and `doctor`.

use crate::support::{Talk, World, assert_ended, eventually, text};

#[test]
fn query_without_a_service_shows_no_lock_and_starts_none() {
    let world = World::new();
    assert_eq!(text(&world.run("query")), "nothing is held\n");
    assert_eq!(text(&world.run("query --json")), "{\"held\":[],\"pending\":[]}\n");
    assert_eq!(text(&world.run("stop")), "no service runs\n");
    assert!(!world.place().exists());
}

#[test]
fn query_and_watch_show_the_trace_of_a_command() {
    const TRACE: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let world = World::new();
    for (given, shown) in [(TRACE, serde_json::json!(TRACE)), ("mine", serde_json::Value::Null)] {
        let mut command = world.script("run a", "echo held; read line; exit 0");
        command.env("TRACEPARENT", given);
        let mut holder = Talk::start(command);
        assert_eq!(holder.line(), "held");
        assert_eq!(world.query()["held"][0]["traceparent"], shown);
        holder.end().assert(0, "");
        world.until(0, 0);
    }
}

#[test]
fn query_shows_holders_and_waiters() {
    let world = World::new();
    let holder = world.hold("run --tag nightly a b");
    let waiter = Talk::start(world.navlocks("run --shared b -- true"));
    world.until(1, 1);
    let now = world.query();
    let (held, pending) = (&now["held"][0], &now["pending"][0]);
    assert_eq!(held["names"], serde_json::json!(["a", "b"]));
    assert_eq!(held["mode"], "exclusive");
    assert_eq!(held["tag"], "nightly");
    assert_eq!(held["pid"], holder.pid().as_raw_nonzero().get());
    assert!(held["token"].as_u64().is_some_and(|token| token > 0));
    assert!(held["ms"].is_u64() && held["request"].is_string() && held["client"].is_string());
    assert_eq!(pending["mode"], "shared");
    assert_eq!(pending["tag"], "true");
    assert_eq!(pending["pid"], waiter.pid().as_raw_nonzero().get());
    assert!(pending.get("token").is_none());
    let table = world.run("query");
    let lines: Vec<Vec<&str>> =
        text(&table).lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(lines[0], ["NAME", "MODE", "STATE", "FOR", "PID", "TAG", "TOKEN"]);
    assert_eq!(lines[1][..4], ["{a,", "b}", "exclusive", "held"]);
    assert_eq!(lines[2][..3], ["b", "shared", "waits"]);
    assert!(!text(&table).contains('\x1b'), "no colours without a terminal");
    holder.end().assert(0, "");
    waiter.wait().assert(0, "");
}

#[test]
fn control_characters_of_tags_are_escaped() {
    let world = World::new();
    let mut tagged = world.navlocks("run --tag");
    tagged.arg("\x1b[2Jboo").args(["x", "--", "sh", "-c", "echo held; read line; exit 0"]);
    let mut holder = Talk::start(tagged);
    assert_eq!(holder.line(), "held");
    assert!(text(&world.run("query")).contains("\\u{1b}[2Jboo"));
    holder.end().assert(0, "");
}

#[test]
fn watch_prints_every_event() {
    let world = World::new();
    let mut json = Talk::start(world.navlocks("watch --json"));
    let mut plain = Talk::start(world.navlocks("watch"));
    // An event shows that the watchers are subscribed.
    for watch in [&mut json, &mut plain] {
        let mut told = Vec::new();
        eventually("a first event", || {
            assert_ended(&world.run("run probe -- true"), 0, "");
            told.extend(watch.try_line());
            !told.is_empty()
        });
    }
    let run = world.navlocks("run --tag t a -- true").spawn().expect("it starts");
    let pid = run.id();
    assert_ended(&run.wait_with_output().expect("it ends"), 0, "");
    let mut events = Vec::new();
    while events.last() != Some(&"released".to_owned()) {
        let event: serde_json::Value = serde_json::from_str(&json.line()).unwrap();
        if event["names"] == serde_json::json!(["a"]) {
            assert_eq!(event["tag"], "t");
            assert_eq!(event["pid"], pid);
            assert_eq!(event["event"] == "granted", event["token"].is_u64());
            events.push(event["event"].as_str().unwrap().to_owned());
        }
    }
    assert_eq!(events, ["requested", "granted", "released"]);
    while !plain.line().ends_with(&format!(" [t] (pid {pid}) (exclusive a) released")) {}
    plain.signal(rustix::process::Signal::TERM);
    json.signal(rustix::process::Signal::TERM);
}

#[test]
fn stop_ends_the_service_but_not_under_locks() {
    let world = World::new();
    let holder = world.hold("run x");
    let before = world.service();
    assert_ended(&world.run("stop"), 1, "1 lock is held ('x' by sh");
    assert_ended(&world.run("stop --force"), 0, "");
    world.until(1, 0);
    assert_ne!(world.service(), before, "the holder has started the next one");
    holder.end().assert(0, "");
    assert_ended(&world.run("run x -- true"), 0, "");
    let stop = world.run("stop");
    assert_eq!(text(&stop), "the service has ended\n");
    assert_ended(&world.run("stop --url unix:/nowhere"), 64, "only the user's own service");
}

#[test]
fn stop_is_refused_for_locks_in_any_partition_and_names_them() {
    let world = World::new();
    let holder = world.hold("run --partition builds --tag nightly x");
    let refused = world.run("stop");
    assert_ended(&refused, 1, "1 lock is held ('x' in partition builds by nightly");
    assert_eq!(world.services().len(), 1);
    assert_eq!(text(&world.run("query")), "nothing is held\n");
    let all = world.run("query --all-partitions");
    assert!(text(&all).starts_with("partition builds\nNAME "), "{}", text(&all));
    let all = world.run("query --all-partitions --json");
    let all: serde_json::Value = serde_json::from_slice(&all.stdout).unwrap();
    let names = |all: &serde_json::Value| all["held"][0]["names"].clone();
    let builds = all["partitions"].as_array().unwrap().iter();
    let builds = builds.filter(|one| one["partition"] == "builds").collect::<Vec<_>>();
    assert_eq!(names(builds[0]), serde_json::json!(["x"]));
    holder.end().assert(0, "");
    assert_ended(&world.run("stop"), 0, "");
}

#[test]
fn doctor_reports_a_healthy_service() {
    let world = World::new();
    let nothing = world.run("doctor");
    assert_ended(&nothing, 0, "");
    assert!(text(&nothing).contains("no service runs"), "{}", text(&nothing));
    let holder = world.hold("run x");
    let fine = world.run("doctor");
    assert_ended(&fine, 0, "");
    for said in [
        "is yours alone",
        "is listened to",
        "serves",
        "1 held, 0 waiting",
        "no client is deadlocked",
    ] {
        assert!(text(&fine).contains(said), "{}", text(&fine));
    }
    holder.end().assert(0, "");
}

#[test]
fn doctor_reports_each_fault() {
    use std::os::unix::fs::PermissionsExt;
    let world = World::new();
    assert_ended(&world.run("run x -- true"), 0, "");
    let socket = world.place().join("socket");
    std::fs::set_permissions(&socket, std::fs::Permissions::from_mode(0o666)).unwrap();
    let open = world.run("doctor");
    assert_ended(&open, 1, "one thing is not as it should be");
    assert!(text(&open).contains("others can use"), "{}", text(&open));
    std::fs::set_permissions(&socket, std::fs::Permissions::from_mode(0o600)).unwrap();
    std::fs::set_permissions(world.place(), std::fs::Permissions::from_mode(0o755)).unwrap();
    assert_ended(&world.run("doctor"), 1, "one thing is not as it should be");
    std::fs::set_permissions(world.place(), std::fs::Permissions::from_mode(0o700)).unwrap();
}

#[test]
fn watch_prints_gaps_and_times_and_escapes_control_characters() {
    let world = World::new();
    let mut json = Talk::start(world.navlocks("watch --json"));
    let mut plain = Talk::start(world.navlocks("watch"));
    let told = |watch: &mut Talk, tag: &str, wanted: &str| {
        let mut said = Vec::new();
        eventually(wanted, || {
            let mut run = world.navlocks("run --tag");
            run.arg(tag).args(["x", "--", "true"]);
            assert_ended(&crate::support::finish(run), 0, "");
            said.extend(std::iter::from_fn(|| watch.try_line()));
            said.iter().any(|line| line.contains(wanted))
        });
        said
    };
    let forged = "a\n\x1b[2Jforged";
    let lines = told(&mut plain, forged, "released");
    assert!(lines.iter().all(|line| line.contains("Z r")), "each begins with a time: {lines:?}");
    assert!(lines.iter().any(|line| line.contains("a\\u{a}\\u{1b}[2Jforged")), "{lines:?}");
    let lines = told(&mut json, "t", "released");
    assert!(lines.iter().all(|line| line.contains(r#""time":"2"#)), "{lines:?}");
    assert_ended(&world.run("stop --force"), 0, "");
    // The gap is printed at once, not when a service runs again.
    plain.line_with("events may be missing here");
    json.line_with(r#"{"event":"gap","time":"2"#);
    assert_eq!(world.services(), []);
    told(&mut plain, "again", "again");
    told(&mut json, "again", "again");
    plain.signal(rustix::process::Signal::TERM);
    json.signal(rustix::process::Signal::TERM);
}

/// Runs `navlocks` by a shell after these words, with mounts of its own that no other process sees.
/// Returns none and skips the test if this user may not mount.
fn navlocks_after(world: &World, words: &str, arguments: &str) -> Option<std::process::Output> {
    let script = format!("{words}; exec \"$NL\" {arguments}");
    world.mounting("around", &script).map(crate::support::finish)
}

#[test]
fn doctor_finds_a_folder_that_cannot_be_written_or_is_full_or_foreign() {
    let world = World::new();
    assert_ended(&world.run("run x -- true"), 0, "");
    assert_ended(&world.run("stop"), 0, "");
    let mount = "mount -t tmpfs -o size=4k";
    for (words, said) in [
        (format!("{mount},mode=0700,ro none \"$STATE\""), "cannot remember fencing tokens"),
        (
            format!(
                "{mount},mode=0700 none \"$STATE\"; cat /dev/zero >\"$STATE/x\" 2>/dev/null || true"
            ),
            "is full",
        ),
        (format!("{mount},mode=0755 none \"$STATE\""), "others can enter"),
    ] {
        let Some(doctor) = navlocks_after(&world, &words, "doctor") else { return };
        assert_ended(&doctor, 1, "not as");
        assert!(text(&doctor).contains(said), "{words}: {}", text(&doctor));
        assert!(!text(&doctor).contains("one starts when it is needed"), "{}", text(&doctor));
    }
    assert_ended(&world.run("doctor"), 0, "");
}

#[test]
fn start_on_a_full_disk_fails_and_names_the_disk() {
    let world = World::new();
    assert_ended(&world.run("run x -- true"), 0, "");
    assert_ended(&world.run("stop"), 0, "");
    // A page that a line of an earlier service ends: no room for another, and not the cause.
    let words = r#"mount -t tmpfs -o mode=0700,size=64k none "$STATE"
        { head -c $(($(getconf PAGESIZE) - 8)) /dev/zero | tr '\0' '\n'; echo earlier; } >"$STATE/log"
        cat /dev/zero >"$STATE/x" 2>/dev/null || true"#;
    let Some(run) = navlocks_after(&world, words, "run x -- true") else { return };
    assert_ended(&run, 87, "the service did not start: the disk of");
}

/// A disk with some room is full for a service that has to make its tables.
#[test]
fn doctor_finds_the_disk_on_which_a_start_failed() {
    let world = World::new();
    assert_ended(&world.run("run x -- true"), 0, "");
    assert_ended(&world.run("stop"), 0, "");
    for (words, said) in
        [(":", "is full"), (r#"umount -l "$STATE"; mv log "$STATE""#, "the log ends with")]
    {
        let words = format!(
            r#"mount -t tmpfs -o mode=0700,size=400k none "$STATE"
            "$NL" run x -- true 2>/dev/null && exit 2; cp "$STATE/log" log; {words}"#
        );
        let Some(doctor) = navlocks_after(&world, &words, "doctor") else { return };
        assert_ended(&doctor, 1, "not as");
        assert!(text(&doctor).contains(said), "{words}: {}", text(&doctor));
    }
}

#[test]
fn doctor_finds_a_private_folder_for_temporary_files() {
    let world = World::new();
    let private = "systemd-private-0-unit";
    let script = format!("cover {private}; unset NAVLOCKS_DIR; \"$NL\" doctor");
    let Some(command) = world.mounting(private, &script) else { return };
    let doctor = crate::support::finish(command);
    assert_ended(&doctor, 1, "");
    assert!(text(&doctor).contains("/tmp is private to this unit"), "{}", text(&doctor));
}

#[test]
fn names_of_held_locks_are_lines_and_complete_what_is_typed() {
    let world = World::new();
    let mut held = world.navlocks("run beta alpha");
    // A shell would execute the first name, and the second one is no line.
    held.args([
        "beta $(touch hacked)",
        "two\nlines",
        "--",
        "sh",
        "-c",
        "echo held; read line; exit 0",
    ]);
    let mut held = Talk::start(held);
    assert_eq!(held.line(), "held");
    let names = world.run("query --names");
    assert_ended(&names, 0, "");
    assert_eq!(text(&names), "alpha\nbeta\nbeta $(touch hacked)\n");
    let complete = |words: &str| {
        let script = r#"source <("$0" completions bash)
            COMP_WORDS=("$0" "$@") COMP_CWORD=$#
            _navlocks_held "$0" "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD-1]}"
            printf '%s\n' "${COMPREPLY[@]}""#;
        let mut bash = std::process::Command::new("bash");
        bash.args(["-c", script]).arg(crate::support::program()).args(words.split('|'));
        bash.current_dir(world.file(""));
        world.settle(&mut bash);
        let output = crate::support::finish(bash);
        assert_ended(&output, 0, "");
        text(&output).to_owned()
    };
    assert_eq!(complete("steal|al"), "alpha\n");
    assert_eq!(complete("release|--force|be"), "beta\nbeta\\ \\$\\(touch\\ hacked\\)\n");
    assert!(complete("release|--fo").contains("--force"));
    assert!(complete("rel").contains("release"));
    assert!(!complete("release|--url|al").contains("alpha"));
    assert!(!world.file("hacked").exists());
    held.end().assert(0, "");
}
