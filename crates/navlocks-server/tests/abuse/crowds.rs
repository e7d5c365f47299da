//! Crowds: steps that concern a hundred thousand requests, and thousands of connections.

use navlocks_wire::{ToClient, Welcome};

use crate::client::Client;
use crate::trials::{ABUSER, Bystander, Process, connect, join};

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

#[test]
fn grant_to_a_hundred_thousand_waiters_leaves_time_for_others() {
    let service = Process::start();
    let bystander = Bystander::watch(service.tcp);
    let (mut holder, _) = join(service.tcp, ABUSER);
    let (mut waiter, _) = join(service.tcp, ABUSER);
    holder.hold(1, "a");
    request_many(&mut waiter, "shared", |_| "a".into());
    waiter.settle();
    holder.say(r#"{"release":1}"#);
    hear_grants(&mut waiter);
    bystander.served_well();
}

#[test]
fn end_of_a_session_with_a_hundred_thousand_heirs_leaves_time_for_others() {
    let service = Process::start();
    let bystander = Bystander::watch(service.tcp);
    let (mut holder, _) = join(service.tcp, ABUSER);
    let (mut heir, _) = join(service.tcp, ABUSER);
    request_many(&mut holder, "exclusive", |id| id.to_string());
    hear_grants(&mut holder);
    request_many(&mut heir, "exclusive", |id| id.to_string());
    heir.settle();
    holder.say("\"bye\"");
    hear_grants(&mut heir);
    bystander.served_well();
}

#[test]
fn end_of_a_session_with_thousands_of_clients_leaves_time_for_others() {
    const CLIENTS: u64 = 9_000;
    let service = Process::start();
    let bystander = Bystander::watch(service.tcp);
    let (mut holder, _) = join(service.tcp, ABUSER);
    let (mut heir, _) = join(service.tcp, ABUSER);
    holder.say_all((1..=CLIENTS).map(|client| format!(r#"{{"open":{{"client":{client}}}}}"#)));
    for first in (1..=WAITERS).step_by(1000) {
        holder.say_all((first..first + 1000).map(|id| {
            let client = id % CLIENTS + 1;
            format!(r#"{{"request":{{"id":{id},"client":{client},"names":["{id}"]}}}}"#)
        }));
    }
    hear_grants(&mut holder);
    request_many(&mut heir, "exclusive", |id| id.to_string());
    heir.settle();
    holder.say("\"bye\"");
    hear_grants(&mut heir);
    bystander.served_well();
}

#[test]
fn resume_that_gives_up_a_hundred_thousand_requests_leaves_time_for_others() {
    let service = Process::start();
    let bystander = Bystander::watch(service.tcp);
    let (mut holder, Welcome { session, secret, .. }) = join(service.tcp, ABUSER);
    let (mut heir, _) = join(service.tcp, ABUSER);
    request_many(&mut holder, "exclusive", |id| id.to_string());
    hear_grants(&mut holder);
    request_many(&mut heir, "exclusive", |id| id.to_string());
    heir.settle();
    drop(holder);
    let mut holder = connect(service.tcp, ABUSER);
    holder.say(format!(
        r#"{{"hello":{{"version":1,"resume":{{"session":{session},"secret":"{secret}","clients":[{{"client":0}}],"alive":[]}}}}}}"#
    ));
    assert!(holder.welcome().resumed);
    hear_grants(&mut heir);
    bystander.served_well();
}

#[test]
fn thousands_of_connections_are_served_beside_others() {
    // With `./test soak`, as many as the open files of most systems allow.
    let soaks = std::env::var_os("NAVLOCKS_SOAK").is_some();
    let count = if soaks { 10_000 } else { 1_000 };
    let service = Process::start();
    let bystander = Bystander::watch(service.tcp);
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
        client.say(r#"{"release":1}"#);
    }
    bystander.served_well();
}
