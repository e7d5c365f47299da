//! Attempts to connect: their pauses, their limits, and the requests that travel with a hello.

use std::time::Duration;

use navlocks_client::{Addresses, Begin, Failure, LinkState, Moment, Outcome, Over, Settings};
use navlocks_core::Wait;
use navlocks_wire::ToService;

use crate::peer::{LIMITS, Peer, local, request};

fn cluster() -> Settings {
    Settings::new(Addresses::parse("ws://a,b").unwrap(), Begin::Once)
}

#[test]
fn session_that_a_takeover_waits_for_makes_short_pauses() {
    for (has_lock, longest) in [(true, 200), (false, 1000)] {
        let mut peer = Peer::welcoming(cluster(), LIMITS);
        if has_lock {
            peer.requests(request("a", Wait::Queue)).unwrap();
        }
        peer.listens = false;
        // The session cannot be resumed.
        peer.receive(r#"{"error":{"code":"unknown-session","message":"no"}}"#);
        let mut pauses = Vec::new();
        for _ in 0..50 {
            let before = peer.now;
            peer.advance();
            pauses.push(peer.now.saturating_since(before));
        }
        let longest = Duration::from_millis(longest);
        let found = pauses.into_iter().max().unwrap();
        assert!(found <= longest && found >= longest / 2, "{found:?}");
    }
}

#[test]
fn client_that_leaves_when_the_limit_passes_has_left() {
    let settings = Settings { unreachable_after: Some(Duration::ZERO), ..local(Begin::Once) };
    let mut peer = Peer::welcoming(settings, LIMITS);
    peer.listens = false;
    peer.breaks();
    peer.machine.leave(peer.now);
    peer.machine.elapsed(peer.now);
    assert_eq!(*peer.machine.link(), LinkState::Gone);
    assert!(peer.machine.has_ended() && peer.machine.deadline() == Moment::NEVER);
}

#[test]
fn answered_hello_extends_the_lease_also_before_a_claim() {
    let mut settings = cluster();
    settings.addresses = Addresses::parse("ws://a").unwrap();
    let mut peer = Peer::new(settings);
    let until = |peer: &Peer| peer.now.saturating_add(Duration::from_secs(7));
    peer.hear();
    peer.welcome(r#""secret":"s","lease-ms":8000,"#, LIMITS);
    assert_eq!(peer.machine.lock_deadline(), until(&peer));
    peer.breaks();
    peer.hear();
    let sent = until(&peer);
    peer.now = peer.now.saturating_add(Duration::from_secs(2));
    peer.welcome(r#""secret":"s","resumed":true,"lease-ms":8000,"#, LIMITS);
    assert_eq!(peer.machine.lock_deadline(), sent);
}

#[test]
fn silent_service_ends_each_phase_of_the_first_attempt() {
    let settings = Settings { answer_timeout: Some(Duration::from_secs(3)), ..local(Begin::Once) };
    let mut peer = Peer::new(settings);
    peer.sleep(Duration::from_secs(3));
    assert_eq!(peer.machine.failure(), Some(&Failure::Silent(Duration::from_secs(3))));
    assert!(peer.machine.has_ended());
}

#[test]
fn steal_that_a_node_refused_with_the_hello_is_not_in_doubt() {
    let settings =
        Settings { addresses: Addresses::parse("ws://a").unwrap(), ..local(Begin::Dial) };
    let mut peer = Peer::new(settings);
    assert!(peer.machine.is_dialed() && peer.sent.is_empty());
    let steal = peer.requests(request("a", Wait::Steal)).unwrap();
    peer.machine.greet(peer.now);
    peer.carry_out_commands();
    assert!(matches!(peer.sent.pop_front(), Some(ToService::Hello(_))));
    assert!(matches!(peer.sent.pop_front(), Some(ToService::Request(_))));
    peer.receive(r#"{"error":{"code":"moved","message":"there","to":"ws://b"}}"#);
    assert_eq!(peer.dialed, ["ws://a/", "ws://b/"]);
    assert!(matches!(peer.hear(), ToService::Hello(_)));
    peer.welcome(r#""cluster":true,"secret":"s","#, LIMITS);
    assert!(matches!(peer.hear(), ToService::Request(sent) if sent.id == steal));
    // A connection that breaks before the welcome leaves it in doubt.
    let mut peer = Peer::new(local(Begin::Dial));
    let steal = peer.requests(request("a", Wait::Steal)).unwrap();
    peer.machine.greet(peer.now);
    peer.carry_out_commands();
    peer.breaks();
    let outcome = peer.machine.outcome(steal);
    assert!(matches!(outcome, Some(Outcome::Over(Over::OutcomeUnknown))), "{outcome:?}");
}
