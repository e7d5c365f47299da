//! Crowds: steps that concern a hundred thousand requests, and thousands of connections.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::net::SocketAddr;
use std::os::unix::fs::OpenOptionsExt as _;
use std::time::Duration;

use navlocks_server::Access;
use navlocks_wire::{Event, ToClient, Welcome};

use crate::bystander::{ABUSER, BYSTANDER, Bystander, connect, join, with_tenants};
use crate::client::Client;
use crate::process::{Process, may_open, metric};
use crate::running::{Folder, Running};

const WAITERS: u64 = 100_000;

/// Makes a hundred thousand requests of one session, each for the name that `name` gives its
/// number. Returns once the service has taken them.
fn request_many(client: &mut Client, mode: &str, name: impl Fn(u64) -> String) {
    for first in (1..=WAITERS).step_by(1000) {
        client.say_all((first..first + 1000).map(|id| {
            let name = name(id);
            format!(r#"{{"request":{{"id":{id},"names":["{name}"],"mode":"{mode}"}}}}"#)
        }));
    }
}

#[track_caller]
fn hear_grants(client: &mut Client) {
    for _ in 0..WAITERS {
        let message = client.hear();
        assert!(matches!(message, ToClient::Granted(_)), "not granted: {message:?}");
    }
}

/// Waits until a session holds a hundred thousand names. Returns one that waits for all of them.
fn heir_of(holder: &mut Client, service: &Process) -> Client {
    hear_grants(holder);
    let (mut heir, _) = join(service.tcp, ABUSER);
    request_many(&mut heir, "exclusive", |id| id.to_string());
    heir.settle();
    heir
}

#[test]
fn grant_to_a_hundred_thousand_waiters_leaves_time_for_others() {
    let service = Process::start();
    let bystander = Bystander::beside(&service);
    let (mut holder, _) = join(service.tcp, ABUSER);
    let (mut waiter, _) = join(service.tcp, ABUSER);
    holder.hold(1, "a");
    request_many(&mut waiter, "shared", |_| "a".into());
    waiter.settle();
    holder.say(r#"{"end":1}"#);
    hear_grants(&mut waiter);
    bystander.served_well();
}

#[test]
fn end_of_a_session_with_a_hundred_thousand_heirs_leaves_time_for_others() {
    let service = Process::start();
    let bystander = Bystander::beside(&service);
    let (mut holder, _) = join(service.tcp, ABUSER);
    request_many(&mut holder, "exclusive", |id| id.to_string());
    let mut heir = heir_of(&mut holder, &service);
    holder.say("\"bye\"");
    hear_grants(&mut heir);
    bystander.served_well();
}

#[test]
fn end_of_a_session_with_thousands_of_clients_leaves_time_for_others() {
    const CLIENTS: u64 = 9_000;
    let service = Process::start();
    let bystander = Bystander::beside(&service);
    let (mut holder, _) = join(service.tcp, ABUSER);
    holder.say_all((1..=CLIENTS).map(|client| format!(r#"{{"open":{{"client":{client}}}}}"#)));
    for first in (1..=WAITERS).step_by(1000) {
        holder.say_all((first..first + 1000).map(|id| {
            let client = id % CLIENTS + 1;
            format!(r#"{{"request":{{"id":{id},"client":{client},"names":["{id}"]}}}}"#)
        }));
    }
    let mut heir = heir_of(&mut holder, &service);
    holder.say("\"bye\"");
    hear_grants(&mut heir);
    bystander.served_well();
}

#[test]
fn resume_that_gives_up_a_hundred_thousand_requests_leaves_time_for_others() {
    let service = Process::start();
    let bystander = Bystander::beside(&service);
    let (mut holder, Welcome { session, secret, .. }) = join(service.tcp, ABUSER);
    request_many(&mut holder, "exclusive", |id| id.to_string());
    let mut heir = heir_of(&mut holder, &service);
    drop(holder);
    let mut holder = connect(service.tcp, ABUSER);
    holder.say(format!(r#"{{"hello":{{"resume":{{"session":{session},"secret":"{secret}"}}}}}}"#));
    assert!(holder.welcome().resumed);
    holder.name_all(&[]);
    hear_grants(&mut heir);
    bystander.served_well();
}

#[test]
fn thousands_of_connections_are_served_beside_others() {
    // With `./test soak`, as many as the open files of most systems allow.
    let soaks = std::env::var_os("NAVLOCKS_SOAK").is_some();
    let count = if soaks { 10_000 } else { 1_000 };
    if !may_open(2 * count) {
        return;
    }
    let service = Process::start();
    let bystander = Bystander::beside(&service);
    let before = service.memory();
    // Half of them over the Unix socket: with tokens, one tenant has half of the file descriptors.
    let connect = |number| match number % 2 {
        0 => join(service.tcp, ABUSER).0,
        _ => Client::unix(&service.unix),
    };
    let mut clients: Vec<Client> = (0..count).map(connect).collect();
    let each = (service.memory() - before) / count;
    assert!(each < 64 << 10, "{each} bytes for each connection");
    for client in &mut clients {
        client.hold(1, "a");
        client.say(r#"{"end":1}"#);
    }
    bystander.served_well();
}

#[test]
fn subscription_in_turn_with_its_end_copies_the_partition_once() {
    let service = Process::start();
    let bystander = Bystander::beside(&service);
    let (mut client, _) = join(service.tcp, ABUSER);
    for batch in 0..50 {
        let ids = batch * 1000 + 1..=batch * 1000 + 1000;
        client.say_all(
            ids.clone().map(|id| format!(r#"{{"request":{{"id":{id},"names":["{id}"]}}}}"#)),
        );
        for id in ids {
            client.granted(id);
        }
    }
    let mut others: Vec<Client> = (0..8).map(|_| join(service.tcp, ABUSER).0).collect();
    for other in &mut others {
        other.say_all((0..1000).map(|n| {
            if n % 2 == 0 { r#"{"watch":{"events":0}}"# } else { r#"{"watch":{"no-events":0}}"# }
        }));
    }
    for other in &mut others {
        (0..500).for_each(|_| assert_eq!(other.hear(), ToClient::Event(Event::Watching(0))));
    }
    bystander.served_well();
}

#[test]
fn watchers_for_contention_are_told_once_each_and_hold_nobody_up() {
    let service = Process::start();
    let bystander = Bystander::beside(&service);
    let mut watchers = Vec::new();
    for _ in 0..2 {
        let (mut client, _) = join(service.tcp, ABUSER);
        for batch in 0..100_u64 {
            let ids = batch * 1000 + 1..=batch * 1000 + 1000;
            client.say_all(ids.clone().flat_map(|id| {
                let request =
                    format!(r#"{{"request":{{"id":{id},"names":["a"],"mode":"shared"}}}}"#);
                [request, format!(r#"{{"watch":{{"contention":{id}}}}}"#)]
            }));
            for id in ids {
                client.granted(id);
            }
        }
        watchers.push(client);
    }
    let (mut other, _) = join(service.tcp, ABUSER);
    other.say(r#"{"request":{"id":1,"names":["a"]}}"#);
    for watcher in &mut watchers {
        for _ in 0..100_000 {
            assert!(matches!(watcher.hear(), ToClient::Event(Event::Contended(_))));
        }
    }
    bystander.served_well();
}

/// Begins so many sessions of the abuser, whose connections break at once.
fn abandon_sessions(address: SocketAddr, count: usize, hello: &str) {
    for _ in 0..count {
        let mut client = connect(address, ABUSER);
        client.say(hello);
        client.welcome();
    }
}

/// Waits until the service has no sessions but those of the bystander.
fn await_end_of_sessions(service: &Running, count: usize) {
    while metric(service.unix(), "sessions") >= count as u64 {}
}

#[test]
fn removal_of_a_token_with_thousands_of_sessions_leaves_time_for_others() {
    const SESSIONS: usize = 3_000;
    let folder = Folder::new();
    let file = folder.path().join("tokens");
    let write = |lines: &[&str]| {
        let mut options = OpenOptions::new();
        let mut file = options.mode(0o600).create(true).write(true).truncate(true).open(&file);
        file.as_mut().expect("a file").write_all(lines.join("\n").as_bytes()).expect("written");
    };
    let (abuser, bystander) = (format!("abuser:{ABUSER}"), format!("bystander:{BYSTANDER}"));
    write(&[&abuser, &bystander]);
    let service = Running::with(|config| {
        with_tenants(config);
        config.access = Access::from_file(&file).expect("tokens");
        config.limits.reload_interval = Duration::from_millis(10);
    });
    let watching = Bystander::watch(service.tcp());
    abandon_sessions(service.tcp(), SESSIONS, r#"{"hello":{}}"#);
    write(&[&bystander]);
    await_end_of_sessions(&service, SESSIONS / 10);
    watching.served_well();
}

#[test]
fn sessions_whose_leases_lapse_at_one_moment_leave_time_for_others() {
    const SESSIONS: usize = 1_000;
    let service = Running::with(with_tenants);
    let bystander = Bystander::watch(service.tcp());
    let hello = r#"{"hello":{"lease-ms":1000}}"#;
    abandon_sessions(service.tcp(), SESSIONS, hello);
    await_end_of_sessions(&service, SESSIONS / 10);
    bystander.served_well();
}
