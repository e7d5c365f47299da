//! A service that has forgotten the session.

use navlocks::{LossCause, RequestErrorKind};
use navlocks_wire::{FaultCode, Open, ToService};

use crate::client::{begun, connected, held, polled, request_of, said};
use crate::peer::{Peer, Talk, leased};
use crate::run;

/// The ways in which a service reports that it does not know a session.
#[derive(Clone, Copy, PartialEq)]
enum Says {
    UnknownSession,
    AnotherSession,
}

/// Accepts a client that wants to resume, and begins a new session with it.
async fn forgets(peer: &Peer, says: Says, session: u32) -> Talk {
    let (mut talk, hello) = peer.greeted().await;
    assert!(hello.resume.is_some());
    if says == Says::AnotherSession {
        talk.says(navlocks_wire::ToClient::Welcome(leased(session))).await;
        return talk;
    }
    talk.fails(FaultCode::UnknownSession, "never heard of it").await;
    talk.ends().await;
    peer.begins(leased(session)).await
}

#[test]
fn decision_2_forgotten_session_loses_locks_and_requests_again() {
    for says in [Says::UnknownSession, Says::AnotherSession] {
        run(async move {
            let peer = Peer::tcp().await;
            let (locks, mut talk) = connected(&peer, leased(7)).await;
            let other = locks.partition("p");
            talk.hear().await;
            let lock = held(&locks, "a", &mut talk).await; // 1
            let pending = begun(other.request("b")); // 2
            let mut unheard = begun(locks.request("c")); // 3
            talk.hear_request().await;
            talk.hear_request().await;
            talk.grants(3, 3).await;
            talk.settles().await;
            talk.breaks();

            let mut talk = forgets(&peer, says, 8).await;
            talk.hears(ToService::Open(Open { client: 1, partition: "p".into() })).await;
            // The client knows the loss before the service receives a message that could lead to
            // another grant.
            assert_eq!(lock.loss(), Some(LossCause::ServiceGone));
            assert_eq!(lock.lost().await, LossCause::ServiceGone);
            assert_eq!(locks.client_id().to_string(), "c8.0");
            assert_eq!(other.client_id().to_string(), "c8.1");
            talk.hears(ToService::Request(request_of(1, 2, "b"))).await;
            talk.hears(said(3, "c")).await;
            assert!(polled(&mut unheard).is_pending(), "its grant was that of another service");
            talk.grants(3, 30).await;
            let granted = unheard.await.unwrap();
            assert_eq!(granted.fencing_token().get(), 30);
            assert_eq!(granted.request_id().to_string(), "r8.3");
            drop(pending);
            talk.hears(ToService::End(2)).await;
            assert_eq!(lock.release(), Err(LossCause::ServiceGone));
            talk.hears(ToService::End(1)).await;
        });
    }
}

#[test]
fn client_that_ended_is_not_opened_in_next_session() {
    run(async {
        let peer = Peer::tcp().await;
        let (locks, mut talk) = connected(&peer, leased(7)).await;
        let other = locks.new_client();
        talk.hear().await;
        let waiting = begun(locks.request("a"));
        talk.hears(said(1, "a")).await;
        talk.breaks();
        locks.end_client();
        assert_eq!(waiting.await.unwrap_err(), RequestErrorKind::ClientEnded);
        let mut talk = forgets(&peer, Says::UnknownSession, 8).await;
        talk.hears(ToService::Open(Open { client: 1, partition: String::new() })).await;
        // The hello opens client 0, whether it is needed or not.
        talk.hears(ToService::Close(0)).await;
        let _waiting = begun(other.request("b"));
        talk.hears(ToService::Request(request_of(1, 2, "b"))).await;
    });
}

#[test]
fn session_resumed_with_another_number_is_a_new_one() {
    run(async {
        let peer = Peer::tcp().await;
        let (locks, mut talk) = connected(&peer, leased(7)).await;
        let _other = locks.new_client();
        talk.hear().await;
        let lock = held(&locks, "a", &mut talk).await;
        talk.breaks();
        // Another session number: its state is not that of this client.
        let (mut talk, _) = peer.wants_claim(leased(8)).await;
        talk.hears(ToService::Open(Open { client: 1, partition: String::new() })).await;
        assert_eq!(lock.loss(), Some(LossCause::ServiceGone));
    });
}

#[test]
fn peer_that_forgets_repeatedly_is_dialled_with_pauses() {
    run(async {
        let peer = Peer::tcp().await;
        let (_locks, talk) = connected(&peer, leased(7)).await;
        talk.breaks();
        let began = std::time::Instant::now();
        for _ in 0..8 {
            let mut talk = peer.greeted().await.0;
            talk.fails(FaultCode::UnknownSession, "who?").await;
            talk.ends().await;
        }
        // Pauses double from ten milliseconds, and are never shorter than they should be.
        assert!(began.elapsed().as_millis() >= 300, "{:?}", began.elapsed());
    });
}

#[test]
fn service_that_always_breaks_off_is_dialled_with_pauses() {
    run(async {
        let peer = Peer::unix().await;
        let (_locks, talk) = connected(&peer, crate::peer::welcome(1)).await;
        talk.breaks();
        let began = std::time::Instant::now();
        for session in 2..10 {
            peer.begins(crate::peer::welcome(session)).await.breaks();
        }
        assert!(began.elapsed().as_millis() >= 300, "{:?}", began.elapsed());
    });
}
