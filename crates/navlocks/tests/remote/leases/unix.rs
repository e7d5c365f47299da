//! The end of a session that cannot be resumed, which the client knows at once.

use navlocks::{LossCause, QueryError};
use navlocks_wire::{FaultCode, Over, ToClient, Welcome};

use crate::client::{begun, connected, held, polled, said};
use crate::peer::{Peer, leased, welcome};
use crate::run;

#[test]
fn lost_connection_loses_locks_and_requests_wait_for_the_next_service() {
    run(async {
        let mut peer = Peer::unix().await;
        let (locks, mut talk) = connected(&peer, welcome(1)).await;
        let lock = held(&locks, "a", &mut talk).await;
        let mut waiting = begun(locks.request("b"));
        let mut unheard = begun(locks.request("c"));
        talk.hears(said(2, "b")).await;
        talk.hears(said(3, "c")).await;
        talk.grants(3, 3).await;
        talk.settles().await;
        peer.goes_away();
        talk.breaks();
        assert_eq!(lock.lost().await, LossCause::ServiceGone);
        assert!(polled(&mut waiting).is_pending());
        assert!(polled(&mut unheard).is_pending());
        peer.comes_back().await;
        let mut talk = peer.begins(welcome(2)).await;
        talk.hears(said(2, "b")).await;
        talk.hears(said(3, "c")).await;
        talk.grants(2, 20).await;
        talk.grants(3, 30).await;
        assert_eq!(waiting.await.unwrap().fencing_token().get(), 20);
        assert_eq!(unheard.await.unwrap().fencing_token().get(), 30);
    });
}

#[test]
fn every_error_that_ends_the_session_loses_its_locks_at_once() {
    for code in [
        FaultCode::SlowReader,
        FaultCode::BadState,
        FaultCode::Internal,
        FaultCode::Limit,
        FaultCode::Other,
    ] {
        run(async move {
            for (peer, welcome) in
                [(Peer::unix().await, welcome(1)), (Peer::tcp().await, leased(1))]
            {
                let (locks, mut talk) = connected(&peer, welcome.clone()).await;
                let lock = held(&locks, "a", &mut talk).await;
                let waiting = begun(locks.request("b"));
                talk.hears(said(2, "b")).await;
                talk.fails(code, "That was all.").await;
                // The connection is still up.
                assert_eq!(lock.lost().await, LossCause::ServiceGone);
                talk.closes().await;
                let mut talk = peer.begins(Welcome { session: 2, ..welcome }).await;
                talk.hears(said(2, "b")).await;
                talk.grants(2, 2).await;
                drop(waiting.await.unwrap());
            }
        });
    }
}

#[test]
fn service_without_registry_that_shuts_down_ends_session() {
    run(async {
        let peer = Peer::unix().await;
        let (locks, mut talk) = connected(&peer, welcome(1)).await;
        let lock = held(&locks, "a", &mut talk).await;
        talk.fails(FaultCode::ShuttingDown, "That was all.").await;
        assert_eq!(lock.lost().await, LossCause::ServiceGone);
    });
}

#[test]
fn messages_after_the_last_one_are_ignored() {
    run(async {
        for (peer, welcome) in [(Peer::unix().await, welcome(1)), (Peer::tcp().await, leased(1))] {
            let (locks, mut talk) = connected(&peer, welcome.clone()).await;
            let waiting = begun(locks.request("a"));
            talk.hears(said(1, "a")).await;
            talk.fails(FaultCode::Internal, "That was all.").await;
            talk.grants(1, 1).await;
            talk.closes().await;
            let mut talk = peer.begins(Welcome { session: 2, ..welcome }).await;
            talk.hears(said(1, "a")).await;
            talk.grants(1, 10).await;
            assert_eq!(waiting.await.unwrap().fencing_token().get(), 10);
        }
    });
}

#[test]
fn service_that_does_not_close_after_its_last_message_is_not_awaited() {
    run(async {
        let peer = Peer::unix().await;
        let (locks, mut talk) = connected(&peer, welcome(1)).await;
        let waiting = begun(locks.request("a"));
        talk.hears(said(1, "a")).await;
        talk.fails(FaultCode::ShuttingDown, "That was all.").await;
        talk.ends().await;
        let mut talk = peer.begins(welcome(2)).await;
        talk.hears(said(1, "a")).await;
        talk.grants(1, 1).await;
        drop(waiting.await.unwrap());
    });
}

#[test]
fn last_message_does_not_end_requests_answered_before() {
    run(async {
        let peer = Peer::unix().await;
        let (locks, mut talk) = connected(&peer, welcome(1)).await;
        let trying = tokio::spawn(locks.request("a").if_available().into_future());
        talk.hear_request().await;
        let question = tokio::spawn({
            let locks = locks.clone();
            async move { locks.deadlocks().await }
        });
        talk.hear().await;
        talk.says(ToClient::Over(Over::unavailable(1))).await;
        let reply = navlocks_wire::Reply::Waits(navlocks_wire::Waits::default());
        talk.says(ToClient::Answer(navlocks_wire::Answer { id: 1, reply })).await;
        talk.fails(FaultCode::ShuttingDown, "That was all.").await;
        talk.closes().await;
        assert!(trying.await.unwrap().unwrap().is_none());
        assert_eq!(question.await.unwrap(), Ok::<_, QueryError>(vec![]));
    });
}
