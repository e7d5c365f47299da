//! The claim of a session after its service was restarted.

use std::future::IntoFuture as _;

use navlocks::{LossCause, RequestErrorKind, RequestId};
use navlocks_wire::{
    Event, FaultCode, Limits, Open, Over, Pending, QueuePlace, Request, RequestKey, ToClient,
    ToService, Watch, Welcome,
};

use crate::client::{begun, claimed, connected, held, polled, request_of, said};
use crate::peer::{Peer, Talk, lasting, leased};
use crate::run;

/// A place in the queue of epoch 1.
const PLACE: QueuePlace = QueuePlace { epoch: 1, number: 40 };

/// Returns peers of both kinds, with the welcome of session 7 in this epoch.
async fn peers() -> [(Peer, fn(u64) -> Welcome); 2] {
    let over_tcp = |epoch| Welcome { epoch, ..leased(7) };
    [(Peer::unix().await, |epoch| lasting(7, epoch)), (Peer::tcp().await, over_tcp)]
}

/// Breaks the connection, and continues as the service of the next epoch.
async fn restarts(peer: &Peer, talk: Talk, welcome: Welcome) -> Talk {
    talk.breaks();
    let (talk, resume) = peer.wants_claim(welcome.clone()).await;
    assert_eq!((resume.session, resume.secret), (7, "secret of 7".into()));
    assert_eq!(resume.epoch + 1, welcome.epoch);
    talk
}

#[test]
fn claim_has_all_live_requests_in_order_with_tokens_and_places() {
    run(async {
        for (peer, welcome) in peers().await {
            let (locks, mut talk) = connected(&peer, welcome(1)).await;
            let kept = held(&locks, "a", &mut talk).await; // 1
            let released = held(&locks, "b", &mut talk).await; // 2
            let mut unheard = begun(locks.request("c").shared().tag("t")); // 3: granted, not polled
            let aborted = begun(locks.request("d")); // 4
            let placed = begun(locks.request("e")); // 5
            let pending = begun(locks.request("f")); // 6
            for _ in 3..=6 {
                talk.hear_request().await;
            }
            talk.grants(3, 33).await;
            talk.says(ToClient::Pending(Pending { id: 5, place: PLACE })).await;
            talk.settles().await;
            talk.breaks();
            drop((released, aborted));
            assert_eq!(kept.loss(), None);

            let (mut talk, resume) = peer.wants_claim(welcome(2)).await;
            assert_eq!(resume.epoch, 1);
            let shared = Request {
                mode: navlocks::Mode::Shared,
                tag: Some("t".into()),
                ..claimed(3, "c", 33)
            };
            let with_place = Request { place: Some(PLACE), ..request_of(0, 5, "e") };
            talk.hears_claim(&[claimed(1, "a", 1), shared, with_place, request_of(0, 6, "f")])
                .await;
            assert_eq!((kept.loss(), kept.fencing_token().get()), (None, 1));
            assert!(polled(&mut unheard).is_ready(), "it was granted before");
            talk.hears(ToService::End(3)).await;
            talk.grants(6, 60).await;
            assert_eq!(pending.await.unwrap().fencing_token().get(), 60);
            talk.hears(ToService::End(6)).await;
            kept.release().unwrap();
            talk.hears(ToService::End(1)).await;
            drop((unheard, placed));
        }
    });
}

#[test]
fn requests_changed_between_hello_and_welcome_are_claimed_as_they_are() {
    run(async {
        for (peer, welcome) in peers().await {
            let (locks, mut talk) = connected(&peer, welcome(1)).await;
            let ended = locks.new_client();
            talk.hear().await;
            let released = held(&locks, "a", &mut talk).await; // 1
            let aborted = begun(locks.request("b")); // 2
            let kept = begun(locks.request("c")); // 3
            let unheard = begun(locks.request("d")); // 4
            for _ in 2..=4 {
                talk.hear_request().await;
            }
            talk.grants(4, 4).await;
            talk.settles().await;
            talk.breaks();
            let (mut talk, hello) = peer.greeted().await;
            assert!(hello.resume.is_some());
            drop((released, aborted, unheard, ended));
            let opened = locks.partition("late");
            let late = begun(opened.request("e")); // 5
            let claim = Welcome { resumed: true, ..welcome(2) };
            talk.says(ToClient::Welcome(claim)).await;
            talk.hears(ToService::Open(Open { client: 0, partition: String::new() })).await;
            talk.hears(ToService::Open(Open { client: 2, partition: "late".into() })).await;
            talk.hears_claim(&[request_of(0, 3, "c"), request_of(2, 5, "e")]).await;
            drop((kept, late));
        }
    });
}

#[test]
fn contention_events_and_questions_follow_claim() {
    run(async {
        let peer = Peer::unix().await;
        let (locks, mut talk) = connected(&peer, lasting(7, 1)).await;
        let lock = held(&locks, "a", &mut talk).await;
        let mut contended = Box::pin(lock.contended());
        assert!(polled(&mut contended).is_pending());
        talk.hears(ToService::Watch(Watch::Contention(1))).await;
        let _events = locks.events();
        talk.hears(ToService::Watch(Watch::Events(0))).await;
        let question = tokio::spawn({
            let locks = locks.clone();
            async move { locks.unclaimed_sessions().await }
        });
        let ToService::Ask(asked) = talk.hear().await else { panic!("not a question") };
        let mut talk = restarts(&peer, talk, lasting(7, 2)).await;
        talk.hears_claim(&[claimed(1, "a", 1)]).await;
        talk.hears(ToService::Watch(Watch::Events(0))).await;
        talk.hears(ToService::Watch(Watch::Contention(1))).await;
        talk.hears(ToService::Ask(asked)).await;
        let waited_for =
            navlocks_wire::UnclaimedSession { session: 3, pid: Some(9), left_ms: None, held: 2 };
        let reply = navlocks_wire::Reply::Unclaimed(vec![waited_for]);
        talk.says(ToClient::Answer(navlocks_wire::Answer { id: 1, reply })).await;
        let [unclaimed] = &question.await.unwrap().unwrap()[..] else { panic!("one session") };
        assert_eq!((unclaimed.session, unclaimed.pid, unclaimed.held), (3, Some(9), 2));
        talk.says(ToClient::Event(Event::Contended(1))).await;
        assert!(contended.await.is_ok());
    });
}

#[test]
fn idle_session_claims_nothing() {
    run(async {
        for (peer, welcome) in peers().await {
            let (locks, talk) = connected(&peer, welcome(1)).await;
            let mut talk = restarts(&peer, talk, welcome(2)).await;
            talk.hears_claim(&[]).await;
            assert_eq!(locks.client_id().to_string(), "c7.0");
            drop(held(&locks, "a", &mut talk).await);
        }
    });
}

#[test]
fn broken_claim_is_sent_again_in_full() {
    run(async {
        for (peer, welcome) in peers().await {
            let (locks, mut talk) = connected(&peer, welcome(1)).await;
            let lock = held(&locks, "a", &mut talk).await;
            let waiting = begun(locks.request("b"));
            talk.hears(said(2, "b")).await;
            talk.breaks();
            // The connection breaks in each stage of the handshake.
            drop(peer.socket().await);
            peer.accept().await.breaks();
            peer.greeted().await.0.breaks();
            // The connection breaks before the claim was read, in its middle, and when it was
            // complete.
            let claim = [claimed(1, "a", 1), request_of(0, 2, "b")];
            let (talk, resume) = peer.wants_claim(welcome(2)).await;
            assert_eq!(resume.epoch, 1);
            let mut talk = restarts(&peer, talk, welcome(3)).await;
            talk.hears(ToService::Open(Open { client: 0, partition: String::new() })).await;
            talk.hears(ToService::Request(claim[0].clone())).await;
            let mut talk = restarts(&peer, talk, welcome(4)).await;
            talk.hears_claim(&claim).await;
            let mut talk = restarts(&peer, talk, welcome(5)).await;
            talk.hears_claim(&claim).await;
            // A service that lives gets the same one.
            talk.breaks();
            let (mut talk, resume) = peer.resumes(welcome(5)).await;
            assert_eq!(resume.requests, claim);
            talk.grants(2, 20).await;
            assert_eq!(waiting.await.unwrap().fencing_token().get(), 20);
            assert_eq!(lock.loss(), None);
        }
    });
}

#[test]
fn refused_claim_is_a_loss_and_other_claims_stand() {
    run(async {
        for (peer, welcome) in peers().await {
            let (locks, mut talk) = connected(&peer, welcome(1)).await;
            let stolen = held(&locks, "a", &mut talk).await; // 1
            let kept = held(&locks, "b", &mut talk).await; // 2
            let refused = held(&locks, "c", &mut talk).await; // 3
            let pending = begun(locks.request("d")); // 4
            talk.hear_request().await;
            let mut talk = restarts(&peer, talk, welcome(2)).await;
            let held = [claimed(1, "a", 1), claimed(2, "b", 2), claimed(3, "c", 3)];
            talk.hears_claim(&[&held[..], &[request_of(0, 4, "d")]].concat()).await;
            let thief = RequestKey::new(9, 9);
            for (id, cause) in [
                (1, navlocks_wire::LossCause::Stolen(thief)),
                (3, navlocks_wire::LossCause::NotReclaimed),
                (4, navlocks_wire::LossCause::Stolen(thief)),
            ] {
                talk.says(ToClient::Over(Over::lost(id, cause))).await;
            }
            assert_eq!(
                stolen.lost().await,
                LossCause::Stolen { by: RequestId::from(thief).into() }
            );
            assert_eq!(refused.lost().await, LossCause::ServiceGone);
            assert!(
                matches!(pending.await, Err(error) if matches!(error.kind(), RequestErrorKind::Stolen { .. }))
            );
            talk.hears(ToService::End(4)).await;
            assert_eq!(kept.loss(), None);
            drop(stolen);
            talk.hears(ToService::End(1)).await;
        }
    });
}

#[test]
fn lock_that_its_client_steals_while_service_is_down_is_claimed_before_the_steal() {
    run(async {
        let peer = Peer::unix().await;
        let (locks, mut talk) = connected(&peer, lasting(7, 1)).await;
        let victim = held(&locks, "a", &mut talk).await;
        talk.breaks();
        let thief = begun(locks.request("a").steal());
        let (mut talk, _) = peer.wants_claim(lasting(7, 2)).await;
        let steal = Request { wait: navlocks_core::Wait::Steal, ..request_of(0, 2, "a") };
        talk.hears_claim(&[claimed(1, "a", 1), steal]).await;
        let cause = navlocks_wire::LossCause::Stolen(RequestKey::new(7, 2));
        talk.says(ToClient::Over(Over::lost(1, cause))).await;
        assert!(matches!(victim.lost().await, LossCause::Stolen { .. }));
        talk.grants(2, 2).await;
        assert_eq!(thief.await.unwrap().loss(), None);
    });
}

#[test]
fn claim_that_is_too_long_for_successor_is_loss() {
    run(async {
        let peer = Peer::unix().await;
        let (locks, mut talk) = connected(&peer, lasting(7, 1)).await;
        let name = "x".repeat(500);
        let long = held(&locks, &name, &mut talk).await; // 1
        let short = held(&locks, "a", &mut talk).await; // 2
        let pending = begun(locks.request(name.as_str())); // 3
        talk.hear_request().await;
        talk.breaks();
        let limits = Limits { message_bytes_max: 400, ..lasting(7, 2).limits };
        let (mut talk, _) = peer.wants_claim(Welcome { limits, ..lasting(7, 2) }).await;
        talk.hears_claim(&[claimed(2, "a", 2)]).await;
        assert_eq!(long.lost().await, LossCause::ServiceGone);
        assert!(
            matches!(pending.await, Err(error) if matches!(error.kind(), RequestErrorKind::Refused(_)))
        );
        assert_eq!(short.loss(), None);
    });
}

#[test]
fn session_of_another_number_is_not_claimed() {
    run(async {
        let peer = Peer::unix().await;
        let (locks, mut talk) = connected(&peer, lasting(7, 1)).await;
        let lock = held(&locks, "a", &mut talk).await;
        let waiting = begun(locks.request("b"));
        talk.hear_request().await;
        talk.breaks();
        let (mut talk, _) = peer.wants_claim(lasting(8, 2)).await;
        talk.hears(said(2, "b")).await;
        assert_eq!(lock.loss(), Some(LossCause::ServiceGone));
        drop(waiting);
    });
}

#[test]
fn successor_without_the_session_loses_locks_and_keeps_requests() {
    run(async {
        let peer = Peer::unix().await;
        let (locks, mut talk) = connected(&peer, lasting(7, 1)).await;
        let lock = held(&locks, "a", &mut talk).await; // 1
        let placed = begun(locks.request("b")); // 2
        let unheard = begun(locks.request("c")); // 3
        talk.hear_request().await;
        talk.hear_request().await;
        talk.says(ToClient::Pending(Pending { id: 2, place: PLACE })).await;
        talk.grants(3, 3).await;
        talk.settles().await;
        talk.breaks();
        let (mut talk, hello) = peer.greeted().await;
        assert!(hello.resume.is_some());
        talk.fails(FaultCode::UnknownSession, "never heard of it").await;
        talk.ends().await;
        assert_eq!(lock.lost().await, LossCause::ServiceGone);
        // The place was one of another session.
        let mut talk = peer.begins(lasting(1, 2)).await;
        talk.hears(said(2, "b")).await;
        talk.hears(said(3, "c")).await;
        talk.grants(3, 30).await;
        assert_eq!(unheard.await.unwrap().fencing_token().get(), 30);
        talk.hears(ToService::End(3)).await;
        // A successor of that service does not know it either.
        talk.breaks();
        let (mut talk, _) = peer.wants_claim(lasting(1, 3)).await;
        talk.hears_claim(&[request_of(0, 2, "b")]).await;
        drop(placed);
    });
}

#[test]
fn service_with_smaller_epoch_is_not_trusted() {
    run(async {
        for (peer, welcome) in peers().await {
            let (locks, mut talk) = connected(&peer, welcome(5)).await;
            let lock = held(&locks, "a", &mut talk).await;
            talk.breaks();
            for epoch in [4, 0] {
                let (mut old, hello) = peer.greeted().await;
                assert_eq!(hello.resume.unwrap().epoch, 5);
                let resumed = Welcome { resumed: true, ..welcome(epoch) };
                old.says(ToClient::Welcome(resumed)).await;
                old.ends().await;
                assert_eq!(lock.loss(), None);
            }
            let (mut talk, resume) = peer.wants_claim(welcome(6)).await;
            assert_eq!(resume.epoch, 5);
            talk.hears_claim(&[claimed(1, "a", 1)]).await;
            assert_eq!(lock.loss(), None);
        }
    });
}

#[test]
fn request_only_if_available_waits_over_restart() {
    run(async {
        let peer = Peer::unix().await;
        let (locks, mut talk) = connected(&peer, lasting(7, 1)).await;
        let trying = tokio::spawn(locks.request("a").if_available().into_future());
        let request = talk.hear_request().await;
        let mut talk = restarts(&peer, talk, lasting(7, 2)).await;
        talk.hears_claim(&[request]).await;
        talk.says(ToClient::Over(Over::unavailable(1))).await;
        assert!(trying.await.unwrap().unwrap().is_none());
    });
}
