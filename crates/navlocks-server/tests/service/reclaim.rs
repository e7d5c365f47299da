//! How sessions go on with their locks when their service is started again.

use std::os::unix::net::UnixListener;
use std::time::{Duration, Instant};

use navlocks_server::Config;
use navlocks_wire::{Cause, FaultCode, Lost, Reply, RequestKey, ToClient, Unclaimed, Welcome};

use crate::client::{Client, resumption, tcp_stream, unix_stream};
use crate::running::{Folder, Running};

fn short_leases(config: &mut Config) {
    config.limits.lease_min = Duration::from_millis(50);
    config.limits.lease_default = Duration::from_millis(300);
}

fn restart(service: Running) -> Running {
    Running::again(service.kill(), |_| {})
}

fn request(id: u64, name: &str) -> String {
    format!(r#"{{"request":{{"id":{id},"names":["{name}"]}}}}"#)
}

fn lost(id: u64, cause: Cause) -> ToClient {
    ToClient::Lost(Lost::new(id, cause))
}

/// Returns the sessions that a service waits for.
fn recovery(client: &mut Client) -> Vec<Unclaimed> {
    client.say(r#"{"ask":{"id":90,"question":"recovery"}}"#);
    match client.hear() {
        ToClient::Answer(answer) => match answer.reply {
            Reply::Recovery(sessions) => sessions,
            other => panic!("another answer: {other:?}"),
        },
        other => panic!("no answer: {other:?}"),
    }
}

/// A holder of `a` whose service was killed and started again.
fn orphaned() -> (Running, Welcome, u64, Client) {
    let service = Running::start();
    let (mut holder, welcome) = Client::unix_welcome(service.unix());
    let token = holder.hold(1, "a");
    (restart(service), welcome, token, holder)
}

#[test]
fn held_lock_is_kept_over_a_kill_and_its_token_with_it() {
    let (service, welcome, token, _) = orphaned();
    let mut other = Client::unix(service.unix());
    other.say_all([request(1, "a"), request(2, "b")]);
    // A name that no earlier session has is free at once.
    other.granted(2);
    let held = format!(r#""id":1,"names":["a"],"token":{token}"#);
    let mut holder = Client::claim(service.unix(), &welcome, &[&held]);
    holder.settle();
    assert_eq!(recovery(&mut other), []);
    holder.say(r#"{"release":1}"#);
    assert!(other.granted(1) > token);
}

#[test]
fn ages_of_locks_and_waiters_are_kept_over_a_kill() {
    const MINUTE_MS: u64 = 60_000;
    const YEAR_MS: u64 = 366 * 24 * 60 * MINUTE_MS;
    let service = Running::start();
    let (mut holder, holders) = Client::unix_welcome(service.unix());
    let token = holder.hold(1, "a");
    let (mut waiter, waiters) = Client::unix_welcome(service.unix());
    waiter.say(request(1, "a"));
    waiter.settle();
    let service = restart(service);
    let held = format!(r#""id":1,"names":["a"],"token":{token},"ms":{MINUTE_MS}"#);
    let mut holder = Client::claim(service.unix(), &holders, &[&held]);
    let waiting = format!(r#""id":1,"names":["a"],"ms":{}"#, u64::MAX >> 11);
    let mut waiter = Client::claim(service.unix(), &waiters, &[&waiting]);
    waiter.settle();
    holder.say(r#"{"ask":{"id":1,"question":"query"}}"#);
    let ToClient::Answer(answer) = holder.hear() else { panic!("not an answer") };
    let Reply::Snapshot { held, pending } = answer.reply else { panic!("no snapshot") };
    assert!((MINUTE_MS..2 * MINUTE_MS).contains(&held[0].ms), "{held:?}");
    // An age that cannot be is bounded.
    assert!((MINUTE_MS..YEAR_MS).contains(&pending[0].ms), "{pending:?}");
}

#[test]
fn waiters_keep_their_order_over_a_kill() {
    let service = Running::start();
    let mut clients: Vec<(Client, Welcome)> =
        (0..6).map(|_| Client::unix_welcome(service.unix())).collect();
    let token = clients[0].0.hold(1, "a");
    for (client, _) in &mut clients[1..] {
        client.say(request(1, "a"));
        client.settle();
    }
    let service = restart(service);
    // The successor hears of them in another order, with a stranger in between.
    let mut last = Client::unix(service.unix());
    last.say(request(1, "a"));
    last.settle();
    let claim =
        |number: usize, text: &str| Client::claim(service.unix(), &clients[number].1, &[text]);
    let waiting = r#""id":1,"names":["a"]"#;
    let mut waiters: Vec<(usize, Client)> =
        [5, 3, 1, 2, 4].into_iter().map(|number| (number, claim(number, waiting))).collect();
    let mut holder = claim(0, &format!(r#"{waiting},"token":{token}"#));
    holder.say(r#"{"release":1}"#);
    waiters.sort_by_key(|(number, _)| *number);
    let mut largest = token;
    for (_, waiter) in &mut waiters {
        let token = waiter.granted(1);
        assert!(token > largest);
        largest = token;
        waiter.say(r#"{"release":1}"#);
    }
    assert!(last.granted(1) > largest);
}

#[test]
fn waiter_that_does_not_come_back_holds_back_only_later_requests() {
    let service = Running::start();
    let mut clients: Vec<(Client, Welcome)> =
        (0..3).map(|_| Client::unix_welcome(service.unix())).collect();
    let token = clients[0].0.hold(1, "a");
    for (client, _) in &mut clients[1..] {
        client.say(request(1, "a"));
        client.settle();
    }
    let service = restart(service);
    let waiting = r#""id":1,"names":["a"]"#;
    let held = format!(r#"{waiting},"token":{token}"#);
    let mut holder = Client::claim(service.unix(), &clients[0].1, &[&held]);
    let mut first = Client::claim(service.unix(), &clients[1].1, &[waiting]);
    let mut other = Client::unix(service.unix());
    other.say(request(1, "a"));
    holder.say(r#"{"release":1}"#);
    // The second waiter has not come back, and was behind the first one in any case.
    first.granted(1);
    first.say(r#"{"release":1}"#);
    first.settle();
    other.settle();
    let mut second = Client::claim(service.unix(), &clients[2].1, &[waiting]);
    second.granted(1);
    second.say(r#"{"release":1}"#);
    other.granted(1);
}

#[test]
fn grant_that_got_lost_with_the_service_is_told_again() {
    let service = Running::start();
    let (mut holder, welcome) = Client::unix_welcome(service.unix());
    let token = holder.hold(1, "a");
    let service = restart(service);
    // The client has not read the grant.
    let mut holder = Client::claim(service.unix(), &welcome, &[r#""id":1,"names":["a"]"#]);
    assert_eq!(holder.granted(1), token);
}

#[test]
fn request_that_is_not_claimed_is_released() {
    let (service, welcome, ..) = orphaned();
    let mut other = Client::unix(service.unix());
    other.say(request(1, "a"));
    let _idle = Client::claim(service.unix(), &welcome, &[]);
    other.granted(1);
}

#[test]
fn claims_that_cannot_be_right_are_refused() {
    let (service, welcome, token, _) = orphaned();
    let strange = Welcome { secret: "AAAAAAAAAAAAAAAAAAAAAA".into(), ..welcome.clone() };
    let unknown = Welcome { session: 99, ..welcome.clone() };
    let later = Welcome { epoch: welcome.epoch + 9, ..welcome.clone() };
    for earlier in [&strange, &unknown, &later] {
        let mut client = Client::silent(unix_stream(service.unix()));
        client.say(resumption(earlier));
        assert_eq!(client.error().0, FaultCode::UnknownSession);
    }
    // Another party cannot have it, though it knows the secret.
    let mut remote = Client::resume(service.tcp(), &welcome);
    assert_eq!(remote.error().0, FaultCode::UnknownSession);
    // A token that was never given, and names that were never held.
    let (wrong, other) = (token + 1, format!(r#""id":2,"names":["b"],"token":{token}"#));
    let wrong = format!(r#""id":1,"names":["a"],"token":{wrong}"#);
    let mut client = Client::claim(service.unix(), &welcome, &[&wrong, &other]);
    assert_eq!(client.hear(), lost(1, Cause::NotReclaimed));
    assert_eq!(client.hear(), lost(2, Cause::NotReclaimed));
    client.hold(3, "a");
}

#[test]
fn half_of_a_scope_is_not_claimed() {
    let service = Running::start();
    let (mut holder, welcome) = Client::unix_welcome(service.unix());
    holder.say(r#"{"request":{"id":1,"names":["a","b","c"]}}"#);
    let token = holder.granted(1);
    let service = restart(service);
    let half = format!(r#""id":1,"names":["a","b"],"token":{token}"#);
    let mut holder = Client::claim(service.unix(), &welcome, &[&half]);
    assert_eq!(holder.hear(), lost(1, Cause::NotReclaimed));
    holder.say(r#"{"request":{"id":2,"names":["a","b","c"],"wait":"if-available"}}"#);
    holder.granted(2);
}

#[test]
fn stolen_lock_cannot_be_claimed_and_the_thief_keeps_it() {
    let service = Running::start();
    let (mut victim, victims) = Client::unix_welcome(service.unix());
    let (mut thief, thiefs) = Client::unix_welcome(service.unix());
    let old = victim.hold(1, "a");
    thief.say(r#"{"request":{"id":1,"names":["a"],"wait":"steal"}}"#);
    let token = thief.granted(1);
    // The victim has not read of it when the service is killed, twice.
    let service = restart(restart(service));
    let held = format!(r#""id":1,"names":["a"],"token":{old}"#);
    let mut victim = Client::claim(service.unix(), &victims, &[&held]);
    let by = RequestKey::new(thiefs.session, 1);
    assert_eq!(victim.hear(), lost(1, Cause::Stolen(by)));
    // The thief has not read of its grant, and does not steal a second time.
    let stolen = r#""id":1,"names":["a"],"wait":"steal""#;
    let mut thief = Client::claim(service.unix(), &thiefs, &[stolen]);
    assert_eq!(thief.granted(1), token);
    // Told once: the note of the victim is taken.
    victim.say(r#"{"release":1}"#);
    victim.settle();
}

#[test]
fn steal_and_forced_release_get_past_a_session_that_does_not_come_back() {
    let service = Running::start();
    let (mut holder, welcome) = Client::unix_welcome(service.unix());
    let (a, b) = (holder.hold(1, "a"), holder.hold(2, "b"));
    let c = holder.hold(3, "c");
    let service = restart(service);
    let mut other = Client::unix(service.unix());
    assert_eq!(
        recovery(&mut other),
        [Unclaimed {
            session: welcome.session,
            pid: Some(std::process::id()),
            left_ms: None,
            held: 3
        }]
    );
    other.say_all([request(1, "b"), request(2, "c")]);
    other.say(r#"{"request":{"id":3,"names":["a"],"wait":"steal"}}"#);
    assert!(other.granted(3) > c);
    other.say(r#"{"ask":{"id":1,"question":{"force-release":"b"}}}"#);
    other.granted(1);
    assert!(matches!(other.hear(), ToClient::Answer(answer) if answer.reply == Reply::Released(1)));
    let held = [(1, "a", a), (2, "b", b), (3, "c", c)]
        .map(|(id, name, token)| format!(r#""id":{id},"names":["{name}"],"token":{token}"#));
    let held: Vec<&str> = held.iter().map(String::as_str).collect();
    let mut holder = Client::claim(service.unix(), &welcome, &held);
    let own = recovery(&mut other);
    assert_eq!(own, []);
    assert!(matches!(holder.hear(), ToClient::Lost(Lost { id: 1, cause: Cause::Stolen(_), .. })));
    assert_eq!(holder.hear(), lost(2, Cause::ForceReleased));
    holder.say(r#"{"release":3}"#);
    other.granted(2);
}

#[test]
fn steal_of_all_frees_the_other_names_of_the_waiters_that_it_takes_away() {
    let (service, _welcome, _token, _holder) = orphaned();
    let (mut other, mut thief) = (Client::unix(service.unix()), Client::unix(service.unix()));
    other.say(r#"{"request":{"id":1,"names":["a","b"]}}"#);
    other.say(request(2, "b"));
    other.settle();
    thief.say(r#"{"request":{"id":1,"names":["a"],"wait":"steal-all"}}"#);
    thief.granted(1);
    assert!(matches!(other.hear(), ToClient::Lost(Lost { id: 1, cause: Cause::Stolen(_), .. })));
    other.granted(2);
}

#[test]
fn if_available_waits_until_it_is_known_whether_the_lock_is_free() {
    let (service, welcome, token, _) = orphaned();
    let mut other = Client::unix(service.unix());
    let asks =
        |id: u64| format!(r#"{{"request":{{"id":{id},"names":["a"],"wait":"if-available"}}}}"#);
    other.say(asks(1));
    other.settle();
    let held = format!(r#""id":1,"names":["a"],"token":{token}"#);
    let mut holder = Client::claim(service.unix(), &welcome, &[&held]);
    assert_eq!(other.hear(), ToClient::Unavailable(1));
    holder.say(r#"{"release":1}"#);
    holder.settle();
    other.say(asks(2));
    other.granted(2);
}

#[test]
fn readers_do_not_wait_for_a_reader_that_does_not_come_back() {
    let service = Running::start();
    let mut reader = Client::unix(service.unix());
    reader.say(r#"{"request":{"id":1,"names":["a"],"mode":"shared"}}"#);
    reader.granted(1);
    let service = restart(service);
    let mut other = Client::unix(service.unix());
    other.say(r#"{"request":{"id":1,"names":["a"],"mode":"shared"}}"#);
    other.granted(1);
    other
        .say_all([request(2, "a"), r#"{"request":{"id":3,"names":["a"],"mode":"shared"}}"#.into()]);
    // Neither a writer, nor a reader behind it.
    other.settle();
    drop(reader);
}

#[test]
fn claim_that_breaks_off_counts_for_nothing_and_can_be_made_again() {
    let (service, welcome, token, _) = orphaned();
    let mut half = Client::silent(unix_stream(service.unix()));
    half.say(resumption(&welcome));
    half.welcome();
    half.settle();
    drop(half);
    // A service that is killed meanwhile forgets nothing either.
    let service = restart(service);
    let mut other = Client::unix(service.unix());
    other.say(request(1, "a"));
    other.settle();
    let held = format!(r#""id":1,"names":["a"],"token":{token}"#);
    let mut holder = Client::claim(service.unix(), &welcome, &[&held]);
    holder.say(r#"{"release":1}"#);
    other.granted(1);
}

#[test]
fn stranger_does_not_end_the_claim_of_a_session_that_it_names() {
    let (service, welcome, token, _) = orphaned();
    let mut holder = Client::silent(unix_stream(service.unix()));
    holder.say(resumption(&welcome));
    holder.welcome();
    // It knows the number, and not the secret; then the secret, and is of another party.
    let strange = Welcome { secret: "AAAAAAAAAAAAAAAAAAAAAA".into(), ..welcome.clone() };
    let mut stranger = Client::silent(unix_stream(service.unix()));
    stranger.say(resumption(&strange));
    assert_eq!(stranger.error().0, FaultCode::UnknownSession);
    let mut other_party = Client::resume(service.tcp(), &welcome);
    assert_eq!(other_party.error().0, FaultCode::UnknownSession);
    holder.name_all(&[&format!(r#""id":1,"names":["a"],"token":{token}"#)]);
    holder.settle();
    let mut other = Client::unix(service.unix());
    other.say(request(1, "a"));
    other.settle();
    holder.say(r#"{"release":1}"#);
    other.granted(1);
}

#[test]
fn held_lock_of_a_client_that_cannot_be_opened_again_is_lost() {
    let service = Running::start();
    let (mut holder, welcome) = Client::unix_welcome(service.unix());
    holder.say(r#"{"open":{"client":1}}"#);
    holder.say(r#"{"request":{"id":1,"client":1,"names":["a"]}}"#);
    let token = holder.granted(1);
    let service =
        Running::again(service.kill(), |config| config.limits.clients_per_session_max = 1);
    let mut holder = Client::silent(unix_stream(service.unix()));
    holder.say(resumption(&welcome));
    holder.welcome();
    holder.say_all([
        r#"{"open":{"client":0}}"#.to_owned(),
        r#"{"open":{"client":1}}"#.to_owned(),
        format!(r#"{{"request":{{"id":1,"client":1,"names":["a"],"token":{token}}}}}"#),
        r#""claimed""#.to_owned(),
    ]);
    assert_eq!(holder.hear(), lost(1, Cause::NotReclaimed));
    Client::unix(service.unix()).hold(1, "a");
}

#[test]
fn newer_connection_takes_a_claim_over_and_the_older_one_is_told() {
    let (service, welcome, token, _) = orphaned();
    let mut older = Client::silent(unix_stream(service.unix()));
    older.say(resumption(&welcome));
    older.welcome();
    let held = format!(r#""id":1,"names":["a"],"token":{token}"#);
    let mut newer = Client::claim(service.unix(), &welcome, &[&held]);
    assert_eq!(older.error().0, FaultCode::Replaced);
    newer.settle();
}

#[test]
fn release_and_bye_that_cross_a_claim_count() {
    let (service, welcome, token, _) = orphaned();
    let mut other = Client::unix(service.unix());
    other.say(request(1, "a"));
    let mut holder = Client::silent(unix_stream(service.unix()));
    holder.say(resumption(&welcome));
    holder.welcome();
    holder.say_all([
        r#"{"open":{"client":0}}"#.into(),
        format!(r#"{{"request":{{"id":1,"names":["a"],"token":{token}}}}}"#),
        r#"{"release":1}"#.into(),
        r#""claimed""#.into(),
    ]);
    other.granted(1);
    holder.settle();

    let (service, welcome, ..) = orphaned();
    let mut other = Client::unix(service.unix());
    other.say(request(1, "a"));
    let mut holder = Client::silent(unix_stream(service.unix()));
    holder.say(resumption(&welcome));
    holder.say(r#""bye""#);
    other.granted(1);
}

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
    let service = Running::start();
    let (mut gone, _) = Client::tcp(service.tcp());
    gone.hold(1, "a");
    let mut service = restart(service);
    drop(gone);
    let left = |service: &Running| {
        let mut client = Client::unix(service.unix());
        let asked = Instant::now();
        let left = recovery(&mut client)[0].left_ms.expect("a lease");
        (asked + Duration::from_millis(left), Instant::now() + Duration::from_millis(left))
    };
    let (_, latest) = left(&service);
    let begin = Instant::now();
    for _ in 0..5 {
        service = restart(service);
    }
    let restarts = begin.elapsed();
    let (earliest, _) = left(&service);
    // Both are the end of one lease. A lease that begins anew ends later by all the restarts.
    assert!(earliest <= latest + restarts / 2, "{:?} of {restarts:?}", earliest - latest);
}

#[test]
fn lease_of_a_claim_that_breaks_off_counts_from_its_last_message() {
    let service = Running::with(short_leases);
    let (mut holder, welcome) = Client::tcp(service.tcp());
    let token = holder.hold(1, "a");
    let lease = Duration::from_millis(welcome.lease_ms.expect("a lease"));
    let begin = Instant::now();
    let service = Running::again(service.kill(), short_leases);
    let mut other = Client::unix(service.unix());
    other.say(request(1, "a"));
    // A client that was welcomed counts its lease from its hello, whatever becomes of its claim.
    while begin.elapsed() < lease * 3 / 4 {
        std::thread::yield_now();
    }
    let mut half = Client::resume(service.tcp(), &welcome);
    assert!(half.welcome().resumed);
    let heard = Instant::now();
    half.settle();
    drop(half);
    assert!(other.granted(1) > token);
    assert!(heard.elapsed() >= lease);
}

#[test]
fn session_over_tcp_claims_within_its_lease() {
    let service = Running::start();
    let (mut holder, welcome) = Client::tcp(service.tcp());
    let token = holder.hold(1, "a");
    let service = restart(service);
    let mut other = Client::unix(service.unix());
    other.say(request(1, "a"));
    let mut holder = Client::silent(tcp_stream(service.tcp()));
    holder.claims(&welcome, &[&format!(r#""id":1,"names":["a"],"token":{token}"#)]);
    holder.settle();
    holder.say(r#"{"release":1}"#);
    assert!(other.granted(1) > token);
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
