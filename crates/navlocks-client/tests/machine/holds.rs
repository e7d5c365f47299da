//! Maximum holds: the client's own deadline is never after that of the service.

use std::time::Duration;

use navlocks_client::{Begin, LossCause, Moment, Outcome};
use navlocks_core::Wait;
use navlocks_wire::{Request, ToService};

use crate::peer::{LIMITS, Peer, local, request};

const SECOND: Duration = Duration::from_secs(1);

fn limited(name: &str, seconds: u32) -> Request {
    Request {
        max_hold_ms: Some((seconds * SECOND).as_millis() as u64),
        ..request(name, Wait::Queue)
    }
}

fn connected() -> Peer {
    Peer::welcoming(local(Begin::Once), LIMITS)
}

/// Grants a request after it waited for so many seconds at the service.
fn grant(peer: &mut Peer, number: u64, waited: u32) {
    let ms = (waited * SECOND).as_millis();
    peer.receive(&format!(r#"{{"granted":{{"id":{number},"token":9,"waited-ms":{ms}}}}}"#));
}

fn after(start: Moment, seconds: u32) -> Moment {
    start.saturating_add(seconds * SECOND)
}

#[test]
fn h07_deadline_counts_from_the_sent_request_and_its_wait_at_the_service() {
    let mut peer = connected();
    let start = peer.now;
    let number = peer.requests(limited("a", 60)).unwrap();
    // The request took one second to the service, and the grant two seconds back.
    peer.sleep(13 * SECOND);
    grant(&mut peer, number, 10);
    assert_eq!(peer.machine.lock_deadline(), after(start, 70));
    assert!(matches!(peer.machine.outcome(number), Some(Outcome::Granted(_))));
    peer.sleep(56 * SECOND);
    assert_eq!(peer.machine.loss(number), None);
    peer.sleep(SECOND);
    assert_eq!(peer.machine.loss(number), Some(&LossCause::HeldTooLong));
}

#[test]
fn h07_wait_for_a_connection_is_no_part_of_the_hold() {
    let mut peer = connected();
    peer.listens = false;
    peer.breaks();
    let number = peer.requests(limited("a", 60)).unwrap();
    peer.sleep(100 * SECOND);
    peer.listens = true;
    peer.wait_until(|peer| {
        peer.machine.is_dialed().then_some(()).or_else(|| peer.sent.front().map(|_| ()))
    });
    peer.sent.clear();
    let sent = peer.now;
    peer.welcome(r#""secret":"s","resumed":true,"#, LIMITS);
    peer.sleep(5 * SECOND);
    grant(&mut peer, number, 4);
    assert_eq!(peer.machine.lock_deadline(), after(sent, 64));
}

#[test]
fn h07_grant_that_arrives_after_its_time_is_lost_and_the_service_is_told() {
    let mut peer = connected();
    let number = peer.requests(limited("a", 2)).unwrap();
    peer.sleep(3 * SECOND);
    peer.sent.clear();
    grant(&mut peer, number, 0);
    assert_eq!(peer.sent.pop_front(), Some(ToService::Expired(number)));
    assert_eq!(peer.machine.loss(number), Some(&LossCause::HeldTooLong));
    assert_eq!(peer.machine.lock_deadline(), Moment::NEVER);
}

#[test]
fn h07_deadline_of_a_claimed_lock_does_not_begin_anew() {
    let mut peer = connected();
    let start = peer.now;
    let number = peer.requests(limited("a", 60)).unwrap();
    grant(&mut peer, number, 0);
    assert!(matches!(peer.machine.outcome(number), Some(Outcome::Granted(_))));
    peer.breaks();
    peer.sleep(10 * SECOND);
    peer.welcome(r#""secret":"s","resumed":true,"#, LIMITS);
    assert_eq!(peer.machine.lock_deadline(), after(start, 60));
    // A service that begins a session anew ends the lock, and its time with it.
    peer.breaks();
    peer.sleep(10 * SECOND);
    peer.welcome(r#""secret":"t","#, LIMITS);
    assert_eq!(peer.machine.lock_deadline(), Moment::NEVER);
    assert_eq!(peer.machine.loss(number), Some(&LossCause::ServiceGone));
}
