//! The state that a service keeps for the one after it.

use std::time::{Duration, Instant};

use navlocks_server::Config;
use navlocks_wire::{FaultCode, Over, Reply, ToClient};

use crate::client::Client;
use crate::running::{Folder, Running};

fn state(folder: &Folder) -> String {
    let path = folder.path().join("state/service.json");
    std::fs::read_to_string(path).expect("the service has written its state")
}

fn write_state(folder: &Folder, text: &str) {
    let state = folder.path().join("state");
    std::fs::create_dir_all(&state).expect("a folder");
    std::fs::write(state.join("service.json"), text).expect("a file");
}

fn short_leases(config: &mut Config) {
    config.limits.lease_min = Duration::from_millis(50);
    config.limits.lease_default = Duration::from_millis(300);
    config.limits.lease_max = Duration::from_millis(400);
}

#[test]
fn f134_tokens_of_a_new_service_are_larger() {
    let service = Running::start();
    let mut client = Client::unix(service.unix());
    let token = client.hold(1, "a");
    client.leave();
    let mut folder = service.end();
    assert!(state(&folder).contains(r#""clean":true"#));
    let mut largest = token;
    for kill in [true, false] {
        let service = Running::again(folder, |_| {});
        let mut client = Client::unix(service.unix());
        let token = client.hold(1, "a");
        assert!(token > largest);
        largest = token;
        client.leave();
        folder = if kill { service.kill() } else { service.end() };
    }
}

#[test]
fn tokens_grow_although_the_clock_was_set_back() {
    let folder = Folder::new();
    let ahead = 1_u64 << 52;
    write_state(
        &folder,
        &format!(r#"{{"version":2,"clean":true,"tokens-reserved-to":{ahead},"lease-ms-max":0}}"#),
    );
    let service = Running::again(folder, |_| {});
    assert!(Client::unix(service.unix()).hold(1, "a") > ahead);
}

#[test]
fn a_partition_that_comes_again_repeats_no_token() {
    let service = Running::start();
    let token = Client::unix(service.unix()).hold(1, "a");
    // The partition went with its last client.
    assert!(Client::unix(service.unix()).hold(1, "a") > token);
}

#[test]
fn tokens_that_would_not_fit_a_javascript_number_are_refused() {
    let folder = Folder::new();
    write_state(
        &folder,
        r#"{"version":2,"clean":true,"tokens-reserved-to":9007199254740991,"lease-ms-max":0}"#,
    );
    let Err(error) = Running::try_start(folder, |_| {}) else { panic!("it started") };
    assert!(error.to_string().contains("9007199254740992"), "{error}");
}

/// Takes the tables away, as the end of the machine does.
fn lose_tables(folder: &Folder) {
    for table in ["sessions.table", "requests.table"] {
        std::fs::remove_file(folder.path().join("state").join(table)).expect("it was there");
    }
}

#[test]
fn without_the_tables_nothing_is_granted_for_the_longest_lease() {
    let service = Running::with(short_leases);
    let (mut holder, welcome) = Client::tcp(service.tcp());
    holder.hold(1, "a");
    let lease = Duration::from_millis(welcome.lease_ms.expect("a lease"));
    let folder = service.kill();
    lose_tables(&folder);
    let begin = Instant::now();
    let service = Running::again(folder, short_leases);
    // A claim that the service cannot judge is refused.
    let mut claim = Client::resume(service.tcp(), &welcome);
    assert_eq!(claim.error().0, FaultCode::UnknownSession);
    let mut client = Client::unix(service.unix());
    client.say_all([
        r#"{"request":{"id":1,"names":["a"],"tag":"first"}}"#,
        r#"{"request":{"id":2,"names":["a"],"wait":"if-available"}}"#,
        r#"{"request":{"id":3,"names":["a"]}}"#,
        r#"{"request":{"id":4,"names":["a"]}}"#,
        r#"{"end":3}"#,
        r#"{"ask":{"id":1,"question":{"locks":"partition"}}}"#,
    ]);
    let ToClient::Answer(answer) = client.hear() else { panic!("granted before its time") };
    let Reply::Locks { held, pending } = answer.reply else { panic!("no snapshot") };
    let numbers: Vec<u64> = pending.iter().map(|info| info.about.request.request).collect();
    assert_eq!((held.len(), numbers), (0, vec![1, 2, 4]));
    // A client that leaves meanwhile takes its requests with it.
    let mut left = Client::unix(service.unix());
    left.say(r#"{"request":{"id":1,"names":["b"]}}"#);
    left.settle();
    drop(left);
    client.granted(1);
    assert!(begin.elapsed() >= lease);
    assert_eq!(client.hear(), ToClient::Over(Over::unavailable(2)));
    client.say(r#"{"request":{"id":5,"names":["b"],"wait":"if-available"}}"#);
    client.granted(5);
    client.say(r#"{"end":1}"#);
    client.granted(4);
}

/// Removes the state folder of a service that a client over TCP has a lock of. Returns its lease.
fn forgotten_holder() -> (Folder, Duration) {
    let service = Running::with(short_leases);
    let (mut holder, welcome) = Client::tcp(service.tcp());
    holder.hold(1, "a");
    let folder = service.kill();
    std::fs::remove_dir_all(folder.path().join("state")).expect("it was there");
    (folder, Duration::from_millis(welcome.lease_ms.expect("a lease")))
}

fn short_leases_and_not_fresh(config: &mut Config) {
    short_leases(config);
    config.fresh = false;
}

#[test]
fn without_the_state_folder_nothing_is_granted_for_the_longest_lease() {
    let (folder, lease) = forgotten_holder();
    let begin = Instant::now();
    let service = Running::again(folder, short_leases_and_not_fresh);
    let mut client = Client::unix(service.unix());
    client.say(r#"{"ask":{"id":1,"question":"place"}}"#);
    let text = client.hear_text();
    assert!(text.contains("no record of an earlier service") && text.contains("--fresh"), "{text}");
    client.hold(1, "a");
    assert!(begin.elapsed() >= lease);
}

#[test]
fn service_that_ends_while_it_waits_for_unknown_clients_leaves_the_wait_to_the_next() {
    for end in [Running::end, Running::kill] {
        let (folder, lease) = forgotten_holder();
        let folder = end(Running::again(folder, short_leases_and_not_fresh));
        let begin = Instant::now();
        let service = Running::again(folder, short_leases_and_not_fresh);
        Client::unix(service.unix()).hold(1, "a");
        assert!(begin.elapsed() >= lease);
    }
}

/// Their leases are an hour, so a service that waits would exceed the time limit of the test.
#[test]
fn fresh_service_and_one_without_tcp_grant_at_once_without_a_record() {
    let long = |config: &mut Config| {
        config.limits.lease_max = Duration::from_secs(3_600);
        config.fresh = false;
    };
    let hold = |service: Running| {
        let mut client = Client::unix(service.unix());
        client.hold(1, "a");
        client.leave();
        service
    };
    hold(Running::with(|config| {
        long(config);
        config.tcp.clear();
    }));
    // A user who reads of the wait and starts again with --fresh has a record by then.
    for end in [Running::end, Running::kill] {
        let folder = end(Running::with(long));
        let folder = hold(Running::again(folder, |config| {
            long(config);
            config.fresh = true;
        }))
        .kill();
        hold(Running::again(folder, long));
    }
}

#[test]
fn fresh_service_waits_for_clients_whose_records_were_lost() {
    let service = Running::with(short_leases);
    let (mut holder, welcome) = Client::tcp(service.tcp());
    holder.hold(1, "a");
    let lease = Duration::from_millis(welcome.lease_ms.expect("a lease"));
    let folder = service.kill();
    lose_tables(&folder);
    let folder = Running::again(folder, short_leases).end();
    let begin = Instant::now();
    let service = Running::again(folder, short_leases);
    Client::unix(service.unix()).hold(1, "a");
    assert!(begin.elapsed() >= lease);
}

#[test]
fn a_second_crash_without_the_tables_begins_the_wait_anew() {
    let service = Running::with(short_leases);
    let (mut holder, welcome) = Client::tcp(service.tcp());
    holder.hold(1, "a");
    let lease = Duration::from_millis(welcome.lease_ms.expect("a lease"));
    let folder = service.kill();
    lose_tables(&folder);
    let folder = Running::again(folder, short_leases).kill();
    let begin = Instant::now();
    let service = Running::again(folder, short_leases);
    Client::unix(service.unix()).hold(1, "a");
    assert!(begin.elapsed() >= lease);
}

#[test]
fn a_crash_during_that_time_does_not_shorten_it() {
    let folder = Folder::new();
    write_state(
        &folder,
        r#"{"version":2,"clean":false,"tokens-reserved-to":1,"lease-ms-max":60000}"#,
    );
    let folder = Running::again(folder, |_| {}).kill();
    assert!(state(&folder).contains(r#""lease-ms-max":60000"#));
}

#[test]
fn an_unclean_end_without_sessions_holds_nobody_up() {
    let service = Running::start();
    let mut client = Client::unix(service.unix());
    client.hold(1, "a");
    client.leave();
    let folder = service.kill();
    assert!(state(&folder).contains(r#""clean":false"#));
    assert!(state(&folder).contains(r#""lease-ms-max":0"#));
    let service = Running::again(folder, |_| {});
    Client::unix(service.unix()).hold(1, "a");
}

#[test]
fn an_unreadable_state_file_is_put_aside_and_taken_as_unclean() {
    for text in ["", "{", "\0\0\0", r#"{"version":2}"#, r#"{"clean":true}"#] {
        let folder = Folder::new();
        write_state(&folder, text);
        let begin = Instant::now();
        let service = Running::again(folder, short_leases);
        Client::unix(service.unix()).hold(1, "a");
        assert!(begin.elapsed() >= Duration::from_millis(400), "{text:?}");
        let kept = service.folder().join("state/service.json.bad");
        assert_eq!(std::fs::read_to_string(kept).unwrap(), text);
    }
}

#[test]
fn state_folder_of_another_version_is_refused_and_left_alone() {
    for version in [1, 3] {
        let folder = Folder::new();
        let text = format!(r#"{{"version":{version},"later":[]}}"#);
        write_state(&folder, &text);
        let path = folder.path().join("state");
        // A folder of the test, so that it outlives the service that does not start.
        let started =
            Running::try_start(Folder::new(), |config| config.state_dir = Some(path.clone()));
        let Err(error) = started else { panic!("it started") };
        let words = format!("is of version {version}, and this program reads version 2");
        assert!(error.to_string().contains(&words), "{error}");
        assert_eq!(state(&folder), text);
        let files = std::fs::read_dir(&path).expect("the folder").count();
        assert_eq!(files, 1, "nothing was made beside it");
    }
}

#[test]
fn two_services_do_not_share_a_state_folder() {
    let service = Running::start();
    let state = service.folder().join("state");
    let started = Running::try_start(Folder::new(), |config| config.state_dir = Some(state));
    let Err(error) = started else { panic!("it started") };
    assert!(error.to_string().contains("--state-dir"), "{error}");
}

#[test]
fn a_state_folder_that_cannot_be_written_is_an_error_at_the_start() {
    let folder = Folder::new();
    let file = folder.path().join("file");
    std::fs::write(&file, "").unwrap();
    let socket = folder.path().join("socket");
    let started = Running::try_start(folder, |config| config.state_dir = Some(file.join("state")));
    let Err(error) = started else { panic!("it started") };
    assert!(error.to_string().contains("state folder"), "{error}");
    assert!(!socket.exists());
}

/// Puts a file where the folder was: one that is only removed would be made again.
fn make_unwritable(state: &std::path::Path) {
    std::fs::remove_dir_all(state).expect("the folder can be removed");
    std::fs::write(state, "").expect("the file can be written");
}

#[test]
fn a_service_that_cannot_reserve_tokens_goes_on_and_ends_before_one_repeats() {
    let service = Running::with(|config| {
        config.limits.tokens_reserved_ahead = 64;
        config.limits.requests_per_partition_max = 8;
    });
    let state = service.folder().join("state");
    let reserved: u64 = {
        let text = std::fs::read_to_string(state.join("service.json")).unwrap();
        let rest = text.split_once(r#""tokens-reserved-to":"#).expect("it is there").1;
        rest.split_once([',', '}']).expect("it ends").0.parse().unwrap()
    };
    let mut client = Client::unix(service.unix());
    make_unwritable(&state);
    let mut last = 0;
    for id in 1.. {
        client.say(format!(r#"{{"request":{{"id":{id},"names":["a"]}}}}"#));
        match client.hear() {
            ToClient::Granted(granted) => last = granted.token,
            ToClient::Error(fault) => {
                assert_eq!(fault.code, FaultCode::ShuttingDown);
                break;
            }
            other => panic!("neither granted nor ended: {other:?}"),
        }
        client.say(format!(r#"{{"end":{id}}}"#));
    }
    assert!(last > reserved - 32 && last < reserved, "{last} of {reserved}");
    drop(client);
    let (ended, _) = service.wait();
    assert!(ended.unwrap_err().to_string().contains("state"));
}

#[test]
fn tokens_are_reserved_again_before_they_run_out() {
    let service = Running::with(|config| config.limits.tokens_reserved_ahead = 64);
    let mut client = Client::unix(service.unix());
    let mut token = 0;
    for id in 1..=1000 {
        token = client.hold(id, "a");
        client.say(format!(r#"{{"end":{id}}}"#));
    }
    client.leave();
    let folder = service.kill();
    let service = Running::again(folder, |_| {});
    assert!(Client::unix(service.unix()).hold(1, "a") > token);
}

#[test]
fn a_session_that_outlives_its_connection_is_not_given_when_it_cannot_be_remembered() {
    let service = Running::start();
    make_unwritable(&service.folder().join("state"));
    let mut client = Client::tcp_hello(service.tcp(), r#"{}"#);
    assert_eq!(client.error().0, FaultCode::Internal);
    // Those that do not are served.
    Client::unix(service.unix()).hold(1, "a");
}
