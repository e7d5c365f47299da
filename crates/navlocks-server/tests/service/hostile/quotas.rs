//! Clients that ask for more than their limits.

use std::io::Read as _;

use navlocks_wire::{Event, FaultCode, Over, ToClient, Why};

use crate::client::{Client, unix_stream};
use crate::running::Running;

#[test]
fn a_million_requests_from_one_client_are_refused_by_its_quota() {
    let service = Running::with(|config| config.limits.requests_per_session_max = 1000);
    let mut other = Client::unix(service.unix());
    other.hold(1, "a");
    let path = service.unix().to_owned();
    let greedy = std::thread::spawn(move || {
        let mut greedy = Client::unix(&path);
        let mut refused = 0;
        for batch in 0..1000 {
            let ids = batch * 1000 + 1..=batch * 1000 + 1000;
            greedy.say_all(ids.map(|id| format!(r#"{{"request":{{"id":{id},"names":["a"]}}}}"#)));
            let expected = if batch == 0 { 0 } else { 1000 };
            for _ in 0..expected {
                match greedy.hear() {
                    ToClient::Over(Over { why: Why::Refused(answer), .. }) => {
                        assert_eq!(answer.fault.code, FaultCode::Limit);
                        refused += 1;
                    }
                    other => panic!("not refused: {other:?}"),
                }
            }
        }
        greedy.settle();
        refused
    });
    let mut id = 1;
    while !greedy.is_finished() {
        id += 1;
        other.hold(id, "b");
        other.say(format!(r#"{{"end":{id}}}"#));
    }
    assert_eq!(greedy.join().expect("the greedy one is served, too"), 999_000);
}

#[test]
fn s18_decision_6_every_limit_has_an_error_of_its_own() {
    let service = Running::with(|config| {
        config.limits.name_bytes_max = 10;
        config.limits.names_per_request_max = 3;
        config.limits.tag_bytes_max = 5;
        config.limits.requests_per_partition_max = 2;
        config.limits.partition_bytes_max = 12;
    });
    let mut client = Client::unix(service.unix());
    client.hold(1, "ten bytes!");
    let mut refused = |id: u64, rest: &str| {
        client.say(format!(r#"{{"request":{{"id":{id},{rest}}}}}"#));
        match client.hear() {
            ToClient::Over(Over { why: Why::Refused(refused), .. })
                if refused.fault.code == FaultCode::Limit =>
            {
                refused.fault.message
            }
            other => panic!("not refused: {other:?}"),
        }
    };
    assert_eq!(refused(2, r#""names":["eleven char"]"#), "a name has at most 10 bytes");
    assert_eq!(refused(3, r#""names":["äöüäöü"]"#), "a name has at most 10 bytes");
    assert_eq!(refused(4, r#""names":["a","b","c","d"]"#), "a request has at most 3 names");
    assert_eq!(refused(5, r#""names":["a"],"tag":"long tag""#), "a tag has at most 5 bytes");
    assert!(refused(6, r#""names":["abc"]"#).contains("12 bytes"));
    client.hold(7, "a");
    let mut other = Client::unix(service.unix());
    other.say(r#"{"request":{"id":1,"names":["b"]}}"#);
    let (_, refused) = other.refused();
    assert_eq!(refused.fault.message, "the partition has 2 requests, and takes no more");
    // A refused request leaves nothing behind.
    client.say_all([r#"{"end":1}"#, r#"{"end":7}"#]);
    client.settle();
    other.hold(2, "ten bytes!");
}

#[test]
fn s18_sessions_clients_partitions_and_connections_have_limits() {
    let service = Running::with(|config| {
        config.limits.clients_per_session_max = 2;
        config.limits.partitions_max = 2;
        config.limits.partition_name_bytes_max = 5;
        config.limits.sessions_max = 3;
        config.limits.connections_max = 5;
    });
    let mut client = Client::unix(service.unix());
    client.hold(1, "held");
    // A client beyond a limit is refused alone, and the session goes on.
    client.say_all([
        r#"{"open":{"client":1,"partition":"abcdef"}}"#,
        r#"{"request":{"id":2,"client":1,"names":["a"]}}"#,
        r#"{"watch":{"events":1}}"#,
        r#"{"open":{"client":2}}"#,
        r#"{"request":{"id":3,"client":2,"names":["a"]}}"#,
        r#"{"watch":{"events":2}}"#,
    ]);
    for sentence in ["a partition has at most 5 bytes", "a session has at most 2 clients"] {
        let (_, refused) = client.refused();
        let ToClient::Event(Event::Refused(deaf)) = client.hear() else { panic!("not refused") };
        for fault in [refused.fault, deaf.fault] {
            assert_eq!(fault.code, FaultCode::Limit);
            assert!(fault.message.contains(sentence), "{fault}");
        }
    }
    client.say_all([r#"{"close":1}"#, r#"{"open":{"client":3}}"#]);
    client.say(r#"{"request":{"id":4,"client":3,"names":["held"],"wait":"if-available"}}"#);
    assert_eq!(client.hear(), ToClient::Over(Over::unavailable(4)));
    drop(client);
    // A hello with such a name would be refused each time.
    let mut long = Client::tcp_hello(service.tcp(), r#"{"partition":"abcdef"}"#);
    assert_eq!(long.error(), (FaultCode::BadMessage, 1002));
    drop(long);
    let mut kept = Vec::new();
    for partition in ["a", "b"] {
        let hello = format!(r#"{{"partition":"{partition}"}}"#);
        let mut client = Client::tcp_hello(service.tcp(), &hello);
        client.welcome();
        kept.push(client);
    }
    let mut third = Client::tcp_hello(service.tcp(), r#"{"partition":"c"}"#);
    assert_eq!(third.error(), (FaultCode::Limit, 1009));
    let mut third = Client::tcp_hello(service.tcp(), r#"{"partition":"b"}"#);
    third.welcome();
    let mut fourth = Client::tcp_hello(service.tcp(), r#"{"partition":"b"}"#);
    assert_eq!(fourth.error(), (FaultCode::Limit, 1009));
    drop((kept, third, fourth));
}

#[test]
fn too_many_connections_are_told() {
    let service = Running::with(|config| config.limits.connections_max = 1);
    let mut client = Client::unix(service.unix());
    let mut other = unix_stream(service.unix());
    let mut answer = String::new();
    other.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 503"), "{answer}");
    client.hold(1, "a");
}
