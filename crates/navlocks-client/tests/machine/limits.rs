//! The limits of a welcome: the client refuses what the service would refuse, item by item.

use navlocks_client::{Begin, Event, LossCause, Over, QueryFailure};
use navlocks_core::{Scope, Wait};
use navlocks_wire::{FaultCode, LocksOf, Names, Question, Request, ToService};

use crate::peer::{LIMITS, Peer, local, request};

const SMALL: &str = r#"{"message-bytes-max":200,"name-bytes-max":9,"names-per-request-max":2,"tag-bytes-max":5,"requests-per-session-max":2,"clients-per-session-max":2}"#;

fn named(names: &[&str]) -> Request {
    let names = Names(Scope::new(names.iter().copied()).unwrap());
    Request { names, ..request("a", Wait::Queue) }
}

/// Returns the sentence of a refusal for a limit.
fn refusal(over: Result<u64, Over>) -> String {
    match over {
        Err(Over::Refused(refused)) if refused.fault.code == FaultCode::Limit => {
            refused.fault.message
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn request_beyond_a_limit_is_refused_alone_and_nothing_is_sent() {
    let mut peer = Peer::welcoming(local(Begin::Once), SMALL);
    let tagged = Request { tag: Some("nightly".into()), ..request("a", Wait::Queue) };
    let cases = [
        (named(&["invoice/42"]), "the name 'invoice/42' has 10 bytes, and the service takes 9"),
        (named(&["a", "b", "c"]), "a request of 3 names, and the service takes 2"),
        (tagged, "the tag has 7 bytes, and the service takes 5"),
    ];
    for (request, sentence) in cases {
        let found = refusal(peer.requests(request));
        assert!(found.starts_with(sentence), "{found}");
    }
    assert!(peer.sent.is_empty());
    assert_eq!(peer.requests(request("a", Wait::Queue)), Ok(1));
    assert_eq!(peer.requests(request("b", Wait::Queue)), Ok(2));
    let found = refusal(peer.requests(request("c", Wait::Queue)));
    assert!(found.starts_with("the connection has 2 requests, and the service takes 2"), "{found}");
    // A request that ended makes room for the next.
    peer.machine.abort(1);
    assert_eq!(peer.requests(request("c", Wait::Queue)), Ok(3));
    let requests = peer.sent.iter().filter(|message| matches!(message, ToService::Request(_)));
    assert_eq!(requests.count(), 3);
}

#[test]
fn long_question_is_refused_alone_and_nothing_is_sent() {
    let mut peer = Peer::welcoming(local(Begin::Once), SMALL);
    let question = Question::ForceRelease("x".repeat(200).as_str().into());
    let refused = peer.machine.ask(0, question, peer.now);
    assert!(matches!(refused, Err(QueryFailure::Refused(fault)) if fault.code == FaultCode::Limit));
    peer.carry_out_commands();
    assert!(peer.sent.is_empty());
}

#[test]
fn client_beyond_the_limit_is_refused_with_its_requests_and_streams() {
    let mut peer = Peer::welcoming(local(Begin::Once), SMALL);
    let (first, second) = (peer.machine.add_client("x"), peer.machine.add_client("x"));
    peer.carry_out_commands();
    assert!(matches!(peer.sent.pop_front(), Some(ToService::Open(open)) if open.client == first));
    let of_second = || Request { client: second, ..request("a", Wait::Queue) };
    let found = refusal(peer.requests(of_second()));
    assert!(found.starts_with("the connection has 2 clients, and the service takes 2"), "{found}");
    let refused = peer.machine.ask(second, Question::Locks(LocksOf::Partition), peer.now);
    assert!(matches!(refused, Err(QueryFailure::Refused(_))));
    peer.machine.listen(second);
    assert_eq!(peer.machine.poll_event(), Some(Event::Link));
    assert_eq!(peer.machine.poll_event(), Some(Event::NotListening(second)));
    peer.machine.end_client(second);
    peer.carry_out_commands();
    assert!(peer.sent.is_empty());
    // The next session has room for it, and other limits.
    let third = peer.machine.add_client("x");
    peer.breaks();
    peer.hear();
    peer.welcome(r#""secret":"s","resumed":true,"#, LIMITS);
    let opened = peer.sent.iter().filter_map(|message| match message {
        ToService::Open(open) => Some(open.client),
        _ => None,
    });
    assert_eq!(opened.collect::<Vec<_>>(), [0, first, third]);
}

#[test]
fn requests_beyond_the_limits_of_the_next_session_end_and_the_others_go_on() {
    let mut peer = Peer::welcoming(local(Begin::Once), LIMITS);
    let lock = peer.requests(request("invoice/42", Wait::Queue)).unwrap();
    let waiter = peer.requests(request("invoice/43", Wait::Queue)).unwrap();
    let short = peer.requests(request("a", Wait::Queue)).unwrap();
    peer.receive(r#"{"granted":{"id":1,"token":1}}"#);
    peer.machine.outcome(lock);
    peer.sent.clear();
    peer.breaks();
    peer.hear();
    peer.welcome(r#""secret":"s","resumed":true,"#, SMALL);
    assert_eq!(peer.machine.loss(lock), Some(&LossCause::ServiceGone));
    assert!(!peer.machine.is_pending(waiter) && peer.machine.is_pending(short));
    let claimed = peer.sent.iter().filter_map(|message| match message {
        ToService::Request(request) => Some(request.id),
        _ => None,
    });
    assert_eq!(claimed.collect::<Vec<_>>(), [short]);
}
