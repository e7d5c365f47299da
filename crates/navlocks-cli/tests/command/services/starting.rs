//! The user's own service: commands start it once, and it ends when it is idle.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::process::Command;

use rustix::process::Signal;

use crate::support::{Talk, World, assert_ended, eventually, finish, lives, program, text};

#[test]
fn hundred_commands_at_once_start_one_service() {
    let world = World::new();
    let runs: Vec<Talk> = (0..100)
        .map(|_| Talk::start(world.script("run x", "echo $NAVLOCKS_FENCING_TOKEN")))
        .collect();
    let mut tokens: Vec<u64> = Vec::new();
    for run in runs {
        let ended = run.wait();
        ended.assert(0, "");
        let token = ended.lines.iter().find_map(|line| line.parse().ok());
        tokens.push(token.expect("each has a token"));
    }
    // Two services would give the same tokens, and grant one name twice.
    tokens.sort_unstable();
    tokens.dedup();
    assert_eq!(tokens.len(), 100);
    assert_eq!(world.services().len(), 1);
}

#[test]
fn files_of_the_service_are_private_to_the_user() {
    let world = World::new();
    assert_ended(&world.run("run x -- true"), 0, "");
    let mode = |name: &str| fs::metadata(world.place().join(name)).unwrap().mode() & 0o777;
    assert_eq!((mode(""), mode("socket"), mode("log")), (0o700, 0o600, 0o600));
}

#[test]
fn service_has_a_session_folder_and_environment_of_its_own() {
    let world = World::new();
    let mut command = world.navlocks("run x -- true");
    command.env("SECRET", "of-the-user").current_dir(world.file(""));
    assert_ended(&finish(command), 0, "");
    let service = world.service();
    let pid = service.as_raw_nonzero();
    assert_eq!(rustix::process::getsid(Some(service)), Ok(service), "a session of its own");
    assert_eq!(fs::read_link(format!("/proc/{pid}/cwd")).unwrap().to_str(), Some("/"));
    let environment = fs::read(format!("/proc/{pid}/environ")).unwrap();
    assert!(!String::from_utf8_lossy(&environment).contains("of-the-user"));
}

#[test]
fn service_inherits_no_file_of_its_starter() {
    let world = World::new();
    // Descriptor 9 is a copy of the test's pipe: the test would hang if the service inherited it.
    let mut command = Command::new("sh");
    command.args(["-c", r#""$NL" run x -- echo done 9>&1"#]);
    world.settle(&mut command);
    assert_eq!(text(&finish(command)), "done\n");
    assert_eq!(world.services().len(), 1, "it still runs");
}

#[test]
fn service_started_by_a_restricted_command_is_not_restricted() {
    let world = World::new();
    let mut command = Command::new("sh");
    let restrict = "umask 027; ulimit -St 60; ulimit -Sf 4096; ulimit -Sn 64; echo 500 > /proc/self/oom_score_adj";
    let script = format!(r#"{restrict}; exec nice -n 7 chrt --batch 0 "$0" run x -- true"#);
    command.arg("-c").arg(script).arg(program());
    world.settle(&mut command);
    assert_ended(&finish(command), 0, "");
    let pid = world.service().as_raw_nonzero();
    let about = |file: &str| fs::read_to_string(format!("/proc/{pid}/{file}")).unwrap();
    let limits = about("limits");
    for name in ["Max cpu time", "Max file size", "Max open files"] {
        let line = limits.lines().find(|line| line.starts_with(name)).unwrap();
        let words: Vec<&str> = line.trim_start_matches(name).split_whitespace().collect();
        assert_eq!(words[0], words[1], "soft and hard: {line}");
    }
    let lowered = "for score in 500 0; do echo $score >/proc/self/oom_score_adj; done 2>/dev/null";
    let lowered = format!("{lowered}; cat /proc/self/oom_score_adj");
    let lowest = Command::new("sh").args(["-c", &lowered]).output().unwrap();
    assert_eq!(about("oom_score_adj"), text(&lowest));
    assert!(about("status").contains("Umask:\t0077"), "{}", about("status"));
    let stat = about("stat");
    // The fields begin with the state, the third: the nice level is the 19th, the scheduler the
    // 41st.
    let fields: Vec<&str> = stat.rsplit(") ").next().unwrap().split(' ').collect();
    assert_eq!(fields[41 - 3], "0", "the usual scheduler");
    // The kernel refuses a better level to a process without a privilege, whatever level the tests
    // have. A level belongs to a thread.
    let allowed = std::thread::spawn(|| {
        rustix::process::nice(7).unwrap();
        let _as_it_was = rustix::process::setpriority_process(None, 0);
        rustix::process::getpriority_process(None).unwrap()
    });
    assert_eq!(fields[19 - 3], allowed.join().unwrap().to_string(), "the nice level");
}

#[test]
fn service_ends_when_it_is_idle() {
    let world = World::new();
    let mut command = world.navlocks("run x -- true");
    command.env("NAVLOCKS_IDLE_EXIT", "50ms");
    assert_ended(&finish(command), 0, "");
    eventually("the end of the service", || world.services().is_empty());
    assert!(!world.place().join("socket").exists());
    // The next command starts a service again.
    assert_ended(&world.run("run x -- true"), 0, "");
    assert_eq!(world.services().len(), 1);
}

#[test]
fn runs_that_meet_an_ending_service_succeed() {
    let world = World::new();
    // The service ends whenever it is idle, while commands start.
    let ended: Vec<Talk> = (0..40)
        .map(|_| {
            let mut command = world.navlocks("run x -- true");
            command.env("NAVLOCKS_IDLE_EXIT", "1ms");
            Talk::start(command)
        })
        .collect();
    ended.into_iter().for_each(|run| run.wait().assert(0, ""));
}

#[test]
fn stale_socket_is_replaced() {
    let world = World::new();
    assert_ended(&world.run("run x -- true"), 0, "");
    let service = world.service();
    rustix::process::kill_process(service, Signal::KILL).unwrap();
    eventually("its end", || !lives(service.as_raw_nonzero().get()));
    assert!(world.place().join("socket").exists());
    assert_eq!(world.query()["held"], serde_json::json!([]), "asking starts nothing");
    assert_ended(&world.run("run x -- true"), 0, "");
    assert_ne!(world.service(), service);
}

#[test]
fn service_that_cannot_start_names_the_cause() {
    let world = World::new();
    let mut command = world.navlocks("run x -- true");
    command.env("NAVLOCKS_IDLE_EXIT", "soon");
    assert_ended(&finish(command), 87, "the service did not start: --idle-exit");
}
