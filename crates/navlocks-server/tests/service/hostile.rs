//! Clients that do what they should not: the service stays up, others are served, and the offender
//! is told.

mod quotas;

use std::io::{Read as _, Write};
use std::net::Shutdown;
use std::time::Duration;

use navlocks_wire::{FaultCode, ToClient};
use tokio_tungstenite::tungstenite::Message;

use crate::client::{Client, UPGRADE, frame, tcp_stream, unix_stream};
use crate::running::Running;

/// Says something after hello, for which the connection is closed; others do not notice.
#[track_caller]
fn is_fatal(service: &Running, said: &[&str], code: FaultCode) {
    let mut other = Client::unix(service.unix());
    other.hold(1, "other");
    let mut offender = Client::unix(service.unix());
    offender.hold(1, "held");
    offender.say_all(said.iter().copied());
    let fault = loop {
        match offender.hear() {
            ToClient::Error(fault) => break fault,
            ToClient::Granted(_) => {}
            other => panic!("{said:?} is answered by {other:?}"),
        }
    };
    assert_eq!(fault.code, code, "{said:?}: {fault}");
    other.say(r#"{"request":{"id":2,"names":["held"]}}"#);
    other.granted(2);
}

#[test]
fn text_that_is_no_message_ends_the_session() {
    let service = Running::start();
    let deep = "[".repeat(100_000);
    for text in [
        "",
        "garbage",
        "{}",
        "null",
        "\"hello\"",
        r#"{"request":{"id":2,"names":["a"]}"#,
        r#"{"request":{"id":2,"names":[]}}"#,
        r#"{"request":{"id":-2,"names":["a"]}}"#,
        r#"{"request":{"id":1.5,"names":["a"]}}"#,
        r#"{"request":{"id":18446744073709551616,"names":["a"]}}"#,
        r#"{"request":{"id":9007199254740992,"names":["a"]}}"#,
        r#"{"open":{"client":9007199254740992}}"#,
        r#"{"ask":{"id":9007199254740992,"question":{"locks":"partition"}}}"#,
        r#"{"ping":9007199254740992}"#,
        r#"{"request":{"id":2,"names":"a"}}"#,
        r#"{"request":{"id":2,"names":["a"],"wait":"forever"}}"#,
        r#"{"end":1} {"end":1}"#,
        r#"{"end":1,"end":1}"#,
        r#"{"ask":{"id":1,"question":{"blockers":"1"}}}"#,
        &deep,
    ] {
        is_fatal(&service, &[text], FaultCode::BadMessage);
    }
}

#[test]
fn messages_that_make_no_sense_here_end_the_session() {
    let service = Running::start();
    for said in [
        &[r#"{"hello":{}}"#][..],
        // Used twice, and smaller than the last one.
        &[r#"{"end":1}"#, r#"{"request":{"id":1,"names":["a"]}}"#],
        &[r#"{"request":{"id":9,"names":["a"]}}"#, r#"{"request":{"id":8,"names":["b"]}}"#],
        &[r#"{"request":{"id":2,"client":7,"names":["a"]}}"#],
        &[r#"{"open":{"client":0}}"#],
        &[r#"{"open":{"client":2}}"#, r#"{"open":{"client":1}}"#],
        &[r#"{"close":5}"#],
        &[r#"{"watch":{"events":5}}"#],
        &[r#"{"ask":{"id":1,"client":5,"question":{"locks":"partition"}}}"#],
    ] {
        is_fatal(&service, said, FaultCode::BadState);
    }
}

#[test]
fn client_that_offers_a_later_version_too_is_served() {
    let service = Running::start();
    // tungstenite checks that the service confirms one of them.
    let mut client =
        Client::speaking(tcp_stream(service.tcp()), "navlocks.4, navlocks.3, navlocks.2");
    client.hello();
    client.hold(1, "a");
}

#[test]
fn members_of_later_versions_are_ignored() {
    let service = Running::start();
    let hello = r#"{"lease-ms":5000,"colour":"red","resume-by":{"moon":1}}"#;
    let mut client = Client::tcp_hello(service.tcp(), hello);
    assert_eq!(client.welcome().lease_ms, Some(5000));
    client.say(r#"{"request":{"id":1,"colour":{"of":[1,2]},"names":["a"],"later":null}}"#);
    client.granted(1);
    client.say(r#"{"open":{"client":1,"later":true}}"#);
    client.say(r#"{"ask":{"id":1,"later":"x","question":{"contended":"1.1"}}}"#);
    let ToClient::Answer(answer) = client.hear() else { panic!("no answer") };
    assert_eq!(answer.id, 1);
    client.settle();
}

#[test]
fn numbers_that_mean_nothing_do_nothing() {
    let service = Running::start();
    let mut client = Client::unix(service.unix());
    client.say_all([
        r#"{"end":99}"#,
        r#"{"end":18446744073709551615}"#,
        r#"{"watch":{"contention":5}}"#,
        r#"{"watch":{"no-events":0}}"#,
    ]);
    client.settle();
    client.hold(1, "a");
}

#[test]
fn largest_number_of_the_wire_is_taken() {
    let service = Running::start();
    let mut client = Client::unix(service.unix());
    client.say(r#"{"ping":9007199254740991}"#);
    assert_eq!(client.hear(), ToClient::Pong((1 << 53) - 1));
    client.hold((1 << 53) - 1, "a");
}

#[test]
fn hello_comes_first() {
    let service = Running::start();
    let mut rude = Client::silent(unix_stream(service.unix()));
    rude.say(r#"{"request":{"id":1,"names":["a"]}}"#);
    assert_eq!(rude.error(), (FaultCode::BadState, 1002));
}

#[test]
fn binary_frames_are_refused() {
    let service = Running::start();
    let mut client = Client::unix(service.unix());
    client.0.send(Message::binary(vec![1, 2, 3])).unwrap();
    assert_eq!(client.error(), (FaultCode::BadMessage, 1002));
}

/// A connection whose bytes are written by hand, after its hello.
fn by_hand(service: &Running) -> std::net::TcpStream {
    let mut stream = tcp_stream(service.tcp());
    stream.write_all(UPGRADE.as_bytes()).expect("it listens");
    stream.write_all(&frame(0x81, br#"{"hello":{}}"#)).expect("it listens");
    stream
}

/// Reads until the service has said this.
#[track_caller]
fn read_until(stream: &mut std::net::TcpStream, text: &str) {
    let mut said = Vec::new();
    while !said.ends_with(text.as_bytes()) {
        let mut byte = [0];
        let read = stream.read(&mut byte).expect("the service answers");
        assert_eq!(read, 1, "{}", String::from_utf8_lossy(&said));
        said.extend(byte);
    }
}

/// All that the service says until it closes.
fn rest(mut stream: std::net::TcpStream) -> String {
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).expect("the service closes in good order");
    String::from_utf8_lossy(&bytes).into_owned()
}

#[test]
fn a_frame_of_a_gibibyte_is_refused_before_it_is_there() {
    let service = Running::start();
    let mut stream = by_hand(&service);
    let mut head = vec![0x81, 0xFF];
    head.extend((1_u64 << 30).to_be_bytes());
    head.extend([0; 4]);
    stream.write_all(&head).unwrap();
    let said = rest(stream);
    assert!(said.contains(r#"{"error":{"code":"limit""#), "{said}");
}

#[test]
fn a_message_that_grows_too_long_by_pieces_is_refused() {
    let service = Running::with(|config| config.limits.message_bytes_max = 1000);
    let mut stream = by_hand(&service);
    stream.write_all(&frame(0x01, &[b' '; 100])).unwrap();
    for _ in 0..20 {
        // The service closes in the middle of it.
        let _may_fail = stream.write_all(&frame(0x00, &[b' '; 100]));
    }
    let said = rest(stream);
    assert!(said.contains(r#"{"error":{"code":"limit""#), "{said}");
}

#[test]
fn frames_that_break_the_rules_of_websocket_are_refused() {
    let service = Running::start();
    for bytes in [
        // Without a mask, with a reserved bit, with an unknown kind, a continuation of nothing, and
        // a long ping.
        vec![0x81, 0x02, b'{', b'}'],
        frame(0xC1, b"{}"),
        frame(0x83, b"{}"),
        frame(0x80, b"{}"),
        [&[0x89, 0xFE, 0x01, 0x00, 0, 0, 0, 0][..], &[b'x'; 256]].concat(),
        // Text that is no UTF-8.
        frame(0x81, &[0xFF, 0xFE]),
    ] {
        let mut stream = by_hand(&service);
        stream.write_all(&bytes).unwrap();
        let said = rest(stream);
        assert!(said.contains(r#"{"error":{"code":"bad-message""#), "{bytes:x?}: {said}");
    }
}

#[test]
fn a_message_in_pieces_is_taken_and_half_of_one_is_not() {
    let service = Running::with(|config| {
        config.limits.lease_default = Duration::from_secs(3);
    });
    let mut stream = by_hand(&service);
    let mut pieces = frame(0x01, br#"{"request":{"id""#);
    pieces.extend(frame(0x89, b"ping"));
    pieces.extend(frame(0x80, br#":1,"names":["a"]}}"#));
    // Half of a frame, and then nothing: the lease ends it.
    pieces.extend(&frame(0x81, br#"{"end":1}"#)[..9]);
    stream.write_all(&pieces).unwrap();
    // Otherwise the other client could be first.
    read_until(&mut stream, r#"{"granted":{"id":1"#);
    let mut waiting = Client::unix(service.unix());
    waiting.say(r#"{"request":{"id":1,"names":["a"]}}"#);
    let said = rest(stream);
    assert!(said.contains(r#"{"error":{"code":"lease-lapsed""#), "{said}");
    waiting.granted(1);
}

#[test]
fn a_client_that_goes_in_the_middle_of_a_frame_is_gone() {
    let service = Running::start();
    let mut half = unix_stream(service.unix());
    half.write_all(b"GET / HT").unwrap();
    drop(half);
    let mut holder = Client::unix(service.unix());
    holder.hold(1, "a");
    let mut waiting = Client::unix(service.unix());
    waiting.say(r#"{"request":{"id":1,"names":["a"]}}"#);
    waiting.settle();
    holder.0.get_mut().write_all(&[0x81, 0xFE, 0x10]).unwrap();
    drop(holder);
    waiting.granted(1);
}

#[test]
fn half_of_a_connection_that_is_closed_ends_it() {
    let service = Running::start();
    let stream = unix_stream(service.unix());
    let half = stream.try_clone().unwrap();
    let mut holder = Client::silent(stream);
    holder.hello();
    holder.hold(1, "a");
    half.shutdown(Shutdown::Write).unwrap();
    Client::unix(service.unix()).hold(1, "a");
}

#[test]
fn who_does_not_read_is_not_waited_for() {
    let service = Running::with(|config| config.limits.outbox_bytes_max = 100_000);
    let mut deaf = Client::unix(service.unix());
    deaf.say_all([r#"{"request":{"id":1,"names":["a"]}}"#, r#"{"watch":{"events":0}}"#]);
    let mut busy = Client::unix(service.unix());
    busy.say(r#"{"request":{"id":1,"names":["a"]}}"#);
    let mut id = 1;
    // Everything that happens is told to the deaf one, until it loses its lock.
    loop {
        let ids = id + 1..=id + 100;
        busy.say_all(ids.clone().flat_map(|id| {
            let request = format!(r#"{{"request":{{"id":{id},"names":["b"]}}}}"#);
            [request, format!(r#"{{"end":{id}}}"#)]
        }));
        id += 100;
        let mut freed = false;
        let mut heard = 0;
        while heard < 100 {
            match busy.hear() {
                ToClient::Granted(granted) if granted.id == 1 => freed = true,
                ToClient::Granted(_) => heard += 1,
                other => panic!("not granted: {other:?}"),
            }
        }
        if freed {
            break;
        }
    }
    // The unread messages are still there, and then the end.
    while let Ok(message) = deaf.0.read() {
        drop(message);
    }
}

#[test]
fn pings_of_a_peer_that_reads_are_answered_without_end() {
    let service = Running::with(|config| config.limits.outbox_bytes_max = 1000);
    let mut client = Client::unix(service.unix());
    for number in 0..100 {
        let payload = format!("{number:0100}");
        client.0.send(Message::Ping(payload.clone().into())).expect("the service listens");
        match client.0.read() {
            Ok(Message::Pong(answer)) => assert_eq!(answer, payload.as_bytes()),
            other => panic!("ping {number} is answered by {other:?}"),
        }
    }
    client.hold(1, "a");
}

#[test]
fn an_answer_that_is_too_long_is_refused_and_nobody_ends() {
    let service = Running::with(|config| config.limits.outbox_bytes_max = 20_000);
    let mut client = Client::unix(service.unix());
    for id in 1..=400 {
        client.hold(id, &format!("name-{id}"));
    }
    client.say(r#"{"ask":{"id":1,"question":{"locks":"partition"}}}"#);
    let said = client.hear_text();
    assert!(said.contains(r#"{"refused":{"code":"limit""#), "{said}");
    client.settle();
}
