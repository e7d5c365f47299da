//! Each message, once.

use navlocks_wire::{
    Event, FaultCode, LossCause, Lost, Over, Reply, RequestKey, ToClient, Waits, What, Why,
};

use crate::client::Client;
use crate::running::Running;

#[test]
fn a_lock_passes_from_one_connection_to_the_next() {
    let service = Running::start();
    let mut first = Client::unix(service.unix());
    let (mut second, welcome) = Client::tcp(service.tcp());
    assert_eq!(welcome.lease_ms, Some(10_000));
    let held = first.hold(1, "a");
    second.say(r#"{"request":{"id":1,"names":["a"]}}"#);
    second.settle();
    first.say(r#"{"end":1}"#);
    assert!(second.granted(1) > held);
}

#[test]
fn a_thousand_requests_are_answered_in_order() {
    let service = Running::start();
    let mut client = Client::unix(service.unix());
    client.say_all((1..=1000).map(|id| format!(r#"{{"request":{{"id":{id},"names":["{id}"]}}}}"#)));
    let mut last = 0;
    for id in 1..=1000 {
        let token = client.granted(id);
        assert!(token > last);
        last = token;
    }
    client.say_all((1..=1000).map(|id| format!(r#"{{"end":{id}}}"#)));
    client.say(r#"{"ask":{"id":1,"question":{"locks":"partition"}}}"#);
    let ToClient::Answer(answer) = client.hear() else { panic!("no answer") };
    assert_eq!(answer.reply, Reply::Locks { held: vec![], pending: vec![] });
}

#[test]
fn if_available_says_unavailable() {
    let service = Running::start();
    let (mut first, mut second) = (Client::unix(service.unix()), Client::unix(service.unix()));
    first.hold(1, "a");
    second.say(r#"{"request":{"id":1,"names":["a"],"wait":"if-available"}}"#);
    assert_eq!(second.hear(), ToClient::Over(Over::unavailable(1)));
}

#[test]
fn a_thief_is_named() {
    let service = Running::start();
    let mut first = Client::unix(service.unix());
    first.hold(1, "a");
    let (mut thief, welcome) = Client::tcp(service.tcp());
    thief.say(r#"{"request":{"id":5,"names":["a"],"wait":"steal","tag":"night\u0007ly"}}"#);
    thief.granted(5);
    let cause = LossCause::Stolen(RequestKey::new(welcome.session, 5));
    let words = Some(r"night\u{7}ly".into());
    assert_eq!(first.hear(), ToClient::Over(Over::lost_to(1, cause, words)));
    // Over a Unix socket the service knows the process, and cuts a long tag.
    let mut second = Client::unix(service.unix());
    for tag in [String::new(), "t".repeat(200)] {
        thief.hold(6 + tag.len() as u64, "b");
        let request =
            format!(r#"{{"id":{},"names":["b"],"wait":"steal","tag":"{tag}"}}"#, 1 + tag.len());
        second.say(format!(r#"{{"request":{request}}}"#));
        second.granted(1 + tag.len() as u64);
        let ToClient::Over(Over { why: Why::Lost(Lost { thief: Some(words), .. }), .. }) =
            thief.hear()
        else {
            panic!("no loss")
        };
        let name = if tag.is_empty() {
            "service-".to_owned()
        } else {
            format!("{}… (", "t".repeat(100))
        };
        assert!(words.starts_with(&name), "{words}");
        assert!(words.ends_with(&format!(" (pid {})", std::process::id())), "{words}");
        second.say(format!(r#"{{"end":{}}}"#, 1 + tag.len()));
    }
    // Taking note is no release of the thief's.
    first.say(r#"{"end":1}"#);
    first.say(r#"{"request":{"id":2,"names":["a"],"wait":"if-available"}}"#);
    assert_eq!(first.hear(), ToClient::Over(Over::unavailable(2)));
}

#[test]
fn an_abort_leaves_the_queue_and_releases_what_was_granted() {
    let service = Running::start();
    let (mut first, mut second) = (Client::unix(service.unix()), Client::unix(service.unix()));
    first.hold(1, "a");
    second.say_all([
        r#"{"request":{"id":1,"names":["a"]}}"#,
        r#"{"end":1}"#,
        r#"{"request":{"id":2,"names":["a"]}}"#,
    ]);
    second.settle();
    first.say(r#"{"end":1}"#);
    second.granted(2);
}

#[test]
fn contention_is_told_once() {
    let service = Running::start();
    let (mut first, mut second) = (Client::unix(service.unix()), Client::unix(service.unix()));
    first.hold(1, "a");
    first.say(r#"{"watch":{"contention":1}}"#);
    first.settle();
    second.say_all([
        r#"{"request":{"id":1,"names":["a"]}}"#,
        r#"{"request":{"id":2,"names":["a"]}}"#,
    ]);
    second.settle();
    assert_eq!(first.hear(), ToClient::Event(Event::Contended(1)));
    first.settle();
    first.say(r#"{"watch":{"contention":1}}"#);
    assert_eq!(first.hear(), ToClient::Event(Event::Contended(1)));
}

#[test]
fn a_listener_hears_of_everything() {
    let service = Running::start();
    let mut listener = Client::unix(service.unix());
    listener.listen();
    let mut holder = Client::unix(service.unix());
    let token = holder.hold(1, "a");
    holder.say(r#"{"request":{"id":2,"names":["a"],"mode":"shared","tag":"late"}}"#);
    holder.settle();
    drop(holder);
    let heard: Vec<_> = (0..5)
        .map(|_| match listener.hear() {
            ToClient::Event(Event::Request(event)) => {
                assert_eq!(event.about.pid, Some(std::process::id()));
                (event.about.request.request, event.what)
            }
            other => panic!("not an event: {other:?}"),
        })
        .collect();
    assert_eq!(
        heard,
        [
            (1, What::Requested),
            (1, What::Granted(token)),
            (2, What::Requested),
            (1, What::Lost(LossCause::ClientEnded)),
            (2, What::Aborted(LossCause::ClientEnded)),
        ]
    );
    listener.say(r#"{"watch":{"no-events":0}}"#);
    listener.settle();
    listener.hold(1, "b");
}

#[test]
fn clients_of_one_session_are_in_their_own_partitions_and_end_alone() {
    let service = Running::start();
    let mut client = Client::unix(service.unix());
    client.hold(1, "a");
    client.say(r#"{"open":{"client":1,"partition":"other"}}"#);
    client.say(r#"{"request":{"id":2,"client":1,"names":["a"]}}"#);
    client.granted(2);
    client.say(r#"{"open":{"client":2}}"#);
    client.say(r#"{"request":{"id":3,"client":2,"names":["a"]}}"#);
    client.settle();
    client.say(r#"{"close":0}"#);
    client.granted(3);
    client.say(r#"{"request":{"id":4,"names":["a"]}}"#);
    let (id, refused) = client.refused();
    assert_eq!((id, refused.fault.code), (4, FaultCode::BadState));
}

#[test]
fn a_deadlock_is_refused_when_the_service_refuses_them() {
    let service =
        Running::with(|config| config.deadlocks = navlocks_server::DeadlockPolicy::Refuse);
    let (mut first, mut second) = (Client::unix(service.unix()), Client::unix(service.unix()));
    first.hold(1, "a");
    second.hold(1, "b");
    first.say(r#"{"request":{"id":2,"names":["b"],"within":1}}"#);
    first.settle();
    second.say(r#"{"request":{"id":2,"names":["a"],"within":1}}"#);
    let (id, refused) = second.refused();
    assert_eq!((id, refused.fault.code), (2, FaultCode::Deadlock));
    assert_eq!(refused.cycle.map(|cycle| cycle.requests.len()), Some(4));
    second.say(r#"{"end":1}"#);
    first.granted(2);
}

#[test]
fn b04_request_within_its_own_lock_is_refused_with_the_key_of_that_lock() {
    let service = Running::start();
    let (mut client, mut other) = (Client::unix(service.unix()), Client::unix(service.unix()));
    client.hold(1, "a");
    client.say(r#"{"request":{"id":2,"names":["a"],"within":1}}"#);
    let (id, refused) = client.refused();
    let outer = refused.cycle.as_ref().and_then(|cycle| cycle.outer).expect("its own lock");
    assert_eq!((id, outer.request, refused.fault.code), (2, 1, FaultCode::Deadlock));
    assert!(refused.fault.message.contains(&format!("within lock {outer} ")), "{refused:?}");
    // A command that runs under the lock names it by its key.
    other.say(format!(r#"{{"request":{{"id":1,"names":["a"],"within":"{outer}"}}}}"#));
    let (_, refused) = other.refused();
    assert_eq!(refused.cycle.and_then(|cycle| cycle.outer), Some(outer));
    // A request that is over, or never was, is no outer one.
    other.say(r#"{"request":{"id":2,"names":["a"],"within":1}}"#);
    other.settle();
    client.say(r#"{"end":1}"#);
    other.granted(2);
}

#[test]
fn questions_are_answered() {
    let service = Running::start();
    let (mut first, mut second) = (Client::unix(service.unix()), Client::unix(service.unix()));
    first.hold(1, "a");
    second.say(r#"{"request":{"id":1,"names":["a"]}}"#);
    second.settle();
    let mut ask = |question: &str| {
        first.say(format!(r#"{{"ask":{{"id":9,"question":{question}}}}}"#));
        match first.hear() {
            ToClient::Answer(answer) => answer.reply,
            other => panic!("not an answer: {other:?}"),
        }
    };
    let Reply::Locks { held, pending } = ask(r#"{"locks":"partition"}"#) else {
        panic!("no snapshot")
    };
    let (held, pending) = (held[0].about.request, pending[0].about.request);
    assert_ne!(held.session, pending.session);
    let blockers = Reply::Blockers { hard: vec![held], soft: vec![] };
    assert_eq!(ask(&format!(r#"{{"blockers":"{pending}"}}"#)), blockers);
    assert_eq!(ask(&format!(r#"{{"contended":"{held}"}}"#)), Reply::Contended(true));
    assert_eq!(ask(r#"{"waits":"deadlocks"}"#), Reply::Waits(Waits::default()));
    assert_eq!(ask(r#"{"force-release":"b"}"#), Reply::Released(0));
    first.say(r#"{"ask":{"id":10,"question":{"force-release":"a"}}}"#);
    assert_eq!(first.hear(), ToClient::Over(Over::lost(1, LossCause::ForceReleased)));
    second.granted(1);
}

#[test]
fn place_says_what_stands_before_the_first_pending_request_of_the_client() {
    let service = Running::start();
    let mut holder = Client::unix(service.unix());
    holder.say(r#"{"request":{"id":1,"names":["a"],"tag":"nightly"}}"#);
    let token = holder.granted(1);
    let place = |client: &mut Client| {
        client.say(r#"{"ask":{"id":1,"question":"place"}}"#);
        let ToClient::Answer(answer) = client.hear() else { panic!("not an answer") };
        let Reply::Place(place) = answer.reply else { panic!("not a place") };
        place
    };
    assert_eq!(place(&mut holder), None);
    let mut waiting = Vec::new();
    for before in 0..3 {
        let mut client = Client::unix(service.unix());
        client.say(r#"{"request":{"id":1,"names":["a"]}}"#);
        let place = place(&mut client).expect("it waits");
        assert_eq!((place.before, place.holders), (before, 1));
        assert_eq!(place.held.len(), 1);
        assert_eq!(place.held[0].token, Some(token));
        assert_eq!(place.held[0].about.tag, Some("nightly".into()));
        waiting.push((client, place));
    }
    // The keys of requests begin with the numbers of their sessions, from 1 on.
    for (key, expected) in [("4.1", Some(2)), ("2.1", Some(0)), ("1.1", None), ("9.9", None)] {
        holder.say(format!(r#"{{"ask":{{"id":2,"question":{{"place-of":"{key}"}}}}}}"#));
        let ToClient::Answer(answer) = holder.hear() else { panic!("not an answer") };
        let Reply::Place(place) = answer.reply else { panic!("not a place") };
        assert_eq!(place.map(|place| place.before), expected, "{key}");
    }
}

#[test]
fn process_of_a_client_over_tcp_is_shown_as_the_client_describes_it() {
    let service = Running::start();
    let described = ["4711@build-7", "two\\nlines", &"x".repeat(257)];
    for (described, shown) in described.iter().zip([Some("4711@build-7"), None, None]) {
        let hello = format!(r#"{{"process":"{described}"}}"#);
        let mut client = Client::tcp_hello(service.tcp(), &hello);
        client.welcome();
        client.hold(1, "a");
        client.say(r#"{"ask":{"id":1,"question":{"locks":"partition"}}}"#);
        let ToClient::Answer(answer) = client.hear() else { panic!("not an answer") };
        let Reply::Locks { held, .. } = answer.reply else { panic!("no snapshot") };
        assert_eq!((held[0].about.process.as_deref(), held[0].about.pid), (shown, None));
        client.leave();
    }
    // Over a Unix socket the kernel tells.
    let mut client = Client::silent(crate::client::unix_stream(service.unix()));
    client.say(r#"{"hello":{"process":"1@elsewhere"}}"#);
    client.welcome();
    client.hold(1, "a");
    client.say(r#"{"ask":{"id":1,"question":{"locks":"partition"}}}"#);
    let ToClient::Answer(answer) = client.hear() else { panic!("not an answer") };
    let Reply::Locks { held, .. } = answer.reply else { panic!("no snapshot") };
    assert_eq!(held[0].about.process, None);
    assert_eq!(held[0].about.pid, Some(std::process::id()));
}

#[test]
fn trace_of_a_request_is_shown_in_events_and_queries() {
    const TRACE: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let service = Running::start();
    let (mut subscriber, mut client) = (Client::unix(service.unix()), Client::unix(service.unix()));
    subscriber.listen();
    // One of a later version is shown as one of version 00, and a malformed one is ignored.
    let later = TRACE.replacen("00-", "ab-", 1) + "-more";
    for (id, sent, shown) in [(1, TRACE, Some(TRACE)), (2, &later, Some(TRACE)), (3, "00-1", None)]
    {
        client
            .say(format!(r#"{{"request":{{"id":{id},"names":["{id}"],"traceparent":"{sent}"}}}}"#));
        client.granted(id);
        for _ in 0..2 {
            let ToClient::Event(Event::Request(event)) = subscriber.hear() else {
                panic!("no event")
            };
            let trace = event.about.traceparent;
            assert_eq!(trace.as_ref().map(|trace| trace.as_str()), shown, "{sent}");
        }
    }
    client.say(r#"{"ask":{"id":1,"question":{"locks":"partition"}}}"#);
    let ToClient::Answer(answer) = client.hear() else { panic!("no answer") };
    let Reply::Locks { held, .. } = answer.reply else { panic!("no locks") };
    let traced = held.iter().filter(|info| info.about.traceparent.is_some()).count();
    assert_eq!((traced, held.len()), (2, 3));
}
