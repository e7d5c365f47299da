//! Sessions of an earlier service: how long they are waited for.

use std::os::unix::net::UnixListener;
use std::time::{Duration, Instant};

use navlocks_wire::{FaultCode, Welcome};

use super::{orphaned, recovery, request, restart, short_leases};
use crate::client::{Client, resumption, unix_stream};
use crate::running::{Folder, Running};

#[test]
fn session_without_a_claim_is_over_when_its_lease_has_passed() {
    let service = Running::with(short_leases);
    let (mut holder, welcome) = Client::tcp(service.tcp());
    holder.hold(1, "a");
    let lease = Duration::from_millis(welcome.lease_ms.expect("a lease"));
    let folder = service.kill();
    // A shorter lease in the configuration shortens none that was given.
    let begin = Instant::now();
    let service = Running::again(folder, |config| {
        config.limits.lease_min = Duration::from_millis(10);
        config.limits.lease_default = Duration::from_millis(10);
    });
    let mut other = Client::unix(service.unix());
    other.say_all([request(1, "a"), request(2, "b")]);
    other.granted(2);
    other.granted(1);
    assert!(begin.elapsed() >= lease);
    let mut late = Client::resume(service.tcp(), &welcome);
    assert_eq!(late.error().0, FaultCode::UnknownSession);
}

#[test]
fn services_killed_in_turn_wait_for_one_lease_in_all() {
    /// More than a service takes from its start to its first answer.
    const WAITED_MS: u64 = 500;
    let service = Running::start();
    let (mut gone, _) = Client::tcp(service.tcp());
    gone.hold(1, "a");
    let mut service = restart(service);
    drop(gone);
    let left = |asker: &mut Client| recovery(asker)[0].left_ms.expect("a lease");
    let mut asker = Client::unix(service.unix());
    let first = left(&mut asker);
    let mut before = first;
    while before > first - WAITED_MS {
        before = left(&mut asker);
    }
    // A lease that begins anew is longer again.
    for _ in 0..5 {
        service = restart(service);
        let now = left(&mut Client::unix(service.unix()));
        assert!(now <= before, "{now} ms, and {before} ms before");
        before = now;
    }
}

/// A holder that listens at its path of presence.
fn present(service: &Running) -> (Client, Welcome, u64, UnixListener) {
    let (mut holder, welcome) = Client::unix_welcome(service.unix());
    let path = welcome.presence.clone().expect("a path of presence");
    let listener = UnixListener::bind(path).expect("the folder is there");
    holder.say(r#""present""#);
    let token = holder.hold(1, "a");
    (holder, welcome, token, listener)
}

#[test]
fn session_lives_as_long_as_a_process_is_present() {
    for killed in [false, true] {
        let mut service = Running::start();
        let (holder, _, _, listener) = present(&service);
        // The connection goes, with the service or without it.
        if killed {
            service = restart(service);
        }
        drop(holder);
        let mut other = Client::unix(service.unix());
        other.say(request(1, "a"));
        other.settle();
        let inherited = listener.try_clone().expect("a copy for a child");
        drop(listener);
        other.settle();
        drop(inherited);
        other.granted(1);
    }
}

#[test]
fn present_session_goes_on_over_another_connection() {
    let service = Running::start();
    let (holder, welcome, token, _listener) = present(&service);
    drop(holder);
    let mut holder = Client::silent(unix_stream(service.unix()));
    holder.say(resumption(&welcome));
    let again = holder.welcome();
    assert!(again.resumed);
    holder.name_all(&[r#""id":1,"names":["a"]"#]);
    assert_eq!(holder.granted(1), token);
}

#[test]
fn service_that_ends_in_good_order_leaves_its_sessions_to_the_next() {
    let service = Running::start();
    let (mut holder, welcome) = Client::unix_welcome(service.unix());
    let token = holder.hold(1, "a");
    let folder = service.end();
    assert_eq!(holder.error().0, FaultCode::ShuttingDown);
    let service = Running::again(folder, |_| {});
    let held = format!(r#""id":1,"names":["a"],"token":{token}"#);
    let mut holder = Client::claim(service.unix(), &welcome, &[&held]);
    holder.settle();
    holder.leave();
    let folder = service.end();
    let state = std::fs::read_to_string(folder.path().join("state/service.json")).unwrap();
    assert!(state.contains(r#""clean":true"#), "{state}");
}

#[test]
fn numbers_of_sessions_that_may_come_back_are_not_given_again() {
    let (service, welcome, ..) = orphaned();
    let (_, other) = Client::unix_welcome(service.unix());
    assert!(other.session > welcome.session);
}

#[test]
fn service_without_a_state_folder_promises_nothing_beyond_its_end() {
    let service = Running::try_start(Folder::new(), |config| config.state_dir = None);
    let service = service.expect("it starts");
    let (_, welcome) = Client::unix_welcome(service.unix());
    assert_eq!((welcome.secret.as_str(), welcome.presence), ("", None));
}
